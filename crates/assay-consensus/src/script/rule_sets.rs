//! Rule sets by name, and several proposals together.

use super::checker::PqScheme;
use super::opcode::op;
use super::rules::{Copies, LEAF_TAPSCRIPT, Language, Operation, Program, RuleSet};

#[derive(Clone, Copy, Debug)]
pub struct NamedRules {
    /// The name that [`RuleSet::by_name`] knows it by.
    pub name: &'static str,
    /// Its change to the rules, with the source.
    pub summary: &'static str,
    apply: fn(&RuleSet) -> RuleSet,
}

/// Elements that SLH-DSA signatures need, rounded up: the limit that report 1 measured and the PQSIG draft proposes.
const ELEMENT_BYTES_8000: usize = 8000;
/// Above this, copying fails under the proposals that limit it.
const COPY_BYTES_MAX: usize = 520;

/// Every name, in the order in which help lists them.
pub const NAMED_RULES: [NamedRules; 17] = [
    named("today", "the rules in force", |rules| *rules),
    named(
        "bip54",
        "BIP 54: timestamps, 2,500 legacy signature operations a transaction, no transaction of 64 bytes, lock time of coinbases",
        |rules| RuleSet { bip54: true, ..*rules },
    ),
    named("p2mr", "BIP 360 0.12.1: witness version 2 is Pay-to-Merkle-Root", |rules| {
        let mut rules = *rules;
        rules.programs[2] = Program::MerkleRoot;
        rules
    }),
    named("ctv", "BIP 119: OP_NOP4 is OP_CHECKTEMPLATEVERIFY", |rules| {
        let mut rules = *rules;
        let with = |language: Language| added(language, op::NOP4, Operation::CheckTemplateVerify);
        rules.base = with(rules.base);
        rules.witness_v0 = with(rules.witness_v0);
        in_tapscript(&rules, with)
    }),
    named("cat", "BIP 347: OP_CAT in tapscript", |rules| {
        in_tapscript(rules, |language| added(language, op::CAT, Operation::Cat))
    }),
    named("csfs", "BIP 348: OP_CHECKSIGFROMSTACK in tapscript", |rules| {
        in_tapscript(rules, |language| {
            added(language, op::CHECKSIGFROMSTACK, Operation::CheckSigFromStack)
        })
    }),
    named("internalkey", "BIP 349: OP_INTERNALKEY in tapscript", |rules| {
        in_tapscript(rules, |language| added(language, op::INTERNALKEY, Operation::InternalKey))
    }),
    named("templatehash", "BIP 446: OP_TEMPLATEHASH in tapscript", |rules| {
        in_tapscript(rules, |language| added(language, op::TEMPLATEHASH, Operation::TemplateHash))
    }),
    named("bip448", "BIP 448: templatehash, csfs and internalkey together", |rules| {
        ["templatehash", "csfs", "internalkey"]
            .into_iter()
            .fold(*rules, |rules, name| apply_known(&rules, name))
    }),
    named(
        "report-8000",
        "report 1's experiment, no proposal: elements of 8,000 bytes in every kind of script",
        |rules| everywhere(rules, ELEMENT_BYTES_8000),
    ),
    named(
        "report-8000-dup",
        "the same with OP_DUP failing above 520 bytes, the older wording of the PQSIG draft (formerly BIP 360)",
        |rules| {
            everywhere(rules, ELEMENT_BYTES_8000)
                .with_copies(Copies::limited(&[op::DUP], COPY_BYTES_MAX))
        },
    ),
    named(
        "report-8000-copies",
        "the same with all eight copying opcodes failing above 520 bytes",
        |rules| {
            everywhere(rules, ELEMENT_BYTES_8000)
                .with_copies(Copies::limited(&Copies::ALL, COPY_BYTES_MAX))
        },
    ),
    named(
        "pqsig",
        "elements of the PQSIG draft: witness items of tapscript up to 8,000 bytes, pushes up to 520, eight opcodes do not copy above 520; its signature opcodes: slh, ml",
        |rules| {
            in_tapscript(rules, |language| Language {
                element_bytes_max: ELEMENT_BYTES_8000,
                copies: Copies::limited(&Copies::ALL, COPY_BYTES_MAX),
                ..language
            })
        },
    ),
    named("pqsig-dup", "the same with OP_DUP alone limited, as the draft first had it", |rules| {
        in_tapscript(rules, |language| Language {
            element_bytes_max: ELEMENT_BYTES_8000,
            copies: Copies::limited(&[op::DUP], COPY_BYTES_MAX),
            ..language
        })
    }),
    named(
        "slh",
        "signature opcodes of the PQSIG draft: OP_CHECKSIG_SLH and OP_CHECKSIGADD_SLH (0x7f, 0x80) in tapscript, SLH-DSA-SHA2-128s; a signature needs elements of 7,856 bytes, so add pqsig or report-8000",
        |rules| {
            in_tapscript(rules, |language| {
                let scheme = PqScheme::SlhDsa128s;
                let language = added(language, op::CHECKSIG_SLH, Operation::CheckSigPq(scheme));
                added(language, op::CHECKSIGADD_SLH, Operation::CheckSigAddPq(scheme))
            })
        },
    ),
    named(
        "ml",
        "OP_CHECKSIG_ML of the same draft (0x81) in tapscript, ML-DSA-44; key and signature are one element of 3,732 bytes, the script holds the key's hash",
        |rules| {
            in_tapscript(rules, |language| {
                added(language, op::CHECKSIG_ML, Operation::CheckSigPq(PqScheme::MlDsa44))
            })
        },
    ),
    named(
        "shrincs-6000",
        "elements of the SHRINCS draft: leaf version 0xc2 runs tapscript with 6,000 bytes and free copying; its signatures are not included",
        |rules| {
            let language = Language { copies: Copies::FREE, ..*rules.tapscript() };
            rules.with_leaf(LEAF_SHRINCS, language.with_element_bytes_max(6000))
        },
    ),
];

