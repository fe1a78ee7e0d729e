//! Two-pass header download for branches with too little work (Core `headerssync.h`).
//!
//! Low-difficulty headers are cheap for an attacker, and stored headers are never freed. The first pass therefore
//! keeps only the sum of work and one bit of a keyed hash of every few hundredth header. Once the work suffices,
//! all headers are requested again. The bits verify that they are the same, and headers are released once enough
//! later bits match.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};

use assay_consensus::params::PowParams;
use assay_consensus::pow::{block_work, permitted_transition};
use assay_consensus::uint256::U256;
use assay_engine::BranchStart;
use assay_wire::{BlockHash, Header};

use crate::p2p::rng::random;

pub(super) struct Presync {
    start: BranchStart,
    threshold: U256,
    limits: Limits,
    /// Commitment bits are kept at this height modulo the period.
    offset: u32,
    key: RandomState,
    bits: Bits,
    bits_max: u64,
    phase: Phase,
    // Last received header.
    last: BlockHash,
    last_bits: u32,
    height: u32,
    work: U256,
}

enum Phase {
    AddingUp,
    Again {
        waiting: VecDeque<Short>,
        before_first: BlockHash,
        /// True once the work suffices: later headers need no comparison.
        is_enough: bool,
    },
}

/// Commitment period and size of the header buffer.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    period: u32,
    waiting_max: usize,
}

impl Limits {
    /// Core's values, from simulation (`kernel/chainparams.cpp`, `m_headers_sync_params`).
    pub(super) fn of(chain: &str) -> Self {
        let (period, waiting_max) = match chain {
            "test" => (673, 14_460),
            "testnet4" => (606, 16_092),
            "signet" => (620, 15_724),
            "regtest" => (275, 7017),
            _ => (641, 15_218),
        };
        Self { period, waiting_max }
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    pub(super) headers: Vec<Header>,
    /// True if more are to be requested; otherwise presync ends.
    pub(super) wants_more: bool,
}

impl Presync {
    /// For a branch from `start`; `now_s` bounds its length.
    pub(super) fn new(start: BranchStart, threshold: U256, limits: Limits, now_s: u64) -> Self {
        // By the median time rule, no valid chain has more than six blocks per second.
        let seconds = now_s.saturating_sub(u64::from(start.median_time_past_s)) + FUTURE_S;
        Self {
            threshold,
            limits,
            offset: random(u64::from(limits.period)) as u32,
            key: RandomState::new(),
            bits: Bits::default(),
            bits_max: 6 * seconds / u64::from(limits.period),
            phase: Phase::AddingUp,
            last: start.hash,
            last_bits: start.bits,
            height: start.height,
            work: start.chain_work,
            start,
        }
    }

    /// Processes the next headers, whose proof of work has been checked; `is_full` if more may follow.
    ///
    /// # Errors
    /// The reason for which they are no continuation; presync ends.
    pub(super) fn take(
        &mut self,
        headers: &[Header],
        is_full: bool,
        pow: &PowParams,
    ) -> Result<Progress, &'static str> {
        for header in headers {
            self.take_one(header, pow)?;
        }
        let headers = self.release();
        match &mut self.phase {
            Phase::AddingUp if self.work >= self.threshold => {
                self.begin_again();
                Ok(Progress { headers, wants_more: true })
            }
            // Without more headers its work is too little.
            Phase::AddingUp => Ok(Progress { headers, wants_more: is_full }),
            Phase::Again { waiting, is_enough, .. } => {
                let is_done = waiting.is_empty() && *is_enough;
                Ok(Progress { headers, wants_more: is_full && !is_done })
            }
        }
    }

    /// Header from which to request more.
    pub(super) fn last(&self) -> BlockHash {
        self.last
    }

    pub(super) fn start(&self) -> BlockHash {
        self.start.hash
    }

    /// Height of the first pass; `None` in the second.
    pub(super) fn height(&self) -> Option<u32> {
        matches!(self.phase, Phase::AddingUp).then_some(self.height)
    }

    fn take_one(&mut self, header: &Header, pow: &PowParams) -> Result<(), &'static str> {
        if header.prev_block != self.last {
            return Err("non-continuous headers");
        }
        let height = self.height + 1;
        if !permitted_transition(pow, height, self.last_bits, header.bits) {
            return Err("invalid difficulty transition");
        }
        self.work = self.work.wrapping_add(block_work(header.bits));
        let hash = header.hash();
        let is_marked = height % self.limits.period == self.offset;
        let bit = is_marked && self.key.hash_one(hash.0) & 1 == 1;
        match &mut self.phase {
            Phase::AddingUp if is_marked => {
                self.bits.push(bit);
                if self.bits.count > self.bits_max {
                    return Err("exceeded max commitments");
                }
            }
            Phase::AddingUp => {}
            Phase::Again { waiting, is_enough, .. } => {
                *is_enough |= self.work >= self.threshold;
                if is_marked && !*is_enough {
                    match self.bits.take() {
                        None => return Err("commitment overrun"),
                        Some(kept) if kept != bit => return Err("commitment mismatch"),
                        Some(_) => {}
                    }
                }
                waiting.push_back(Short::of(header));
            }
        }
        (self.last, self.last_bits, self.height) = (hash, header.bits, height);
        Ok(())
    }

    fn begin_again(&mut self) {
        let BranchStart { hash, height, bits, chain_work, .. } = self.start;
        (self.last, self.last_bits, self.height, self.work) = (hash, bits, height, chain_work);
        self.phase =
            Phase::Again { waiting: VecDeque::new(), before_first: hash, is_enough: false };
    }

    /// Releases headers verified by enough later bits.
    fn release(&mut self) -> Vec<Header> {
        let Phase::Again { waiting, before_first, is_enough } = &mut self.phase else {
            return Vec::new();
        };
        let kept = if *is_enough { 0 } else { self.limits.waiting_max };
        let count = waiting.len().saturating_sub(kept);
        let whole = waiting.drain(..count).map(|short| {
            let header = short.after(*before_first);
            *before_first = header.hash();
            header
        });
        whole.collect()
    }
}

