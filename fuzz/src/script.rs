//! The interpreter of scripts.

use assay_consensus::script::{Flags, Interpreter, NAMED_RULES, RuleSet, TxContext};
use assay_consensus::sigops::{count_sigops, input_sigop_cost};
use assay_wire::{TxBuilder, TxOut};

use crate::input::{FirstByte, Input};

/// Core's flags are the lowest 21 bits.
const CORE_BITS: u64 = (1 << 21) - 1;
/// Proposals that only forbid.
const SOFT_FORKS: &str = "p2mr+ctv+cat+bip448";

/// The interpreter ends with a verdict on any scripts under any rules. On Bitcoin, fewer rules never reject what more rules
/// allow, which makes a soft fork, and today's rules never reject what proposals allow.
pub fn script(data: &[u8]) {
    let mut input = Input(data);
    let bits = u64::from_le_bytes(input.array());
    let fewer = u64::from_le_bytes(input.array());
    let [sequence, lock_time] = [(); 2].map(|()| u32::from_le_bytes(input.array()));
    let version = i32::from_le_bytes(input.array());
    let script_sig = input.counted();
    let script_pubkey = input.counted();
    let witness: Vec<&[u8]> = (0..input.byte() % 8).map(|_| input.counted()).collect();

    let tx = TxBuilder::new(version).input(1, 1, script_sig, sequence).lock_time(lock_time);
    let tx = tx.output(0, input.counted());
    let tx = if witness.is_empty() { tx } else { tx.witness(&witness) }.build();
    let spent = [TxOut { value: 1000, script_pubkey }];
    let context = TxContext::new(tx.view(), &spent);
    let mut interpreter = Interpreter::new();
    let mut verify = |flags| interpreter.verify_input(&context, 0, flags, &mut FirstByte);

    let flags = trim(from_bits(bits & CORE_BITS));
    let verdict = verify(flags);
    assert_eq!(verify(flags), verdict, "memory of the first run leaks into the second");
    let mut plain = Interpreter::new().hashing_every_copy();
    let by_plain = plain.verify_input(&context, 0, flags, &mut FirstByte);
    assert_eq!(by_plain, verdict, "digests that are kept change the verdict");
    if verdict.is_ok() {
        let subset = trim(from_bits(bits & fewer & CORE_BITS));
        assert!(verify(subset).is_ok(), "{flags:?} allow what {subset:?} refuse");
    }
    // Constructs reserved for later soft forks are discouraged under today's rules alone.
    let consensus = flags.without(discouraged());
    let verify_under = |names: &str| {
        let rules = RuleSet::by_name(names).expect("names of rule sets");
        let mut interpreter = Interpreter::with_rules(rules);
        interpreter.verify_input(&context, 0, consensus, &mut FirstByte).is_ok()
    };
    if verify_under(SOFT_FORKS) {
        assert!(verify_under("today"), "{SOFT_FORKS} allows what is forbidden today");
    }
    for known in &NAMED_RULES {
        verify_under(known.name);
    }

    let cash = from_bits(bits) | Flags::BCH;
    let verdict = verify(cash.without(Flags::WITNESS | Flags::TAPROOT));
    assert!(verdict.is_err() || verdict.is_ok_and(|stats| stats.sig_checks < 30_000));

    assert!(count_sigops(script_pubkey, true) <= count_sigops(script_pubkey, false));
    let cost = |flags| input_sigop_cost(script_sig, script_pubkey, tx.view().witness(0), flags);
    assert!(cost(Flags::NONE) <= cost(Flags::P2SH));
    assert!(cost(Flags::P2SH) <= cost(Flags::P2SH | Flags::WITNESS));
}

fn from_bits(bits: u64) -> Flags {
    let chosen = Flags::NAMED.iter().filter(|(_, flag)| flag.bits() & bits != 0);
    chosen.fold(Flags::NONE, |all, &(_, flag)| all | flag)
}

fn discouraged() -> Flags {
    Flags::DISCOURAGE_UPGRADABLE_NOPS
        | Flags::DISCOURAGE_UPGRADABLE_WITNESS_PROGRAM
        | Flags::DISCOURAGE_UPGRADABLE_TAPROOT_VERSION
        | Flags::DISCOURAGE_OP_SUCCESS
        | Flags::DISCOURAGE_UPGRADABLE_PUBKEYTYPE
}

/// WITNESS needs P2SH, TAPROOT and CLEANSTACK need WITNESS.
fn trim(flags: Flags) -> Flags {
    let flags = if flags.contains(Flags::P2SH) { flags } else { flags.without(Flags::WITNESS) };
    if flags.contains(Flags::WITNESS) {
        flags
    } else {
        flags.without(Flags::CLEANSTACK | Flags::TAPROOT)
    }
}
