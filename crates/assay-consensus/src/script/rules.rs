//! The rules of scripts as data: today's, and what they would be under proposals.

use super::checker::PqScheme;
use super::opcode::{MAX_ELEMENT_SIZE, op};

/// A set of rules about scripts and blocks.
///
/// [`RuleSet::TODAY`] is the rules in force; every proposal is a value made from it, so no proposal has a branch of its own
/// in the interpreter. All that a set does not mention is unchanged: scripts outside tapscript have at most 10,000 bytes and
/// 201 operations, numbers 4 or 5 bytes, and blocks their weight; policy (80 bytes for a witness item of P2WSH) is no rule of
/// scripts. The Bitcoin Cash family has today's rules whatever is said here.
///
/// ```
/// use assay_consensus::script::{Interpreter, RuleSet};
///
/// let rules = RuleSet::by_name("p2mr+cat").expect("two proposals together");
/// let interpreter = Interpreter::with_rules(rules);
/// # drop(interpreter);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleSet {
    /// Input scripts, output scripts and redeem scripts.
    pub base: Language,
    /// Scripts of version 0 witness programs; signature and key of P2WPKH are elements of it as well.
    pub witness_v0: Language,
    /// Leaves of script trees that are run; all other versions succeed.
    pub leaves: [Option<Leaf>; LEAVES_MAX],
    /// The kind of a native witness program of 32 bytes, by its version. The entry of version 0 is not read.
    pub programs: [Program; 17],
    /// The four rules of BIP-0054, which are about blocks: the engine applies them from
    /// `ActivationHeights::bip54` on.
    pub bip54: bool,
}

/// Leaf versions that one rule set can give a meaning to.
pub const LEAVES_MAX: usize = 4;

/// A leaf version and the language of its scripts, which is tapscript with other limits and opcodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The first byte of a control block without its lowest bit.
    pub version: u8,
    /// Limits and opcodes of its scripts.
    pub language: Language,
}

/// The requirement for spending a native witness program of 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Nothing: the version is left for later soft forks.
    Unknown,
    /// A key, or a script that an output key commits to (BIP-0341), if [`Flags::TAPROOT`](super::Flags::TAPROOT) says so.
    Taproot,
    /// A script of the tree of which the program is the root (P2MR, BIP-0360).
    MerkleRoot,
}

/// Limits and added opcodes of one kind of script.
///
/// An element limit is asked where Core asks `MAX_SCRIPT_ELEMENT_SIZE`, since elements come from nowhere else: pushes,
/// executed or not; the witness items that a version 0 or tapscript program starts with (script, control block and annex are
/// not among them); signature and key of P2WPKH; and results of `OP_CAT`. A P2SH redeem script is a push of the input script,
/// so it may become as large as a push, and no larger than any script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Language {
    pub element_bytes_max: usize,
    /// Most bytes of an element that a script pushes.
    pub push_bytes_max: usize,
    /// Opcodes that may not copy large elements.
    pub copies: Copies,
    /// Opcodes with another meaning than today's.
    pub operations: Operations,
}

impl Language {
    /// Today's, of every kind of script.
    pub const TODAY: Self = Self {
        element_bytes_max: MAX_ELEMENT_SIZE,
        push_bytes_max: MAX_ELEMENT_SIZE,
        copies: Copies::FREE,
        operations: Operations::NONE,
    };

    /// The same with another size of elements, however they come to the stack.
    #[must_use]
    pub const fn with_element_bytes_max(self, bytes: usize) -> Self {
        Self { element_bytes_max: bytes, push_bytes_max: bytes, ..self }
    }
}

/// Opcodes that fail on elements of more than a number of bytes. The error is that of a push that is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copies {
    /// One bit per opcode from `OP_TOALTSTACK` on.
    opcodes: u32,
    /// All ones without a limit, so that asking is one comparison.
    bytes_max: usize,
}

impl Copies {
    /// Today's: elements are copied whatever their size.
    pub const FREE: Self = Self { opcodes: 0, bytes_max: usize::MAX };

    /// The eight opcodes that copy elements of the stack, as the PQSIG draft lists them.
    pub const ALL: [u8; 8] =
        [op::DUP, op::DUP2, op::DUP3, op::IFDUP, op::TUCK, op::OVER, op::OVER2, op::PICK];

    /// These opcodes fail when they would copy an element of more than `bytes_max` bytes.
    ///
    /// # Panics
    /// When an opcode is none of [`Self::ALL`].
    pub const fn limited(opcodes: &[u8], bytes_max: usize) -> Self {
        let (mut bits, mut index) = (0, 0);
        while index < opcodes.len() {
            assert!(
                opcodes[index] >= op::TOALTSTACK && opcodes[index] <= op::TUCK,
                "an opcode that copies"
            );
            bits |= 1 << (opcodes[index] - op::TOALTSTACK);
            index += 1;
        }
        Self { opcodes: bits, bytes_max }
    }

    /// The size up to which this opcode copies, if it has a limit.
    pub const fn bytes_max(&self, opcode: u8) -> Option<usize> {
        let known = opcode >= op::TOALTSTACK && opcode <= op::TUCK;
        if known && self.opcodes >> (opcode - op::TOALTSTACK) & 1 == 1 {
            Some(self.bytes_max)
        } else {
            None
        }
    }

    /// Returns `true` if some opcode has a limit.
    #[inline]
    pub(super) const fn are_limited(&self) -> bool {
        self.bytes_max != usize::MAX
    }
}

