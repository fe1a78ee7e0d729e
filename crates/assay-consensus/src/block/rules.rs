//! The rules in force for one block, worked out once so that any thread can apply them.

use assay_wire::{BlockHash, Header, Tx};

use crate::amount::money_range;
use crate::block::{BlockError, TxFacts};
use crate::chain::Ancestors;
use crate::locktime::{SequenceLocks, has_sequence_locks, is_final_tx};
use crate::params::{CashRules, ChainParams, MAX_BLOCK_SIGOPS_COST, WITNESS_SCALE_FACTOR};
use crate::script::Flags;
use crate::sigops::{MAX_TX_LEGACY_SIGOPS, spends_sigop_cost, tx_legacy_sigops};
use crate::subsidy::block_subsidy;
use crate::tx::{SpentCoin, TxError, check_tx_inputs};

/// The rules for the block at one place of one chain. Plain data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each says whether one rule is in force")]
pub struct BlockRules {
    pub height: u32,
    pub flags: Flags,
    /// The time that a lock time in seconds is compared with.
    pub lock_time_cutoff_s: i64,
    pub parent_median_time_past: u32,
    /// `true` if relative lock times apply (BIP68).
    pub sequence_locks: bool,
    /// `true` if the coinbase begins with the height (BIP34).
    pub height_in_coinbase: bool,
    /// `true` if the block commits to its witnesses (BIP141).
    pub segwit: bool,
    /// `true` if no output may overwrite an unspent one, as the coins were before the block (BIP30).
    /// `false` if it has been shown that none can.
    pub bip30: bool,
    /// `true` if the consensus cleanup applies (BIP54).
    pub bip54: bool,
    /// The amount the block may create, satoshi.
    pub subsidy: i64,
    pub cash: Option<CashRules>,
}

impl BlockRules {
    /// The rules for the block with this header and hash, which extends the tip of `ancestors`.
    pub fn new<A: Ancestors + ?Sized>(
        params: &ChainParams,
        ancestors: &A,
        header: &Header,
        hash: &BlockHash,
    ) -> Self {
        let bip30 = bip30_needed(params, ancestors, hash);
        let mut rules = Self::next(params, ancestors);
        rules.flags = params.block_script_flags(rules.height, hash);
        rules.sequence_locks = params.csv_active(rules.height);
        rules.bip30 = bip30;
        if !rules.sequence_locks {
            rules.lock_time_cutoff_s = i64::from(header.time);
        }
        rules
    }

    /// The rules for the block after the tip of `ancestors`: those of the mempool.
    ///
    /// BIP68 and BIP113 apply from the start, as in every mempool. [`BlockRules::flags`] has what
    /// blocks must obey, without policy.
    pub fn next<A: Ancestors + ?Sized>(params: &ChainParams, ancestors: &A) -> Self {
        let parent_height = ancestors.tip_height();
        let height = parent_height + 1;
        let parent_median_time_past = ancestors.median_time_past_at(parent_height);
        Self {
            height,
            flags: params.block_script_flags(height, &BlockHash::ZERO),
            lock_time_cutoff_s: i64::from(parent_median_time_past),
            parent_median_time_past,
            sequence_locks: true,
            height_in_coinbase: height >= params.activation.bip34,
            segwit: params.segwit_active(height),
            bip30: true,
            bip54: params.bip54_active(height),
            subsidy: block_subsidy(params, height),
            cash: params.cash,
        }
    }

    /// Checks what a transaction's place in the chain allows, whatever it spends: the lock time,
    /// and under BIP54 or on Bitcoin Cash its size.
    ///
    /// # Errors
    /// The first rule broken.
    pub fn check_tx(&self, tx: Tx<'_>) -> Result<(), TxError> {
        if !is_final_tx(tx, self.height, self.lock_time_cutoff_s) {
            return Err(TxError::NotFinal { lock_time: tx.lock_time() });
        }
        if self.bip54 && tx.stripped_size() == MERKLE_NODE_BYTES {
            return Err(TxError::MerkleNodeSize { bytes: MERKLE_NODE_BYTES });
        }
        let Some(cash) = &self.cash else { return Ok(()) };
        let (bytes, bytes_min) = (tx.total_size(), cash.tx_bytes_min);
        if bytes < bytes_min {
            return Err(TxError::Undersize { bytes, bytes_min });
        }
        Ok(())
    }

