//! Cache of transactions whose scripts passed recently, in the mempool or on trial.
//!
//! A wtxid commits to all inputs of scripts: the transaction with its witnesses, and by the prevout txids also the spent outputs.
//! So a transaction that appears again, after a trial, an eviction, a replacement or a disconnected block, need not be verified
//! again (Core `script/sigcache.h`, `ValidationCache`).

use std::collections::{HashMap, VecDeque};

use assay_consensus::script::Flags;
use assay_wire::Wtxid;

/// Limit of cached transactions; each takes about 100 bytes.
const COUNT_MAX: usize = 1 << 16;

/// Cached result of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Verdict {
    /// Flags under which every script passed.
    flags: Flags,
    /// Executed signature checks (BCH rule).
    sigchecks: u32,
}

/// Caches the latest [`COUNT_MAX`] results.
pub(crate) struct Verdicts {
    map: HashMap<Wtxid, Verdict>,
    /// In insertion order.
    order: VecDeque<Wtxid>,
    count_max: usize,
}

impl Default for Verdicts {
    fn default() -> Self {
        Self { map: HashMap::new(), order: VecDeque::new(), count_max: COUNT_MAX }
    }
}

impl Verdicts {
    /// The signature checks of a transaction whose scripts passed under at least these flags.
    pub(crate) fn get(&self, wtxid: &Wtxid, flags: Flags) -> Option<u32> {
        let verdict = self.map.get(wtxid)?;
        covers(verdict.flags, flags).then_some(verdict.sigchecks)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Records that every script of a transaction passed.
    pub(crate) fn put(&mut self, wtxid: Wtxid, flags: Flags, sigchecks: u32) {
        if self.map.insert(wtxid, Verdict { flags, sigchecks }).is_some() {
            return;
        }
        self.order.push_back(wtxid);
        if self.order.len() > self.count_max
            && let Some(oldest) = self.order.pop_front()
        {
            self.map.remove(&oldest);
        }
    }
}

/// True if scripts that passed under the flags `verified` also pass under `asked`: every rule of `asked` was enforced, and no
/// other rule enabled a spend.
pub(super) fn covers(verified: Flags, asked: Flags) -> bool {
    let more = verified.without(asked);
    verified.contains(asked) && !ENABLING.iter().any(|flag| more.intersects(*flag))
}

/// Flags that enable spends: hard forks of the Bitcoin Cash family. Every other flag only restricts.
const ENABLING: [Flags; 9] = [
    Flags::BCH,
    Flags::SIGHASH_FORKID,
    Flags::MONOLITH_OPCODES,
    Flags::CHECKDATASIG,
    Flags::SCHNORR,
    Flags::SCHNORR_MULTISIG,
    Flags::REVERSEBYTES,
    Flags::INTEGERS_64_BIT,
    Flags::NATIVE_INTROSPECTION,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_transaction_or_another_meaning_of_scripts_is_not_known() {
        let wtxid = Wtxid([7; 32]);
        let (block, standard) = (Flags::BCH_MAY_2022, Flags::BCH_STANDARD);
        let mut verdicts = Verdicts::default();
        verdicts.put(wtxid, standard, 3);
        assert_eq!(verdicts.get(&wtxid, standard), Some(3));
        assert_eq!(verdicts.get(&wtxid, block), Some(3), "policy only forbids more");
        for bit in 0..256 {
            let mut other = wtxid;
            other.0[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(verdicts.get(&other, standard), None, "bit {bit}");
        }
        for (name, flag) in Flags::NAMED {
            if standard.contains(*flag) {
                let expected = (!ENABLING.contains(flag)).then_some(3);
                assert_eq!(
                    verdicts.get(&wtxid, standard.without(*flag)),
                    expected,
                    "without {name}"
                );
            } else {
                assert_eq!(verdicts.get(&wtxid, standard | *flag), None, "with {name}");
            }
        }
        for earlier in [Flags::BCH_MAY_2020, Flags::BCH_AUG_2017, Flags::P2SH] {
            assert_eq!(verdicts.get(&wtxid, earlier), None, "scripts of before an upgrade");
        }
    }

    #[test]
    fn caches_the_latest_and_checks_their_flags() {
        let mut verdicts = Verdicts { count_max: 2, ..Verdicts::default() };
        let wtxid = |byte| Wtxid([byte; 32]);
        let (few, many) = (Flags::BITCOIN_BLOCK, Flags::BITCOIN_STANDARD);
        assert_eq!(verdicts.get(&wtxid(1), few), None);
        verdicts.put(wtxid(1), few, 3);
        verdicts.put(wtxid(2), many, 4);
        assert_eq!(verdicts.get(&wtxid(1), few), Some(3));
        assert_eq!(verdicts.get(&wtxid(1), many), None);
        assert_eq!(verdicts.get(&wtxid(2), few), Some(4));
        verdicts.put(wtxid(1), many, 3);
        assert_eq!(verdicts.get(&wtxid(1), many), Some(3));
        verdicts.put(wtxid(3), few, 5);
        assert_eq!(verdicts.get(&wtxid(1), few), None, "the oldest has gone");
        assert_eq!((verdicts.map.len(), verdicts.order.len()), (2, 2));
    }
}
