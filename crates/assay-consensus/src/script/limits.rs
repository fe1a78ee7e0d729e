//! Sizes of stack elements as a parameter: today's rule, and what it would be under a proposal.

use super::opcode::MAX_ELEMENT_SIZE;

/// How large stack elements may be.
///
/// Every other size stays what it is, also where a larger element makes it bind first: scripts outside tapscript have at
/// most 10,000 bytes and 201 operations, both stacks together 1,000 elements, numbers 4 or 5 bytes, and blocks their weight.
///
/// The element limit is asked in the three places where Core asks `MAX_SCRIPT_ELEMENT_SIZE`, since elements come from
/// nowhere else: pushes in scripts, executed or not; the witness items that a version 0 or tapscript program starts with
/// (the script, control block and annex are not among them); and signature and key of P2WPKH. A P2SH redeem script is a push
/// of the input script, so it may become as large as an element, and no larger than any script. The Bitcoin Cash family has
/// the limit of 520 bytes whatever is said here. Policy, such as 80 bytes for witness items of P2WSH, is not a rule of scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    element_bytes_max: usize,
    /// All ones without a limit, so that asking is one comparison.
    dup_bytes_max: usize,
}

impl Limits {
    /// Larger elements than this cannot be asked for: a thousand of them have to fit into a gigabyte.
    pub const ELEMENT_BYTES_CEILING: usize = 1 << 20;

    /// Elements of at most `element_bytes_max` bytes; `None` above [`Self::ELEMENT_BYTES_CEILING`].
    pub const fn new(element_bytes_max: usize) -> Option<Self> {
        if element_bytes_max > Self::ELEMENT_BYTES_CEILING {
            return None;
        }
        Some(Self { element_bytes_max, dup_bytes_max: usize::MAX })
    }

    /// `OP_DUP` fails on elements of more than so many bytes, as BIP-0360 has it (with 520); the error is that of a push
    /// that is too large.
    ///
    /// As the proposal says it, this is `OP_DUP` alone: 2DUP, 3DUP, OVER, 2OVER, IFDUP, PICK and TUCK copy what they like.
    #[must_use]
    pub const fn with_dup_bytes_max(self, dup_bytes_max: usize) -> Self {
        Self { dup_bytes_max, ..self }
    }

    /// Most bytes of an element.
    pub const fn element_bytes_max(self) -> usize {
        self.element_bytes_max
    }

    /// Most bytes of an element that `OP_DUP` copies, if it has a limit of its own.
    pub const fn dup_bytes_max(self) -> Option<usize> {
        match self.dup_bytes_max {
            usize::MAX => None,
            max => Some(max),
        }
    }

    /// Whether `OP_DUP` may copy an element of this size.
    #[inline]
    pub(super) const fn may_dup(self, bytes: usize) -> bool {
        bytes <= self.dup_bytes_max
    }
}

/// Today's rules.
impl Default for Limits {
    fn default() -> Self {
        Self { element_bytes_max: MAX_ELEMENT_SIZE, dup_bytes_max: usize::MAX }
    }
}

#[cfg(test)]
mod tests {
    use assay_hash::{hash160, sha256};
    use assay_wire::{Encoding, Transaction, TxOut};

    use super::*;
    use crate::script::opcode::op::*;
    use crate::script::{
        Flags, Interpreter, ScriptError, TxContext, checker::Unasked, opcode::Instructions,
    };
    use assay_testkit::chain::TxBuilder;

    fn verify(
        limits: Limits,
        flags: Flags,
        script_sig: &[u8],
        script_pubkey: &[u8],
        witness: &[&[u8]],
    ) -> Result<(), ScriptError> {
        let mut builder = TxBuilder::new(2).input(7, 0, script_sig, 0).output(1, &[PUSH1]);
        if !witness.is_empty() {
            builder = builder.witness(witness);
        }
        let tx = Transaction::parse(builder.bytes(), Encoding::Segwit).expect("a transaction");
        let spent = [TxOut { value: 2, script_pubkey }];
        let context = TxContext::new(tx.view(), &spent);
        let mut interpreter = Interpreter::with_limits(limits);
        interpreter.verify_input(&context, 0, flags, &mut Unasked).map(|_| ())
    }

    fn push(data: &[u8]) -> Vec<u8> {
        let mut script = vec![PUSHDATA4];
        script.extend((data.len() as u32).to_le_bytes());
        script.extend(data);
        script
    }