    /// Checks a transaction against the outputs it spends, scripts apart: ages, amounts, relative
    /// lock times; and counts its signature operations.
    ///
    /// `spent` lists the outputs spent, input by input. For a coinbase it is empty and only the
    /// operations are counted. `median_time_past_at` is asked only about relative lock times in
    /// seconds.
    ///
    /// # Errors
    /// The first rule broken, in Core's order.
    pub fn check_spends<'c, S>(
        &self,
        tx: Tx<'_>,
        spent: S,
        median_time_past_at: impl Fn(u32) -> u32,
    ) -> Result<TxSpend, TxError>
    where
        S: Iterator<Item = SpentCoin<'c>> + Clone,
    {
        self.check_spends_knowing((tx, TxFacts::of(tx)), spent, median_time_past_at)
    }

    /// [`BlockRules::check_spends`] for a transaction whose facts are known.
    ///
    /// # Errors
    /// As [`BlockRules::check_spends`].
    pub fn check_spends_knowing<'c, S>(
        &self,
        (tx, facts): (Tx<'_>, TxFacts),
        spent: S,
        median_time_past_at: impl Fn(u32) -> u32,
    ) -> Result<TxSpend, TxError>
    where
        S: Iterator<Item = SpentCoin<'c>> + Clone,
    {
        let mut fee = 0;
        if !facts.is_coinbase {
            fee = check_tx_inputs(tx, spent.clone(), self.height)?;
            if self.bip54 {
                check_tx_legacy_sigops(tx, spent.clone())?;
            }
            if facts.has_sequence_locks {
                self.check_sequence_locks(tx, spent.clone(), median_time_past_at)?;
            }
        }
        let sigop_cost = if self.cash.is_some() {
            0
        } else {
            u64::from(facts.legacy_sigops) * WITNESS_SCALE_FACTOR
                + spends_sigop_cost(tx, spent.map(|coin| coin.script_pubkey), self.flags)
        };
        Ok(TxSpend { fee, sigop_cost })
    }

    /// Checks the relative lock times of a transaction (BIP68).
    ///
    /// # Errors
    /// [`TxError::SequenceLocked`].
    pub fn check_sequence_locks<'c>(
        &self,
        tx: Tx<'_>,
        spent: impl IntoIterator<Item = SpentCoin<'c>>,
        median_time_past_at: impl Fn(u32) -> u32,
    ) -> Result<(), TxError> {
        if !self.sequence_locks || !has_sequence_locks(tx) {
            return Ok(());
        }
        let heights = spent.into_iter().map(|coin| coin.height);
        let locks = SequenceLocks::of(tx, heights, median_time_past_at);
        if locks.permit(self.height, self.parent_median_time_past) {
            return Ok(());
        }
        Err(TxError::SequenceLocked { lock_height: locks.height, lock_time_s: locks.time_s })
    }

    /// Checks how many signature checks the scripts of one transaction executed; on Bitcoin any
    /// number will do.
    ///
    /// # Errors
    /// [`TxError::SigChecks`].
    pub fn check_tx_sigchecks(&self, sigchecks: u64) -> Result<(), TxError> {
        let Some(cash) = &self.cash else { return Ok(()) };
        let sigchecks_max = u64::from(cash.tx_sigchecks_max);
        if sigchecks > sigchecks_max {
            return Err(TxError::SigChecks { sigchecks, sigchecks_max });
        }
        Ok(())
    }

    /// Checks how many signature checks the scripts of the whole block executed; on Bitcoin any
    /// number will do.
    ///
    /// # Errors
    /// [`BlockError::SigChecks`].
    pub fn check_block_sigchecks(&self, sigchecks: u64) -> Result<(), BlockError> {
        let Some(cash) = &self.cash else { return Ok(()) };
        let sigchecks_max = cash.block_sigchecks_max();
        if sigchecks > sigchecks_max {
            return Err(BlockError::SigChecks { sigchecks, sigchecks_max });
        }
        Ok(())
    }
}

