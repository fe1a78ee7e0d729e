//! Blocks of a part with the coins they spend, with every check that needs no scripts, on several threads.

use std::sync::{Mutex, PoisonError};

use assay_consensus::block::BlockRules;
use assay_store::{BlockFiles, BlockHints, CoinRef, KeyForms};
use assay_wire::{Coin, OutPoint};

use super::ShardError;
use super::hints::PartHints;
use super::plan::Plan;
use super::result::Rejection;
use super::spends::{SpendFault, check_spends};
use super::spent::{SpentFault, SpentSource};
use super::tally::{CoinFigures, Hashing, Records, Tally};
use super::timing::{Stage, StageClock};
use crate::files::{Fault, Refused, read_block, rule};
use crate::prepared::Prepared;
use crate::validate::Source;

pub(crate) struct PlanSource<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) files: &'a BlockFiles,
    pub(crate) spent: &'a SpentSource,
    pub(crate) keys: KeyForms,
    /// The outputs that are left over, if the plan has hints.
    pub(crate) hints: Option<PartHints>,
    pub(crate) hashing: &'a Hashing,
    pub(crate) clock: &'a StageClock,
    /// Sums of threads; as many as read at a time.
    pub(crate) sums: Mutex<Vec<BlockSums>>,
}

/// Sums of one thread.
pub(crate) struct BlockSums {
    /// Coins that are not hinted as unspent, and spent ones.
    pub(crate) tally: Tally,
    /// Coins that are hinted as unspent.
    pub(crate) kept: CoinFigures,
}

/// A block that only its scripts and the sums over the whole chain can still refute.
pub(crate) struct Judged {
    pub(crate) prepared: Prepared,
    pub(crate) rules: BlockRules,
    /// The coins its inputs spend, without the coinbase.
    pub(crate) coins: Vec<Coin>,
}

/// The reason there is no such block.
pub(crate) enum PartFault {
    /// It breaks a rule, or the coins are wrong.
    Rejected(Rejection),
    /// It cannot be judged.
    Cannot(ShardError),
}

impl From<ShardError> for PartFault {
    fn from(error: ShardError) -> Self {
        Self::Cannot(error)
    }
}

impl Source for PlanSource<'_> {
    type Ready = Judged;
    type Fault = PartFault;

    fn bytes_of(&self, height: u32) -> u64 {
        let place = self.plan.place(height);
        u64::from(place.block.size) + u64::from(place.spent.bytes)
    }

    fn get_ready(&self, height: u32) -> Result<Judged, PartFault> {
        let (plan, params) = (self.plan, self.plan.params());
        let (place, hash) = (plan.place(height), plan.hash(height));
        let rejected = |reason: &str, debug: String| {
            let reason = reason.to_owned();
            PartFault::Rejected(Rejection { height, hash, reason, debug })
        };
        let hints = self.hints.as_ref().map(|hints| hints.of_block(height)).transpose()?;
        let clock = self.clock;
        let read = || read_block(params, self.files, (&place.block, &hash));
        let block = clock.time(Stage::Read, read);
        let prepared = block.map_err(|fault| self.damaged(height, fault))?;
        let view = plan.up_to(height - 1);
        let rules = BlockRules::new(params, &view, prepared.block.header(), &hash);
        clock.time(Stage::Check, || prepared.check(params, &rules)).map_err(|error| {
            if error.is_mutation() {
                return self.damaged(height, Fault::Rule(error));
            }
            let (reason, debug) = rule(&error);
            rejected(&reason, debug)
        })?;
        let parent = plan.hash(height - 1);
        let read = || self.spent.read(&place.spent, (&hash, &parent), self.keys);
        let coins = clock.time(Stage::Coins, read);
        let coins = coins.map_err(|fault| match fault {
            SpentFault::Cannot(error) => PartFault::Cannot(error.into()),
            SpentFault::Wrong(debug) => rejected(WRONG_COINS, debug),
        })?;
        let checked = clock.time(Stage::Coins, || check_spends(&prepared, &rules, &view, &coins));
        checked.map_err(|fault| match fault {
            SpendFault::Rule(error) => {
                let (reason, debug) = rule(&error);
                rejected(&reason, debug)
            }
            SpendFault::Coins(debug) => rejected(WRONG_COINS, debug),
        })?;
        let judged = Judged { prepared, rules, coins };
        let added = clock.time(Stage::Sums, || self.add_up(&judged, &hints.unwrap_or_default()));
        added.map_err(|debug| rejected(WRONG_HINTS, debug))?;
        Ok(judged)
    }
}

impl PlanSource<'_> {
    /// No copy of the block was undamaged when the plan was made, or its file has changed.
    fn damaged(&self, height: u32, fault: Fault) -> PartFault {
        let (place, hash) = (self.plan.place(height).block, self.plan.hash(height));
        let error = match fault {
            Fault::Read(error) => ShardError::from(error),
            fault => {
                let refused = Refused { fault, place, damaged: 1 };
                ShardError::Damaged(Box::new(refused.report(self.files, (hash, height))))
            }
        };
        PartFault::Cannot(error)
    }

    /// Adds the coins of a block up: spent ones, and created ones by whether they are hinted as unspent. The error describes
    /// the fault of the hints.
    fn add_up(&self, judged: &Judged, hints: &BlockHints) -> Result<(), String> {
        let idle = || self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = || BlockSums { tally: self.hashing.tally(), kept: CoinFigures::new() };
        let mut sums = idle().pop().unwrap_or_else(fresh);
        let (mut records, mut left) = (Records::default(), Records::default());
        for_each_spent(judged, |outpoint, coin| records.push(outpoint, coin));
        sums.tally.spent.add(self.hashing, &mut records);
        let mut hinted = hints.iter();
        let (mut next, mut count) = (hinted.next(), 0);
        judged.prepared.for_each_created(judged.rules.height, |outpoint, coin| {
            if next == Some(count) {
                next = hinted.next();
                sums.kept.count(outpoint, coin);
                left.push(outpoint, coin);
            } else {
                records.push(outpoint, coin);
            }
            count += 1;
        });
        if let Some(index) = next {
            return Err(format!(
                "the file says that output {index} is unspent, the block has {count} that can be spent"
            ));
        }
        sums.tally.created.add(self.hashing, &mut records);
        sums.kept.hash(&left);
        idle().push(sums);
        Ok(())
    }
}

/// The coins that a block spends, with the outpoints that they are claimed for.
pub(crate) fn for_each_spent(judged: &Judged, mut visit: impl FnMut(&OutPoint, CoinRef<'_>)) {
    let prevouts = judged.prepared.spent_prevouts();
    prevouts.iter().zip(&judged.coins).for_each(|(prevout, coin)| visit(prevout, coin.into()));
}

/// The reject reason if the files of spent coins are wrong, as far as a part can see.
const WRONG_COINS: &str = "spent-coins";
/// The same for hints.
const WRONG_HINTS: &str = "hints";