/// Leaf version of the SHRINCS drafts.
const LEAF_SHRINCS: u8 = 0xc2;

const fn named(
    name: &'static str,
    summary: &'static str,
    apply: fn(&RuleSet) -> RuleSet,
) -> NamedRules {
    NamedRules { name, summary, apply }
}

fn added(language: Language, opcode: u8, operation: Operation) -> Language {
    if language.operations.get(opcode) == Some(operation) {
        return language;
    }
    Language { operations: language.operations.with(opcode, operation), ..language }
}

fn in_tapscript(rules: &RuleSet, change: impl Fn(Language) -> Language) -> RuleSet {
    let language = change(*rules.tapscript());
    rules.with_leaf(LEAF_TAPSCRIPT, language)
}

fn everywhere(rules: &RuleSet, bytes: usize) -> RuleSet {
    rules.with_element_bytes_max(bytes).unwrap_or(*rules)
}

fn apply_known(rules: &RuleSet, name: &str) -> RuleSet {
    let known = NAMED_RULES.iter().find(|known| known.name == name);
    known.map_or(*rules, |known| (known.apply)(rules))
}

impl RuleSet {
    /// The rule set of this name, or of several names with `+` between them, which apply from left to right; `None` when one is
    /// not known.
    pub fn by_name(names: &str) -> Option<Self> {
        names.split('+').try_fold(Self::TODAY, |rules, name| {
            let known = NAMED_RULES.iter().find(|known| known.name == name)?;
            Some((known.apply)(&rules))
        })
    }

    /// The name of these rules, if one name alone stands for them.
    pub fn name(&self) -> Option<&'static str> {
        let known = NAMED_RULES.iter().map(|known| known.name);
        known.into_iter().find(|name| Self::by_name(name).is_some_and(|rules| rules == *self))
    }

    /// Every name with its meaning, for help texts: lines of at most 100 characters.
    pub fn help() -> String {
        let mut help = String::from("Rule sets; several are combined with `+`:\n");
        for NamedRules { name, summary, .. } in &NAMED_RULES {
            let mut line = format!("  {name:<19}");
            for word in summary.split(' ') {
                if line.len() + 1 + word.len() > 100 {
                    help += &line;
                    help.push('\n');
                    line = " ".repeat(21);
                }
                line.push(' ');
                line += word;
            }
            help += &line;
            help.push('\n');
        }
        help
    }

    /// The error text for a rule set that is not known: a sentence without a full stop.
    pub fn unknown(names: &str) -> String {
        let is_known = |name: &&str| NAMED_RULES.iter().any(|known| known.name == *name);
        let wrong = names.split('+').find(|name| !is_known(name)).unwrap_or(names);
        let known: Vec<&str> = NAMED_RULES.iter().map(|known| known.name).collect();
        format!(
            "unknown rule set {wrong:?}; known are {}, and several with `+` between them",
            known.join(", ")
        )
    }
}