/// A meaning that a proposal gives to an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `OP_CHECKTEMPLATEVERIFY` (BIP-0119), in place of a NOP.
    CheckTemplateVerify,
    /// `OP_CAT` (BIP-0347).
    Cat,
    /// `OP_CHECKSIGFROMSTACK` (BIP-0348).
    CheckSigFromStack,
    /// `OP_INTERNALKEY` (BIP-0349). Leaves of P2MR outputs have no internal key: there the opcode keeps its old meaning.
    InternalKey,
    /// `OP_TEMPLATEHASH` (BIP-0446).
    TemplateHash,
    /// `OP_CHECKSIG_SLH` and `OP_CHECKSIG_ML` (PQSIG draft).
    CheckSigPq(PqScheme),
    /// `OP_CHECKSIGADD_SLH` (PQSIG draft).
    CheckSigAddPq(PqScheme),
}

/// A table from opcodes to the meanings that they have instead of `OP_SUCCESSx` or NOP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operations {
    entries: [(u8, Operation); OPERATIONS_MAX],
    length: usize,
}

const OPERATIONS_MAX: usize = 16;

impl Operations {
    /// No opcode has another meaning.
    pub const NONE: Self = Self { entries: [(0, Operation::Cat); OPERATIONS_MAX], length: 0 };

    /// The table with one more opcode.
    ///
    /// # Panics
    /// When the opcode has a meaning already, or the table is full.
    #[must_use]
    pub const fn with(mut self, opcode: u8, operation: Operation) -> Self {
        assert!(self.get(opcode).is_none(), "an opcode has one meaning");
        self.entries[self.length] = (opcode, operation);
        self.length += 1;
        self
    }

    /// The new meaning of an opcode.
    #[inline]
    pub const fn get(&self, opcode: u8) -> Option<Operation> {
        let mut index = 0;
        while index < self.length {
            if self.entries[index].0 == opcode {
                return Some(self.entries[index].1);
            }
            index += 1;
        }
        None
    }
}

/// Today's rules.
impl Default for RuleSet {
    fn default() -> Self {
        Self::TODAY
    }
}

/// [`RuleSet::TODAY`], to refer to.
pub(super) static TODAY: RuleSet = RuleSet::TODAY;

impl RuleSet {
    /// Larger elements than this cannot be asked for without a limit on their sum: a thousand of them have to fit into a gigabyte.
    pub const ELEMENT_BYTES_CEILING: usize = 1 << 20;

    pub const TODAY: Self = Self {
        base: Language::TODAY,
        witness_v0: Language::TODAY,
        leaves: [
            Some(Leaf { version: LEAF_TAPSCRIPT, language: Language::TODAY }),
            None,
            None,
            None,
        ],
        programs: {
            let mut programs = [Program::Unknown; 17];
            programs[1] = Program::Taproot;
            programs
        },
        bip54: false,
    };

    /// Elements of at most `bytes` bytes in every kind of script, as report 1 measured it by raising the one constant of
    /// Bitcoin Core; `None` above [`Self::ELEMENT_BYTES_CEILING`].
    #[must_use]
    pub fn with_element_bytes_max(&self, bytes: usize) -> Option<Self> {
        let raise = |language: Language| language.with_element_bytes_max(bytes);
        (bytes <= Self::ELEMENT_BYTES_CEILING).then(|| self.in_every_language(raise))
    }

    /// Limits on copying in every kind of script.
    #[must_use]
    pub fn with_copies(&self, copies: Copies) -> Self {
        self.in_every_language(|language| Language { copies, ..language })
    }

    fn in_every_language(&self, change: impl Fn(Language) -> Language) -> Self {
        let mut rules = *self;
        rules.base = change(rules.base);
        rules.witness_v0 = change(rules.witness_v0);
        for leaf in rules.leaves.iter_mut().flatten() {
            leaf.language = change(leaf.language);
        }
        rules
    }

    /// The language of a leaf version; `None` where any script of that version succeeds.
    #[inline]
    pub fn leaf(&self, version: u8) -> Option<&Language> {
        self.leaves.iter().flatten().find(|leaf| leaf.version == version).map(|leaf| &leaf.language)
    }

    /// The language of tapscript (BIP-0342).
    ///
    /// # Panics
    /// When these rules have no tapscript, which no named set is without.
    pub fn tapscript(&self) -> &Language {
        self.leaf(LEAF_TAPSCRIPT).expect("every named set has tapscript")
    }

    /// Gives a leaf version a language.
    ///
    /// # Panics
    /// When there are [`LEAVES_MAX`] others.
    #[must_use]
    pub fn with_leaf(&self, version: u8, language: Language) -> Self {
        let mut rules = *self;
        let is_it = |leaf: &Option<Leaf>| leaf.is_some_and(|leaf| leaf.version == version);
        let known = rules.leaves.iter().position(is_it);
        let index = known.or_else(|| rules.leaves.iter().position(Option::is_none));
        rules.leaves[index.expect("room for a leaf version")] = Some(Leaf { version, language });
        rules
    }

    /// Most bytes of an element in any kind of script.
    pub fn element_bytes_max(&self) -> usize {
        let leaves = self.leaves.iter().flatten().map(|leaf| &leaf.language);
        let all = [&self.base, &self.witness_v0].into_iter().chain(leaves);
        all.map(|language| language.element_bytes_max).max().unwrap_or_default()
    }
}

/// Leaf version of tapscript.
pub(super) const LEAF_TAPSCRIPT: u8 = 0xc0;

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
