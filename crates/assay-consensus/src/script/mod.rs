//! The script language: whether an input may spend an output.
//!
//! [`Interpreter::verify_input`] runs input script, output script, redeem script and witness under a
//! set of [`Flags`], for Bitcoin (legacy, segwit, Taproot) and for Bitcoin Cash up to May 2022. It
//! follows the reference nodes rule by rule, including the order of checks and so the error given.
//!
//! Signature *messages* are computed here ([`TxContext`]), signatures are decided by a
//! [`SignatureChecker`]: at once, or later in batches.

mod ahead;
pub mod asm;
mod bch;
mod bch_rules;
mod checker;
mod checksig;
mod context;
mod deletion;
mod encoding;
mod error;
mod exec;
mod flags;
mod interpreter;
mod introspection;
mod keys;
mod long;
mod message;
mod num;
pub mod opcode;
mod ops;
mod output;
mod proposed;
mod rule_sets;
mod rules;
mod shared;
mod sighash;
mod stack;
mod witness;

#[cfg(test)]
pub(crate) use bch::tests::Scripted;

pub use ahead::{INPUTS_MIN as MESSAGES_TOGETHER_INPUTS_MIN, LANES as MESSAGES_TOGETHER};
pub use checker::{PqScheme, SignatureChecker, SignedMessage};
pub use context::TxContext;
pub use error::ScriptError;
pub use flags::Flags;
pub use interpreter::{InputStats, Interpreter, verify_input};
pub use keys::{KeyHashes, KeyHashesOf};
pub use long::LongMessages;
pub use message::{
    SIGHASH_ALL, SIGHASH_ANYONECANPAY, SIGHASH_FORKID, SIGHASH_NONE, SIGHASH_SINGLE, SINGLE_BUG,
};
pub use output::OutputKind;
pub use rule_sets::{NAMED_RULES, NamedRules};
pub use rules::{Copies, LEAVES_MAX, Language, Leaf, Operation, Operations, Program, RuleSet};
pub use shared::SharedHashes;
pub use sighash::TapscriptPosition;
pub use witness::{annex_hash, tap_branch_hash, tap_leaf_hash, tap_tweak_hash};
