//! Cache of transactions whose scripts passed recently, in the mempool or on trial.
//!
//! A wtxid commits to all inputs of scripts: the transaction with its witnesses, and by the prevout txids also the spent outputs.
//! So a transaction that appears again, after a trial, an eviction, a replacement or a disconnected block, need not be verified
//! again (Core `script/sigcache.h`, `ValidationCache`).

use std::collections::{HashMap, VecDeque};

use assay_consensus::script::Flags;
use assay_wire::Wtxid;

use super::graph::ClusterId;

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

/// Diagram results of the latest replacements, valid while none of their clusters has changed.
#[derive(Default)]
pub(super) struct DiagramVerdicts {
    map: HashMap<Newcomers, (Vec<ClusterId>, bool)>,
    /// In insertion order.
    order: VecDeque<Newcomers>,
}

/// New transactions and their modified fees.
pub(super) type Newcomers = Vec<(Wtxid, i64)>;

/// New transactions, the clusters that they would change, and whether the diagram improves.
pub(super) type DiagramVerdict = (Newcomers, Vec<ClusterId>, bool);

impl DiagramVerdicts {
    /// Each takes up to 2 kB.
    const COUNT_MAX: usize = 1024;

    pub(super) fn get(&self, names: &Newcomers, ids: &[ClusterId]) -> Option<bool> {
        let (known, is_better) = self.map.get(names)?;
        (known == ids).then_some(*is_better)
    }

    pub(super) fn put(&mut self, (names, ids, is_better): DiagramVerdict) {
        if self.map.insert(names.clone(), (ids, is_better)).is_none() {
            self.order.push_back(names);
        }
        if self.order.len() > Self::COUNT_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.map.remove(&oldest);
        }
    }
}

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
    #[test]
    fn a_verdict_holds_for_the_same_transactions_fees_and_clusters() {
        type Other = (&'static [(u8, i64)], &'static [ClusterId]);
        let names = |names: &[(u8, i64)]| -> Newcomers {
            names.iter().map(|(id, fee_sat)| (Wtxid([*id; 32]), *fee_sat)).collect()
        };
        let known = names(&[(1, 500), (2, 900)]);
        let mut verdicts = DiagramVerdicts::default();
        verdicts.put((known.clone(), vec![7, 9], true));
        assert_eq!(verdicts.get(&known, &[7, 9]), Some(true));
        let others: [Other; 7] = [
            (&[(3, 500), (2, 900)], &[7, 9]),
            (&[(1, 501), (2, 900)], &[7, 9]),
            (&[(2, 900), (1, 500)], &[7, 9]),
            (&[(1, 500)], &[7, 9]),
            (&[(1, 500), (2, 900)], &[8, 9]),
            (&[(1, 500), (2, 900)], &[7]),
            (&[(1, 500), (2, 900)], &[7, 9, 10]),
        ];
        for (other, ids) in others {
            assert_eq!(verdicts.get(&names(other), ids), None, "{other:?} {ids:?}");
        }
        // Other clusters, so another result.
        verdicts.put((known.clone(), vec![7, 10], false));
        assert_eq!(verdicts.get(&known, &[7, 10]), Some(false));
        assert_eq!(verdicts.get(&known, &[7, 9]), None);
    }
}