    fn of(element_bytes_max: usize) -> Limits {
        Limits::new(element_bytes_max).expect("below the ceiling")
    }

    /// Each place that knows the limit, at the limit and one above it.
    #[test]
    fn every_source_of_elements_follows_the_limit() {
        let block = Flags::BITCOIN_BLOCK;
        for max in [0, 100, 520, 521, 8000] {
            for (size, expected) in [(max, Ok(())), (max + 1, Err(ScriptError::PushSize))] {
                let data = vec![7; size];
                let limits = of(max);
                let pushed = [&push(&data)[..], &[DROP, PUSH1]].concat();
                assert_eq!(verify(limits, block, &[], &pushed, &[]), expected, "{size}");
                let skipped = [&[0, IF], &push(&data)[..], &[ENDIF, PUSH1]].concat();
                assert_eq!(verify(limits, block, &[], &skipped, &[]), expected, "{size}");
                // The script itself is not an element.
                let script = [&[DROP, PUSH1][..], &[NOP; 150]].concat();
                let p2wsh = [&[0, 32], &sha256(&script)[..]].concat();
                let verdict = verify(limits, block, &[], &p2wsh, &[&data, &script]);
                assert_eq!(verdict, expected, "{size}");
            }
        }
    }

    #[test]
    fn redeem_scripts_are_elements_and_scripts() {
        for (size, max, expected) in [
            (520, 520, Ok(())),
            (521, 520, Err(ScriptError::PushSize)),
            (684, 520, Err(ScriptError::PushSize)),
            (684, 8000, Ok(())),
            (8000, 8000, Ok(())),
            (8001, 8000, Err(ScriptError::PushSize)),
            // An element may be larger than what may be run.
            (9990, 20_000, Ok(())),
            (10_001, 20_000, Err(ScriptError::ScriptSize)),
        ] {
            let mut redeem_script = vec![];
            while redeem_script.len() + 503 < size {
                redeem_script.extend([PUSHDATA2, 0xf4, 1]);
                redeem_script.extend([9; 500]);
            }
            // What is left is pushes of nothing, up to a thousand elements.
            redeem_script.resize(size - 1, 0);
            redeem_script.push(PUSH1);
            assert!(Instructions::new(&redeem_script).all(|read| read.is_some()));
            let script_pubkey = [&[HASH160, 20], &hash160(&redeem_script)[..], &[EQUAL]].concat();
            let script_sig = push(&redeem_script);
            let verdict = verify(of(max), Flags::P2SH, &script_sig, &script_pubkey, &[]);
            // Input scripts are scripts as well.
            let expected = if script_sig.len() > 10_000 && expected.is_ok() {
                Err(ScriptError::ScriptSize)
            } else {
                expected
            };
            assert_eq!(verdict, expected, "{size} of {max}");
        }
    }

    #[test]
    fn dup_alone_may_have_a_limit_of_its_own() {
        let limits = of(8000).with_dup_bytes_max(520);
        assert_eq!(limits.dup_bytes_max(), Some(520));
        let with = |size: usize, opcodes: &[u8], limits: Limits| {
            let script = [&push(&vec![1; size])[..], opcodes].concat();
            verify(limits, Flags::NONE, &[], &script, &[])
        };
        assert_eq!(with(520, &[DUP], limits), Ok(()));
        assert_eq!(with(521, &[DUP], limits), Err(ScriptError::PushSize));
        assert_eq!(with(521, &[DUP], of(8000)), Ok(()));
        for opcodes in [&[IFDUP][..], &[PUSH1, OVER], &[PUSH1, DUP2], &[PUSH1, TUCK], &[0, PICK]] {
            assert_eq!(with(8000, opcodes, limits), Ok(()), "{opcodes:?}");
        }
    }

    #[test]
    fn the_cash_family_keeps_its_limit() {
        let script = [&push(&[1; 521])[..], &[REVERSEBYTES]].concat();
        let flags = Flags::BCH | Flags::REVERSEBYTES;
        assert_eq!(verify(of(8000), flags, &[], &script, &[]), Err(ScriptError::PushSize));
    }

    #[test]
    fn limits_have_a_ceiling() {
        assert_eq!(Limits::new(520), Some(Limits::default()));
        assert!(Limits::new(Limits::ELEMENT_BYTES_CEILING).is_some());
        assert_eq!(Limits::new(Limits::ELEMENT_BYTES_CEILING + 1), None);
    }
}
