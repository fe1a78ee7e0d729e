//! Scripts of real blocks, some of them modified: the same result in every verification mode.

use assay_consensus::params::ChainParams;
use assay_wire::Block;

use super::*;
use crate::verify::{BlockVerifier, parse_prevouts};

fn verifier(script_batch: Option<usize>, threads: usize) -> Arc<Verifier> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    Verifier::new(Arc::new(pool), script_batch)
}

/// The verdict on the scripts of a block.
pub(super) fn judge(
    prepared: &Arc<Prepared>,
    rules: &BlockRules,
    coins: &[Coin],
    verifier: &Arc<Verifier>,
) -> Result<u64, TxFailure> {
    let branch = Branch::new();
    let mut queue = ScriptQueue::new((verifier, &branch), Arc::clone(prepared), *rules);
    let mut rest = coins;
    for tx_index in 1..prepared.block.tx_count() {
        let (own, others) = rest.split_at(prepared.block.tx(tx_index).input_count());
        rest = others;
        queue.push(tx_index, &mut own.to_vec());
    }
    let scripts = queue.finish();
    verifier.drain();
    assert!(scripts.is_finished());
    let failure = scripts.failure.lock().clone();
    assert_eq!(branch.has_failure(), failure.is_some());
    failure.map_or(Ok(scripts.sigchecks.load(Ordering::Relaxed)), Err)
}

#[test]
fn finds_the_lowest_failure_in_batches_of_any_size() {
    let blocks = assay_testkit::data::folder().map(|root| root.join("blocks"));
    let mut seed = 1u64;
    let mut below = |limit: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % limit
    };
    let (mut valid, mut failed) = (0, 0);
    for (chain, name, height) in
        [("main", "mainnet-300025", 300_025), ("test", "testnet3-1087400", 1_087_400)]
    {
        let read = |kind| std::fs::read(blocks.as_ref()?.join(name).with_extension(kind)).ok();
        let (Some(raw), Some(prevouts)) = (read("blk"), read("prevouts")) else {
            println!("skipped: no block {name} in the test data");
            continue;
        };
        let params = ChainParams::by_name(chain).unwrap();
        for broken in [0, 1, 1, 2, 2, 5, 20, 200] {
            let mut raw = raw.clone();
            let block = Block::parse(raw.clone(), params.encoding).unwrap();
            let base = block.bytes().as_ptr() as usize;
            for _ in 0..broken {
                let tx = block.tx(1 + below(block.tx_count() - 1));
                let script = tx.input(below(tx.input_count())).script_sig;
                if script.len() > 40 {
                    // Within r or s: still well-formed, but invalid.
                    raw[script.as_ptr() as usize - base + 8 + below(20)] ^= 1 << below(7);
                }
            }
            let block = Block::parse(raw, params.encoding).unwrap();
            let judged = BlockVerifier::new(&params, &block, height, None);
            let coins: Vec<Coin> = parse_prevouts(&prevouts, judged.input_count())
                .unwrap()
                .iter()
                .map(|output| Coin {
                    value: output.value,
                    height: 1,
                    coinbase: false,
                    script_pubkey: output.script_pubkey.into(),
                })
                .collect();
            let rules = *judged.rules();
            let (hash, txids) = (block.hash(), block.txs().map(|tx| tx.txid()).collect());
            let prepared = Arc::new(Prepared { txids, wtxids: None, ..Prepared::new(block, hash) });
            let expected = judge(&prepared, &rules, &coins, &verifier(None, 2));
            for (script_batch, threads) in [(1, 1), (30, 3), (1000, 2), (1 << 20, 3)] {
                let verifier = verifier(Some(script_batch), threads);
                let verdict = judge(&prepared, &rules, &coins, &verifier);
                assert_eq!(verdict, expected, "{name}, {broken} broken, batches of {script_batch}");
            }
            *(if expected.is_ok() { &mut valid } else { &mut failed }) += 1;
        }
    }
    println!("{valid} valid, {failed} with a failure");
    assert!(valid + failed == 0 || (valid >= 1 && failed >= 6));
}
