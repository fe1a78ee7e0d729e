//! The coins of the common initial chain of all runs, in a file.

use std::sync::{Arc, OnceLock};

use assay_consensus::params::{AssumeUtxo, ChainParams};
use assay_engine::{Config, Engine, KeyForms, SubmitOutcome};
use assay_wire::BlockHash;

use crate::universe::base;

/// Keys are not converted.
pub(crate) const KEYS: KeyForms = KeyForms { is_point: |_| false, expand: |_| None };

/// A UTXO set, and parameters that allow it.
pub(crate) struct Snapshot {
    pub(crate) file: Vec<u8>,
    pub(crate) params: Arc<ChainParams>,
}

impl Snapshot {
    /// The UTXO set of [`base`].
    pub(crate) fn get() -> &'static Self {
        static SNAPSHOT: OnceLock<Snapshot> = OnceLock::new();
        SNAPSHOT.get_or_init(Self::new)
    }

    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let params = ChainParams::by_name("regtest").expect("a known chain");
        let engine =
            Engine::open(Config::new(dir.path(), Arc::new(params.clone()))).expect("it is new");
        for block in &base().blocks[1..] {
            let outcome = engine.blocks().submit(block.raw.clone());
            assert!(matches!(outcome, SubmitOutcome::Accepted), "{}: {outcome:?}", block.height);
        }
        let tip = engine.chain().tip();
        let coins =
            engine.chain().coins_at(&tip.hash, &|| true).expect("they are those of the tip");
        let file = coins.write(Vec::new(), KEYS, &|| true).expect("there is memory");
        let known = AssumeUtxo {
            height: tip.height,
            block: tip.hash,
            hash_serialized: BlockHash(coins.hash),
            chain_txs: tip.chain_txs,
        };
        let params = Arc::new(ChainParams { assume_utxo: vec![known], ..params });
        Self { file, params }
    }
}
