//! Combinations of Core's script flags, as in its own tests.

use assay_consensus::script::Flags;
use assay_testkit::random::Random;

/// All flags that Core has: its lowest 21 bits.
pub(crate) fn core_flags() -> Vec<Flags> {
    Flags::NAMED.iter().map(|&(_, flag)| flag).filter(|flag| flag.bits() >> 21 == 0).collect()
}

pub(crate) fn all_core_flags() -> Flags {
    core_flags().into_iter().fold(Flags::NONE, |all, flag| all | flag)
}

/// Reads flags by name, separated by commas.
pub(crate) fn parse(text: &str) -> Flags {
    text.split(',').filter(|name| !matches!(*name, "" | "NONE")).fold(Flags::NONE, |flags, name| {
        flags | Flags::from_name(name).unwrap_or_else(|| panic!("unknown flag {name}"))
    })
}

/// WITNESS needs P2SH and CLEANSTACK needs both; drops flags without their base.
pub(crate) fn trim(flags: Flags) -> Flags {
    let flags = if flags.contains(Flags::P2SH) { flags } else { flags.without(Flags::WITNESS) };
    if flags.contains(Flags::WITNESS) { flags } else { flags.without(Flags::CLEANSTACK) }
}

/// The counterpart of [`trim`], which adds the base.
pub(crate) fn fill(flags: Flags) -> Flags {
    let flags = if flags.contains(Flags::CLEANSTACK) { flags | Flags::WITNESS } else { flags };
    if flags.contains(Flags::WITNESS) { flags | Flags::P2SH } else { flags }
}

/// Combinations that leave out one flag each, with its dependents.
fn without_each(flags: Flags) -> Vec<Flags> {
    let mut out: Vec<Flags> = core_flags()
        .into_iter()
        .map(|flag| trim(flags.without(flag)))
        .filter(|&fewer| fewer != flags)
        .collect();
    out.sort_by_key(|flags| flags.bits());
    out.dedup();
    out
}

/// A random subset of Core's flags.
pub(crate) fn roll(random: &mut Random) -> Flags {
    let bits = random.next();
    let chosen = core_flags().into_iter().filter(|flag| bits & flag.bits() != 0);
    chosen.fold(Flags::NONE, |all, flag| all | flag)
}

/// Flags and verdicts of a transaction that breaks just the rules `broken`: fewer rules keep it valid, one more does not. Flags
/// in `always` are part of every combination.
pub(crate) fn around_broken(
    broken: Flags,
    always: Flags,
    random: &mut Random,
) -> Vec<(Flags, bool)> {
    let all = all_core_flags();
    let mut out = vec![(all.without(broken), true)];
    for flag in core_flags().into_iter().filter(|flag| !always.contains(*flag)) {
        out.push((trim(all.without(broken | flag)), true));
        out.push((trim(all.without(broken | roll(random))), true));
    }
    out.extend(without_each(broken).into_iter().map(|fewer| (all.without(fewer), false)));
    out
}

/// Flags and verdicts of a transaction that is invalid just by the rules `needed`: more rules keep it invalid, one less does not.
pub(crate) fn around_needed(needed: Flags, random: &mut Random) -> Vec<(Flags, bool)> {
    let mut out = vec![(needed, false)];
    for flag in core_flags() {
        out.push((fill(needed | flag), false));
        out.push((fill(needed | roll(random)), false));
    }
    out.extend(without_each(needed).into_iter().map(|fewer| (fewer, true)));
    out
}
