//! A block full of inputs that are all alike.

use assay_bench::BenchError;
use assay_bench::block_builder::{Coinbase, mined};
use assay_consensus::params::ChainParams;
use assay_consensus::script::RuleSet;
use assay_engine::{Block, BlockVerifier};
use assay_hash::sha256d;
use assay_wire::{BlockHash, Encoding, OutPoint, TxOut, Txid, Wtxid, encode};

use super::spend::Spend;

/// Most weight of a block.
pub(super) const BLOCK_WEIGHT: u32 = 4_000_000;

/// Weight of everything that is not an input: header, coinbase, and the rest of the transaction, rounded up.
pub(super) const OVERHEAD: f64 = 1_600.0;

/// Height of the block; on regtest everything is active from the first.
const HEIGHT: u32 = 200;

/// A block, and the output that each of its inputs spends.
pub(super) struct FullBlock {
    raw: Vec<u8>,
    script_pubkey: Vec<u8>,
    pub(super) inputs: usize,
    pub(super) weight: u64,
}

/// One transaction with as many of these inputs as fit into `weight`.
pub(super) fn of_inputs(spend: &Spend, weight: u32) -> FullBlock {
    let each = spend.input_weight();
    let inputs = (((f64::from(weight) - OVERHEAD) as u64) / each).max(1) as usize;
    let (base, full) = transaction(spend, inputs);
    let wtxids = [Wtxid::default(), Wtxid(sha256d(&full))];
    let coinbase = Coinbase::new(HEIGHT, &[], (0, &[0x51]), Some(&wtxids));
    let txids = vec![sha256d(&coinbase.base), sha256d(&base)];
    let header = mined(BlockHash::default(), 1_700_000_000, txids);
    let mut raw = header.to_bytes().to_vec();
    raw.push(2);
    raw.extend_from_slice(&coinbase.full);
    raw.extend_from_slice(&full);
    let stripped = 80 + 1 + coinbase.base.len() + base.len();
    let weight = (3 * stripped + raw.len()) as u64;
    FullBlock { raw, script_pubkey: spend.script_pubkey.clone(), inputs, weight }
}

/// Without and with witness. Every input spends another output, with the same script and two satoshi.
fn transaction(spend: &Spend, inputs: usize) -> (Vec<u8>, Vec<u8>) {
    let view = spend.tx.view();
    let script_sig = view.input(0).script_sig;
    let mut body = Vec::new();
    encode::compact_size(&mut body, inputs as u64);
    for number in 0..inputs {
        let mut txid = [7; 32];
        txid[..8].copy_from_slice(&(number as u64).to_le_bytes());
        body.extend_from_slice(&OutPoint { txid: Txid(txid), vout: 0 }.to_bytes());
        encode::var_bytes(&mut body, script_sig);
        body.extend_from_slice(&[0xff; 4]);
    }
    body.push(1);
    body.extend_from_slice(&1i64.to_le_bytes());
    encode::var_bytes(&mut body, &[0x51]);
    let version = 2i32.to_le_bytes();
    let base = [&version[..], &body, &[0; 4]].concat();
    if !view.has_witness() {
        return (base.clone(), base);
    }
    let mut witness = Vec::new();
    encode::compact_size(&mut witness, view.witness(0).len() as u64);
    for item in view.witness(0) {
        encode::var_bytes(&mut witness, item);
    }
    let mut full = [&version[..], &[0, 1], &body].concat();
    for _ in 0..inputs {
        full.extend_from_slice(&witness);
    }
    full.extend_from_slice(&[0; 4]);
    (base, full)
}

impl FullBlock {
    /// Verifies it by every rule that needs no more of a chain.
    pub(super) fn verify(&self, rules: &RuleSet) -> Result<(), BenchError> {
        let refused = |detail: String| BenchError::OwnBlock { height: HEIGHT, detail };
        let params = ChainParams::by_name("regtest")
            .ok_or_else(|| refused("there is no regtest".to_owned()))?;
        let block = Block::parse(self.raw.clone(), Encoding::Segwit)
            .map_err(|error| refused(error.to_string()))?;
        let output = TxOut { value: 2, script_pubkey: &self.script_pubkey };
        let spent = vec![output; self.inputs];
        let verifier = BlockVerifier::new(&params, &block, HEIGHT, None).with_rules(*rules);
        verifier.verify(&spent).map(drop).map_err(|error| refused(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_bench::plan::Wrap;

    #[test]
    fn blocks_are_valid_and_as_heavy_as_said() {
        for wrap in [Wrap::P2wsh, Wrap::Tapscript] {
            let spend = Spend::new(wrap, &[0xa8, 0x75, 0x51], vec![vec![1; 600]]);
            let block = of_inputs(&spend, 40_000);
            assert!(
                block.inputs > 20 && (38_000..40_000).contains(&block.weight),
                "{}",
                block.weight
            );
            let parsed = Block::parse(block.raw.clone(), Encoding::Segwit).expect("a block");
            assert_eq!(parsed.weight() as u64, block.weight);
            let rules = RuleSet::by_name("report-8000").expect("a name");
            block.verify(&rules).expect("valid");
            let error = block.verify(&RuleSet::TODAY).expect_err("too large an element");
            assert!(error.to_string().contains("Push value size"), "{error}");
        }
    }
}
