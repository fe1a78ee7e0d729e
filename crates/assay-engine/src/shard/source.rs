//! Blocks of a part with the coins they spend, checked as far as that needs no scripts, on several threads.

use std::sync::{Mutex, PoisonError};

use assay_consensus::block::{BlockRules, is_overwritten_coinbase};
use assay_consensus::tx::is_unspendable;
use assay_store::{BlockFiles, CoinRef, KeyForms};
use assay_wire::{Coin, OutPoint};

use super::plan::Plan;
use super::result::Rejection;
use super::spends::{SpendFault, check_spends};
use super::spent::{SpentFault, SpentSource};
use super::tally::{Hashing, Records, Tally};
use super::timing::{Stage, StageClock};
use super::{ShardError, unusable};
use crate::prepared::Prepared;
use crate::validate::{Fault, Source, read_block, rule};

/// The blocks of a plan.
pub(crate) struct PlanSource<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) files: &'a BlockFiles,
    pub(crate) spent: &'a SpentSource,
    pub(crate) keys: KeyForms,
    pub(crate) hashing: &'a Hashing,
    pub(crate) clock: &'a StageClock,
    /// What threads have added up; as many as read at a time.
    pub(crate) tallies: Mutex<Vec<Tally>>,
}

/// A block that only its scripts and the sums over the whole chain can still refute.
pub(crate) struct Judged {
    pub(crate) prepared: Prepared,
    pub(crate) rules: BlockRules,
    /// What its inputs spend, coinbase left out.
    pub(crate) coins: Vec<Coin>,
}

/// Why there is no such block.
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
        clock.time(Stage::Sums, || self.add_up(&judged));
        Ok(judged)
    }
}

impl PlanSource<'_> {
    /// Another copy of the block may be whole, which `assay validate` would find.
    fn damaged(&self, height: u32, fault: Fault) -> PartFault {
        let place = &self.plan.place(height).block;
        let what = match fault {
            Fault::Read(error) => return PartFault::Cannot(error.into()),
            Fault::Changed { found } => format!("block {found} is there now"),
            Fault::Parse(error) => error.to_string(),
            Fault::Rule(error) => error.to_string(),
            Fault::Engine(error) => error.to_string(),
        };
        let (path, offset) = (self.files.path_of(place), place.offset);
        let hash = self.plan.hash(height);
        unusable(
            path,
            format!("offset {offset}: block {hash} at height {height} is damaged: {what}"),
        )
        .into()
    }

    fn add_up(&self, judged: &Judged) {
        let idle = || self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tally = idle().pop().unwrap_or_else(|| self.hashing.tally());
        let mut records = Records::default();
        for_each_spent(judged, |outpoint, coin| records.push(outpoint, coin));
        tally.spent.add(self.hashing, &mut records);
        for_each_created(judged, |outpoint, coin| records.push(outpoint, coin));
        tally.created.add(self.hashing, &mut records);
        idle().push(tally);
    }
}

/// The coins that a block spends, with the outpoints that they are claimed for.
pub(crate) fn for_each_spent(judged: &Judged, mut visit: impl FnMut(&OutPoint, CoinRef<'_>)) {
    let prevouts = judged.prepared.spent_prevouts();
    prevouts.iter().zip(&judged.coins).for_each(|(prevout, coin)| visit(prevout, coin.into()));
}

/// The coins that it creates.
pub(crate) fn for_each_created(judged: &Judged, mut visit: impl FnMut(&OutPoint, CoinRef<'_>)) {
    let Judged { prepared, rules, .. } = judged;
    let height = rules.height;
    let from = usize::from(is_overwritten_coinbase(height, &prepared.hash));
    for (tx_index, tx) in prepared.block.txs().enumerate().skip(from) {
        let txid = prepared.txids[tx_index];
        for (output, vout) in tx.outputs().zip(0..) {
            if is_unspendable(output.script_pubkey) {
                continue;
            }
            let coin = CoinRef {
                value: output.value,
                height,
                coinbase: tx_index == 0,
                script_pubkey: output.script_pubkey,
            };
            visit(&OutPoint { txid, vout }, coin);
        }
    }
}

/// The reason given where the files of spent coins are wrong, as far as a part can see.
const WRONG_COINS: &str = "spent-coins";