/// BIP54's limit on what the scripts of one transaction may check.
fn check_tx_legacy_sigops<'c>(
    tx: Tx<'_>,
    spent: impl Iterator<Item = SpentCoin<'c>>,
) -> Result<(), TxError> {
    let sigops = tx_legacy_sigops(tx, spent.map(|coin| coin.script_pubkey));
    if sigops > MAX_TX_LEGACY_SIGOPS {
        return Err(TxError::LegacySigOps { sigops, sigops_max: MAX_TX_LEGACY_SIGOPS });
    }
    Ok(())
}

/// Bytes of two hashes: an inner node of a merkle tree.
const MERKLE_NODE_BYTES: usize = 64;

/// The result of [`BlockRules::check_spends`] for one transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxSpend {
    /// Inputs less outputs, satoshi.
    pub fee: i64,
    /// Cost of the signature operations (BIP141); 0 on Bitcoin Cash, which counts executed checks.
    pub sigop_cost: u64,
}

/// Sums over the transactions of a block, in block order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockTotals {
    /// Fees, satoshi.
    pub fees: i64,
    pub sigop_cost: u64,
}

impl BlockTotals {
    /// Adds what one transaction contributes.
    ///
    /// # Errors
    /// [`BlockError::FeesOutOfRange`] or [`BlockError::SigOps`].
    pub fn add(&mut self, tx_index: usize, spend: TxSpend) -> Result<(), BlockError> {
        // Both are at most all money, so the sum cannot overflow.
        self.fees += spend.fee;
        if !money_range(self.fees) {
            return Err(BlockError::FeesOutOfRange { tx_index, fees: self.fees });
        }
        self.sigop_cost += spend.sigop_cost;
        if self.sigop_cost > MAX_BLOCK_SIGOPS_COST {
            let (cost, cost_max) = (self.sigop_cost, MAX_BLOCK_SIGOPS_COST);
            return Err(BlockError::SigOps { cost, cost_max, with_spends: true });
        }
        Ok(())
    }
}

/// Returns `true` if the unspent outputs must be searched for outputs that the block would overwrite.
///
/// Not in the two blocks that did overwrite, and not where BIP34 has made every coinbase unique:
/// on the real chain from its activation up to the first height that an old coinbase had claimed
/// by chance (Core `validation.cpp`, `ConnectBlock`).
fn bip30_needed<A: Ancestors + ?Sized>(
    params: &ChainParams,
    ancestors: &A,
    hash: &BlockHash,
) -> bool {
    let height = ancestors.tip_height() + 1;
    if height >= BIP34_IMPLIES_BIP30_LIMIT {
        return true;
    }
    if repeats_coinbase(height, hash) {
        return false;
    }
    let bip34 = params.activation.bip34;
    let on_real_chain = bip34 < height
        && params.activation.bip34_hash.is_some_and(|real| ancestors.header_at(bip34).hash == real);
    !on_real_chain
}

/// From here on coinbases of before BIP34 may have claimed a height.
const BIP34_IMPLIES_BIP30_LIMIT: u32 = 1_983_702;

/// The blocks whose coinbase repeated an unspent one.
const BIP30_REPEATS: [(u32, BlockHash); 2] = [
    (
        91_842,
        crate::hex::block_hash("00000000000a4d0a398161ffc163c503763b1f4360639393e0e4c8e300e0caec"),
    ),
    (
        91_880,
        crate::hex::block_hash("00000000000743f190a18c5577a3c2d2a1f610ae9601ac046a38084ccb7cd721"),
    ),
];

/// Returns `true` if a later block overwrote the coinbase of this one while its output was unspent. That output never
/// became spendable (Core `validation.cpp`, `IsBIP30Unspendable`).
pub fn is_overwritten_coinbase(height: u32, hash: &BlockHash) -> bool {
    OVERWRITTEN_COINBASES.contains(&(height, *hash))
}

/// Returns `true` if this block is one of the two that repeated an unspent coinbase.
pub fn repeats_coinbase(height: u32, hash: &BlockHash) -> bool {
    BIP30_REPEATS.contains(&(height, *hash))
}

/// The blocks whose coinbase those repeated.
const OVERWRITTEN_COINBASES: [(u32, BlockHash); 2] = [
    (
        91_722,
        crate::hex::block_hash("00000000000271a2dc26e7667f8419f2e15416dc6955e5a6c6cdf3f2574dd08e"),
    ),
    (
        91_812,
        crate::hex::block_hash("00000000000af0aed4792b1acee3d966af36cf5def14935db8de83d6f9306f2f"),
    ),
];
