//! Combinations of Core's script flags, as in its own tests.

use assay_consensus::script::Flags;

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
pub(crate) fn without_each(flags: Flags) -> Vec<Flags> {
    let mut out: Vec<Flags> = core_flags()
        .into_iter()
        .map(|flag| trim(flags.without(flag)))
        .filter(|&fewer| fewer != flags)
        .collect();
    out.sort_by_key(|flags| flags.bits());
    out.dedup();
    out
}

/// Random subsets of Core's flags, from a fixed seed.
pub(crate) struct FlagDice(pub(crate) u64);

impl FlagDice {
    pub(crate) fn roll(&mut self) -> Flags {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let bits = self.0 >> 20;
        core_flags()
            .into_iter()
            .filter(|flag| bits & flag.bits() != 0)
            .fold(Flags::NONE, |all, flag| all | flag)
    }
}
