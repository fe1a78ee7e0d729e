//! Small forged chains and engines for them.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use assay_consensus::commitment::{witness_commitment, witness_commitment_index};
use assay_consensus::params::ChainParams;
use assay_engine::{Config, Engine, SubmitOutcome, UtxoStats};
use assay_forge::{ForgeOptions, Ledger, Recipe, forge};
use assay_wire::{Block, BlockHash, Header};
use tempfile::TempDir;

/// A forged chain in its own folder.
pub(crate) struct Forged {
    dir: TempDir,
    pub(crate) ledger: Ledger,
}

impl Forged {
    /// The smallest chain with every phase.
    pub(crate) fn new(recipe: &str, seed: u64, stop_height: Option<u32>) -> Self {
        let scale = if recipe == "bch-scaling" { 0.001 } else { 0.01 };
        let dir = tempfile::tempdir().unwrap();
        let recipe = Recipe::builtin(recipe).unwrap();
        let options = ForgeOptions { seed, scale, stop_height, ..ForgeOptions::default() };
        let summary = forge(&recipe, &options, dir.path(), &mut ()).unwrap();
        Self { dir, ledger: summary.ledger }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The raw block at `height`; 1 is the first.
    pub(crate) fn block(&self, height: u32) -> Vec<u8> {
        let line = &self.ledger.blocks[height as usize - 1];
        let file = fs::read(self.path().join(&line.file)).unwrap();
        file[line.offset as usize..(line.offset + line.bytes) as usize].to_vec()
    }

    pub(crate) fn height(&self) -> u32 {
        self.ledger.tip.height
    }

    /// The first `share` of a block's transactions in generation order.
    pub(crate) fn seen(&self, height: u32, share: f64) -> Vec<Vec<u8>> {
        let order = fs::read(self.path().join(format!("order/{height:06}.bin"))).unwrap();
        let block = self.block(height);
        let records: Vec<_> = order.chunks_exact(40).collect();
        let count = (records.len() as f64 * share) as usize;
        let field = |record: &[u8], at: usize| {
            u32::from_le_bytes(record[at..at + 4].try_into().unwrap()) as usize
        };
        records[..count]
            .iter()
            .map(|record| block[field(record, 32)..][..field(record, 36)].to_vec())
            .collect()
    }

    pub(crate) fn params(&self) -> Arc<ChainParams> {
        Arc::new(ChainParams::by_name(&self.ledger.chain.chain).unwrap())
    }

    pub(crate) fn open(&self, datadir: &Path) -> Engine {
        let mut config = Config::new(datadir, self.params());
        config.threads = 2;
        config.script_batch = Some(1000);
        Engine::open(config).unwrap()
    }

    pub(crate) fn feed(&self, engine: &Engine, heights: std::ops::RangeInclusive<u32>) {
        for height in heights {
            accept(engine, self.block(height));
        }
    }

    /// Checks tip, counts and hash of the coins against the ledger.
    pub(crate) fn check_tip(&self, engine: &Engine) {
        let tip = engine.chain().tip();
        assert_eq!(tip.height, self.height());
        assert_eq!(tip.hash.to_string(), self.ledger.tip.hash);
        self.check_coins(&engine.chain().utxo_stats(true).unwrap());
    }

    pub(crate) fn check_coins(&self, stats: &UtxoStats) {
        let expected = &self.ledger.tip;
        assert_eq!(stats.txouts, expected.utxo_count);
        assert_eq!(stats.total_amount_sat, expected.utxo_amount);
        assert_eq!(printed(stats.muhash.unwrap()), expected.utxo_muhash);
    }
}

/// A digest as RPC prints it: reversed.
pub(crate) fn printed(digest: [u8; 32]) -> String {
    // An identifier prints in this form.
    BlockHash(digest).to_string()
}

pub(crate) fn accept(engine: &Engine, raw: Vec<u8>) {
    let outcome = engine.blocks().submit(raw);
    assert!(matches!(outcome, SubmitOutcome::Accepted), "{outcome:?}");
}

/// Submits a block of another branch than the best.
pub(crate) fn inconclusive(engine: &Engine, raw: &[u8]) {
    let outcome = engine.blocks().submit(raw.to_vec());
    assert!(matches!(outcome, SubmitOutcome::Inconclusive), "{outcome:?}");
}

pub(crate) fn hash(raw: &[u8]) -> BlockHash {
    Header::parse(raw.first_chunk().unwrap()).hash()
}

/// The reject reason of a block.
pub(crate) fn reason(engine: &Engine, raw: Vec<u8>) -> String {
    match engine.blocks().submit(raw) {
        SubmitOutcome::Rejected { reason, .. } => reason,
        other => panic!("not refused: {other:?}"),
    }
}

/// Fixes the commitments and the proof of work of a changed block.
pub(crate) fn repair(raw: &mut [u8], params: &ChainParams) {
    repair_witness_commitment(raw, params);
    let block = Block::parse(raw.to_vec(), params.encoding).unwrap();
    let leaves = block.txs().map(|tx| tx.txid().0).collect();
    let mut header = Header { merkle_root: assay_hash::merkle_root(leaves).0, ..*block.header() };
    while !assay_consensus::pow::check_proof_of_work(&header.hash(), header.bits, &params.pow) {
        header.nonce += 1;
    }
    raw[..80].copy_from_slice(&header.to_bytes());
}

fn repair_witness_commitment(raw: &mut [u8], params: &ChainParams) {
    let block = Block::parse(raw.to_vec(), params.encoding).unwrap();
    let coinbase = block.tx(0);
    let Some(index) = witness_commitment_index(coinbase) else { return };
    let wtxids: Vec<_> = block.txs().map(|tx| tx.wtxid()).collect();
    let reserved: [u8; 32] = coinbase.witness(0).iter().next().unwrap().try_into().unwrap();
    let script = coinbase.output(index).script_pubkey;
    let at = raw.windows(script.len()).position(|bytes| bytes == script).unwrap();
    // After the opcode, the length and the four bytes of the commitment header (BIP141).
    raw[at + 6..at + 38].copy_from_slice(&witness_commitment(&wtxids, &reserved));
}
