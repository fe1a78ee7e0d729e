//! A block template: a complete block except for its work.

use std::sync::Arc;

use assay_consensus::chain::Ancestors;
use assay_consensus::commitment::{txid_merkle_root, witness_commitment_index};
use assay_consensus::header::MAX_TIMEWARP_S;
use assay_consensus::params::ChainParams;
use assay_consensus::pow::next_work_required;
use assay_wire::{Header, Transaction, Txid, Wtxid, encode};

use super::coinbase::coinbase;

#[derive(Clone, Debug)]
pub struct TemplateTx {
    pub tx: Arc<Transaction>,
    pub txid: Txid,
    pub wtxid: Wtxid,
    /// Fee, satoshi; 0 if not computed.
    pub fee_sat: i64,
    /// Cost of its signature operations (BIP141); on Bitcoin Cash signature checks.
    pub sigop_cost: u64,
}

/// The next block, complete except for its work.
#[derive(Clone, Debug)]
pub struct BlockTemplate {
    /// The header, with nonce 0.
    pub header: Header,
    pub height: u32,
    pub coinbase: Transaction,
    /// The other transactions, in block order.
    pub txs: Vec<TemplateTx>,
    /// Minimum time of the header.
    pub min_time: u32,
    /// Number of mempool changes at its creation.
    pub mempool_updates: u64,
}

impl BlockTemplate {
    /// Adds coinbase and header to `txs`; time and target are those of `now_s`.
    pub(crate) fn new<A: Ancestors>(
        (params, ancestors, now_s): (&ChainParams, &A, u64),
        version: i32,
        (value_sat, coinbase_script): (i64, &[u8]),
        mut txs: Vec<TemplateTx>,
        mempool_updates: u64,
    ) -> Self {
        let parent_height = ancestors.tip_height();
        let height = parent_height + 1;
        if params.cash.is_some() {
            // The canonical order (November 2018): by txid read as a number.
            txs.sort_by(|a, b| a.txid.0.iter().rev().cmp(b.txid.0.iter().rev()));
        }
        let wtxids = txs.iter().map(|tx| tx.wtxid);
        let coinbase = coinbase(params, height, value_sat, coinbase_script, wtxids);
        let txids: Vec<Txid> =
            std::iter::once(coinbase.view().txid()).chain(txs.iter().map(|tx| tx.txid)).collect();
        let header = Header {
            version,
            prev_block: ancestors.header_at(parent_height).hash,
            merkle_root: txid_merkle_root(&txids).0,
            time: 0,
            bits: 0,
            nonce: 0,
        };
        let min_time = min_time(params, ancestors);
        let mut template = Self { header, height, coinbase, txs, min_time, mempool_updates };
        template.refresh(params, ancestors, now_s);
        template
    }

    /// Updates the time to `now_s`, and the target if it depends on the time.
    pub(crate) fn refresh<A: Ancestors>(
        &mut self,
        params: &ChainParams,
        ancestors: &A,
        now_s: u64,
    ) {
        let now = u32::try_from(now_s).unwrap_or(u32::MAX);
        self.header.time = self.header.time.max(self.min_time).max(now);
        self.header.bits = next_work_required(params, ancestors, self.header.time);
    }

    /// The witness commitment script, if there is one.
    pub fn witness_commitment(&self) -> Option<&[u8]> {
        let coinbase = self.coinbase.view();
        witness_commitment_index(coinbase).map(|index| coinbase.output(index).script_pubkey)
    }

    /// Output value of the coinbase, satoshi.
    pub fn coinbase_value_sat(&self) -> i64 {
        self.coinbase.view().outputs().map(|output| output.value).sum()
    }

    /// The serialised block with `header`, which may have another nonce.
    pub fn block(&self, header: &Header) -> Vec<u8> {
        let length: usize = self.txs.iter().map(|tx| tx.tx.bytes().len()).sum();
        let mut out = Vec::with_capacity(100 + self.coinbase.bytes().len() + length);
        out.extend(header.to_bytes());
        encode::compact_size(&mut out, 1 + self.txs.len() as u64);
        out.extend(self.coinbase.bytes());
        for tx in &self.txs {
            out.extend(tx.tx.bytes());
        }
        out
    }
}

/// Core's `GetMinimumTime`: applies the rule of BIP94 on all chains, in case they adopt it.
fn min_time<A: Ancestors>(params: &ChainParams, ancestors: &A) -> u32 {
    let parent_height = ancestors.tip_height();
    let after_median = ancestors.median_time_past_at(parent_height).saturating_add(1);
    if !(parent_height + 1).is_multiple_of(params.pow.retarget_interval()) {
        return after_median;
    }
    let parent_time = ancestors.header_at(parent_height).time;
    after_median.max(parent_time.saturating_sub(MAX_TIMEWARP_S as u32))
}
