//! Transactions whose scripts have passed lately, in the mempool or on trial.
//!
//! A wtxid commits to everything that scripts see: the transaction with its witnesses, and by the txids of what it spends also
//! the spent outputs. So a transaction that comes again, because it was tried before it was sent, was evicted or replaced, or
//! returns from a block that was disconnected, need not be verified again (Core `script/sigcache.h`, `ValidationCache`).

use std::collections::{HashMap, VecDeque};

use assay_consensus::script::Flags;
use assay_wire::Wtxid;

/// Transactions that are remembered; each takes about 100 bytes.
const COUNT_MAX: usize = 1 << 16;

/// What is remembered of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Verdict {
    /// The flags under which every script passed.
    flags: Flags,
    /// Signature checks that its scripts executed (BCH rule).
    sigchecks: u32,
}

/// Remembers the latest [`COUNT_MAX`] verdicts.
pub(crate) struct Verdicts {
    map: HashMap<Wtxid, Verdict>,
    /// In the order in which they came.
    order: VecDeque<Wtxid>,
    count_max: usize,
}

impl Default for Verdicts {
    fn default() -> Self {
        Self { map: HashMap::new(), order: VecDeque::new(), count_max: COUNT_MAX }
    }
}

impl Verdicts {
    /// The signature checks of a transaction whose scripts have passed under these flags at least.
    pub(crate) fn get(&self, wtxid: &Wtxid, flags: Flags) -> Option<u32> {
        let verdict = self.map.get(wtxid)?;
        verdict.flags.contains(flags).then_some(verdict.sigchecks)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Every script of a transaction has passed.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_the_latest_and_only_what_was_asked_of_them() {
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