/// Header without its parent hash.
struct Short {
    version: i32,
    merkle_root: [u8; 32],
    time: u32,
    bits: u32,
    nonce: u32,
}

impl Short {
    fn of(header: &Header) -> Self {
        let &Header { version, merkle_root, time, bits, nonce, .. } = header;
        Self { version, merkle_root, time, bits, nonce }
    }

    fn after(self, prev_block: BlockHash) -> Header {
        let Self { version, merkle_root, time, bits, nonce } = self;
        Header { version, prev_block, merkle_root, time, bits, nonce }
    }
}

#[derive(Default)]
struct Bits {
    words: Vec<u64>,
    count: u64,
    taken: u64,
}

impl Bits {
    fn push(&mut self, bit: bool) {
        if self.count.is_multiple_of(64) {
            self.words.push(0);
        }
        if let Some(word) = self.words.last_mut() {
            *word |= u64::from(bit) << (self.count % 64);
        }
        self.count += 1;
    }

    fn take(&mut self) -> Option<bool> {
        let word = *self.words.get((self.taken / 64) as usize)?;
        let bit = (self.taken < self.count).then_some(word >> (self.taken % 64) & 1 == 1)?;
        self.taken += 1;
        Some(bit)
    }
}

/// Maximum lead of block times over ours (Core `chain.h`, `MAX_FUTURE_BLOCK_TIME`).
const FUTURE_S: u64 = 2 * 3600;

#[cfg(test)]
mod tests {
    use assay_consensus::params::ChainParams;

    use super::*;

    const LIMITS: Limits = Limits { period: 3, waiting_max: 50 };
    const EASY: u32 = 0x207f_ffff;

    fn start() -> BranchStart {
        let (hash, bits) = (BlockHash([1; 32]), EASY);
        let median_time_past_s = 1_000_000;
        BranchStart { hash, height: 0, bits, chain_work: U256::ZERO, median_time_past_s }
    }

    /// Headers on top of the start; `salt` distinguishes branches.
    fn branch(count: usize, salt: u8) -> Vec<Header> {
        let mut prev_block = start().hash;
        let header = |nonce| {
            let header = Header {
                version: 4,
                prev_block,
                merkle_root: [salt; 32],
                time: 1_000_000,
                bits: EASY,
                nonce,
            };
            prev_block = header.hash();
            header
        };
        (0..count as u32).map(header).collect()
    }

    fn presync(work: u64) -> Presync {
        Presync::new(start(), U256::from(2 * work), LIMITS, 2_000_000)
    }

    fn pow() -> PowParams {
        ChainParams::by_name("regtest").unwrap().pow
    }

    #[test]
    fn second_pass_releases_all_headers() {
        let headers = branch(500, 0);
        let mut presync = presync(450);
        for part in headers.chunks(100).take(5) {
            assert!(presync.height().is_some());
            let progress = presync.take(part, true, &pow()).unwrap();
            assert!(progress.headers.is_empty() && progress.wants_more);
        }
        assert_eq!((presync.height(), presync.last()), (None, start().hash), "all over again");
        let mut released = Vec::new();
        for (index, part) in headers.chunks(100).enumerate() {
            let progress = presync.take(part, true, &pow()).unwrap();
            released.extend(progress.headers);
            let Phase::Again { waiting, .. } = &presync.phase else { panic!() };
            assert!(waiting.len() <= LIMITS.waiting_max);
            assert_eq!(progress.wants_more, index < 4);
        }
        assert_eq!(released, headers);
    }

    #[test]
    fn second_pass_rejects_another_branch() {
        let mut presync = presync(450);
        for part in branch(500, 0).chunks(100) {
            presync.take(part, true, &pow()).unwrap();
        }
        let mut released = 0;
        let end =
            branch(500, 7).chunks(10).find_map(|part| match presync.take(part, true, &pow()) {
                Ok(progress) => {
                    released += progress.headers.len();
                    None
                }
                Err(reason) => Some(reason),
            });
        assert_eq!((end, released), (Some("commitment mismatch"), 0));
    }

    #[test]
    fn rejects_low_work_and_endless_branches() {
        let headers = branch(100, 0);
        let end = presync(450).take(&headers, false, &pow()).unwrap();
        assert_eq!(end, Progress::default());
        let gap = presync(450).take(&headers[1..], true, &pow());
        assert_eq!(gap, Err("non-continuous headers"));
        // Longer than any valid chain.
        let mut endless = Presync::new(start(), U256::from(u64::MAX), LIMITS, 0);
        endless.bits_max = 10;
        assert_eq!(endless.take(&headers, true, &pow()), Err("exceeded max commitments"));
        let main = ChainParams::by_name("main").unwrap().pow;
        let mut harder = branch(1, 0);
        harder[0].bits = 0x1d00_ffff;
        let fault = presync(450).take(&harder, true, &main);
        assert_eq!(fault, Err("invalid difficulty transition"));
    }

    #[test]
    fn bits_round_trip() {
        let mut bits = Bits::default();
        let pattern = |index: u64| (index * index / 3).is_multiple_of(2);
        (0..200).for_each(|index| bits.push(pattern(index)));
        for index in 0..200 {
            assert_eq!(bits.take(), Some(pattern(index)));
        }
        assert_eq!(bits.take(), None);
    }
}
