//! Consensus checks of forged chains: everything is parsed, checked and verified again from the files alone.

use std::collections::{HashMap, HashSet};

use crate::{Chain, SecpChecker, bch, bitcoin, forged, sighash};
use assay_consensus::params::ChainParams;
use assay_forge::{Age, ForgeOptions, Ledger, Network, Phase, Series, SpendOrder, Variant};
use assay_hash::MuHash3072;

/// Checks a whole chain; returns the number of signatures verified.
fn check(chain: &Chain) -> u64 {
    let network = Network::BchRegtest.name() == chain.ledger.chain.chain;
    let params = ChainParams::by_name(&chain.ledger.chain.chain).expect("the chain is known");
    assert_eq!(faster_hex::hex_string(&[0xfa, 0xbf, 0xb5, 0xda]), chain.ledger.chain.magic);
    let mut coins = crate::Coins::default();
    let mut checker = SecpChecker::default();
    let mut verified = 0;
    let mut previous = crate::genesis(&params);
    for line in &chain.ledger.blocks {
        let (block, txids) = chain.checked_block(&params, line, previous);
        previous = block.hash();
        if network {
            let printed: Vec<_> = txids[1..].iter().map(ToString::to_string).collect();
            assert!(printed.is_sorted(), "block {} is in canonical order", line.height);
        } else {
            assert!(line.weight <= 4_000_000);
        }
        let flags = params.block_script_flags(line.height, &previous)
            | if network { assay_consensus::script::Flags::BCH_STANDARD } else { crate::STANDARD };
        let signatures = coins.connect(&block, line.height, flags, &mut checker);
        assert_eq!(signatures, line.signatures, "block {}", line.height);
        verified += signatures;
        check_order(chain, line.height, &block, &txids);
    }
    check_tip(&chain.ledger, &coins);
    verified
}

/// The generation order lists every transaction once, parents before children.
fn check_order(chain: &Chain, height: u32, block: &assay_wire::Block, txids: &[assay_wire::Txid]) {
    let in_block: HashSet<_> = txids[1..].iter().copied().collect();
    let mut seen = HashSet::new();
    for (txid, raw) in chain.order(height, block) {
        let tx = crate::parse_tx(raw, chain.encoding());
        assert_eq!(tx.view().txid(), txid, "block {height}");
        for input in tx.view().inputs() {
            let parent = input.prevout.txid;
            assert!(!in_block.contains(&parent) || seen.contains(&parent), "block {height}");
        }
        assert!(in_block.contains(&txid) && seen.insert(txid), "block {height}");
    }
    assert_eq!(seen.len(), in_block.len(), "block {height}");
}

pub(crate) fn check_coins(ledger: &Ledger, coins: &crate::Coins) {
    let tip = &ledger.tip;
    assert_eq!(tip.utxo_count, coins.unspent.len() as u64);
    let amount: i64 = coins.unspent.values().map(|coin| coin.value).sum();
    assert_eq!(tip.utxo_amount, amount as u64);
    let mut hash = MuHash3072::new();
    coins.for_each_serialised(|bytes| hash.insert(bytes));
    let mut digest = hash.finalize();
    digest.reverse();
    assert_eq!(tip.utxo_muhash, faster_hex::hex_string(&digest));
}

fn check_tip(ledger: &Ledger, coins: &crate::Coins) {
    check_coins(ledger, coins);
    let tip = &ledger.tip;
    assert_eq!(tip.hash, ledger.blocks.last().expect("there are blocks").hash);
    let sum =
        |count: fn(&assay_forge::BlockLine) -> u64| ledger.blocks.iter().map(count).sum::<u64>();
    assert_eq!(tip.txs, sum(|line| line.txs));
    assert_eq!(tip.inputs, sum(|line| line.inputs));
    assert_eq!(tip.outputs, sum(|line| line.outputs));
    assert_eq!(tip.bytes, sum(|line| line.bytes));
    assert_eq!(tip.signatures, sum(|line| line.signatures));
}

#[test]
fn bch_chain_is_valid() {
    let chain = forged(&bch(), &ForgeOptions { scale: 0.0005, ..ForgeOptions::default() });
    let verified = check(&chain);
    assert_eq!(verified, chain.ledger.tip.signatures);
    let phase = |height: usize| chain.ledger.blocks[height - 1].phase;
    for (height, expected) in [
        (100, Phase::Maturity),
        (101, Phase::Baseline),
        (105, Phase::Baseline),
        (106, Phase::FanOut),
        (115, Phase::FanOut),
        (116, Phase::Steady1),
        (120, Phase::Steady1),
        (121, Phase::FanIn),
        (122, Phase::FanIn),
        (123, Phase::Steady2),
        (127, Phase::Steady2),
        (128, Phase::Steady3),
        (137, Phase::Steady3),
    ] {
        assert_eq!(phase(height), expected, "height {height}");
    }
    // A steady block is full: the remaining room is too small for another transaction.
    for line in chain.ledger.blocks.iter().filter(|line| line.phase == Phase::Steady2) {
        assert!(line.bytes <= 128_000 && line.bytes > 128_000 - 800, "{line:?}");
    }
}

#[test]
fn bitcoin_chain_is_valid_and_within_policy() {
    let chain = forged(&bitcoin(), &ForgeOptions { scale: 0.02, ..ForgeOptions::default() });
    let verified = check(&chain);
    assert_eq!(verified, chain.ledger.tip.signatures);
    assert!(verified > chain.ledger.tip.inputs, "2-of-3 inputs have two signatures");
    let mut kinds = HashSet::new();
    for line in chain.ledger.blocks.iter().filter(|line| line.phase != Phase::Maturity) {
        let block = chain.block(line);
        let mut depth = HashMap::new();
        let mut cluster: HashMap<_, u32> = HashMap::new();
        for tx in block.txs().skip(1) {
            // Unconfirmed ancestors and clusters, before the block confirms them.
            let parents = tx.inputs().filter_map(|input| depth.get(&input.prevout.txid).copied());
            let (root, above) = parents.max_by_key(|(_, above)| *above).unwrap_or((tx.txid(), 0));
            depth.insert(tx.txid(), (root, above + 1));
            *cluster.entry(root).or_default() += 1;
            assert!(above < 24, "block {}", line.height);
            kinds.extend(
                tx.outputs().map(|output| (output.script_pubkey.len(), output.script_pubkey[0])),
            );
        }
        assert!(cluster.values().all(|count| *count <= 64), "block {}", line.height);
    }
    assert_eq!(kinds.len(), 5, "p2pkh, p2sh, p2wpkh, p2wsh, p2tr: {kinds:?}");
}

#[test]
fn variants_and_distinct_keys_are_valid() {
    let options = ForgeOptions {
        scale: 0.0002,
        variant: Variant::Faithful,
        distinct_keys: true,
        seed: 9,
        ..ForgeOptions::default()
    };
    let chain = forged(&bch(), &options);
    check(&chain);
    let mut scripts = HashSet::new();
    for line in &chain.ledger.blocks {
        for tx in chain.block(line).txs() {
            for output in tx.outputs() {
                assert!(scripts.insert(output.script_pubkey.to_vec()), "height {}", line.height);
            }
        }
    }
    let chain = forged(&bitcoin(), &ForgeOptions { scale: 0.01, ..options });
    check(&chain);
}

/// Heights of the fan-out blocks that the first steady-1 block spends from.
fn sources(chain: &Chain) -> HashSet<u32> {
    let mut heights = HashMap::new();
    let mut sources = HashSet::new();
    for line in &chain.ledger.blocks {
        let block = chain.block(line);
        if line.phase == Phase::Steady1 {
            for tx in block.txs().skip(1) {
                sources.extend(tx.inputs().map(|input| heights[&input.prevout.txid]));
            }
            return sources;
        }
        heights.extend(block.txs().map(|tx| (tx.txid(), line.height)));
    }
    sources
}

#[test]
fn intended_steady_blocks_draw_on_all_fan_out_blocks_and_faithful_ones_on_the_first() {
    let stop_height = Some(116);
    let options = ForgeOptions { scale: 0.001, stop_height, ..ForgeOptions::default() };
    let intended = forged(&bch(), &options);
    assert_eq!(sources(&intended), (106..=115).collect());
    let faithful = forged(&bch(), &ForgeOptions { variant: Variant::Faithful, ..options });
    let sources = sources(&faithful);
    assert!(sources.len() <= 5 && sources.contains(&106), "{sources:?}");
}

#[test]
fn the_baseline_has_blocks_of_main_chain_size_of_payments() {
    let options = ForgeOptions { scale: 0.005, stop_height: Some(106), ..ForgeOptions::default() };
    let chain = forged(&bch(), &options);
    check(&chain);
    for line in chain.ledger.blocks.iter().filter(|line| line.phase == Phase::Baseline) {
        // Each chain ends when it has no room for another transaction, and a coinbase is split for all of them.
        assert!(line.bytes <= 1_000_000 && line.bytes > 1_000_000 - 20 * 400, "{line:?}");
        let block = chain.block(line);
        let payments = block.txs().skip(1).filter(|tx| tx.output_count() == 2);
        assert_eq!(payments.count() as u64, line.txs - 2, "all but coinbase and split");
        assert_eq!(line.inputs, line.txs - 1);
    }
}

#[test]
fn placed_blocks_differ_only_in_spent_coins() {
    let recipe = assay_forge::Recipe::builtin("bitcoin-placement").expect("built in");
    let chain = forged(&recipe, &ForgeOptions { scale: 0.05, ..ForgeOptions::default() });
    assert_eq!(check(&chain), chain.ledger.tip.signatures);
    let mut heights = HashMap::new();
    let mut seen: HashMap<Phase, u32> = HashMap::new();
    let mut model = None;
    for line in &chain.ledger.blocks {
        let block = chain.block(line);
        if let Phase::Placed { age, order } = line.phase {
            *seen.entry(line.phase).or_default() += 1;
            let (txs, inputs, outputs, signatures, bytes) = *model.get_or_insert((
                line.txs,
                line.inputs,
                line.outputs,
                line.signatures,
                line.bytes,
            ));
            assert_eq!((line.txs, line.inputs), (txs, inputs), "{}", line.phase);
            assert_eq!((line.outputs, line.signatures), (outputs, signatures), "{}", line.phase);
            // Signatures are 70 to 72 bytes long, nearly all of them 71 or 72.
            assert!(line.bytes.abs_diff(bytes) < line.inputs / 4, "{line:?}, {bytes}");
            assert_eq!(line.inputs, 25 * (txs - 1));
            let parents: HashSet<_> = block
                .txs()
                .skip(1)
                .flat_map(|tx| tx.inputs().map(|input| input.prevout.txid).collect::<Vec<_>>())
                .collect();
            match order {
                SpendOrder::Clustered => assert_eq!(parents.len() as u64, txs - 1),
                SpendOrder::Scattered => {
                    assert!(parents.len() as u64 > 5 * (txs - 1), "{}", parents.len());
                }
            }
            let range = if age == Age::Old { 102..=111 } else { 112..=121 };
            assert!(parents.iter().all(|txid| range.contains(&heights[txid])), "{}", line.phase);
        }
        heights.extend(block.txs().map(|tx| (tx.txid(), line.height)));
    }
    assert_eq!(seen.len(), 4);
    assert!(seen.values().all(|blocks| *blocks == 8), "{seen:?}");
}

#[test]
fn a_larger_scale_multiplies_bitcoin_blocks() {
    let text = assay_forge::Recipe::builtin_text("bitcoin-scaling").expect("built in");
    let text = text.replace("block_weight_max = 4_000_000", "block_weight_max = 100_000");
    let recipe = assay_forge::Recipe::from_toml(&text).expect("a small one");
    let chain = forged(&recipe, &ForgeOptions { scale: 2.0, ..ForgeOptions::default() });
    check(&chain);
    assert_eq!(chain.ledger.tip.height, 101 + 2 * 32);
    let halved = chain.block(chain.ledger.blocks.last().expect("there are blocks"));
    assert_eq!(halved.tx(0).output(0).value, 2_500_000_000);
}

#[test]
fn widths_differ_only_in_the_width() {
    for distinct_keys in [false, true] {
        let chain = forged(&sighash(), &ForgeOptions { distinct_keys, ..ForgeOptions::default() });
        assert_eq!(check(&chain), chain.ledger.tip.signatures);
        let mut phases: Vec<Phase> = chain.ledger.blocks.iter().map(|line| line.phase).collect();
        phases.dedup();
        let widths = |series| [1, 3, 12, 300].map(|inputs| Phase::Width { series, inputs });
        let expected: Vec<_> = [Phase::Maturity, Phase::FanOut]
            .into_iter()
            .chain(Series::ALL.into_iter().flat_map(widths))
            .collect();
        assert_eq!(phases, expected);
        // 7,200 outputs in parts of 1,000, with the change of each; two blocks per width.
        assert_eq!(chain.ledger.tip.height, 101 + 8 + 2 * 12);
        for line in &chain.ledger.blocks {
            let Phase::Width { series, inputs } = line.phase else { continue };
            assert_eq!((line.inputs, line.signatures), (300, 300), "{}", line.phase);
            assert_eq!(line.txs, 1 + u64::from(300 / inputs), "{}", line.phase);
            let block = chain.block(line);
            let tx = block.tx(1);
            assert_eq!((tx.input_count(), tx.output_count()), (inputs as usize, 1));
            assert_eq!(tx.has_witness(), series != Series::Legacy);
        }
        let fan_out = chain.ledger.blocks.iter().filter(|line| line.phase == Phase::FanOut);
        assert!(fan_out.clone().all(|line| line.inputs == 1));
        assert_eq!(fan_out.map(|line| line.outputs).sum::<u64>(), 7_200 + 8 * 3);
    }
}

#[test]
fn a_smaller_scale_makes_fewer_blocks_of_the_same_widths() {
    let chain = forged(&sighash(), &ForgeOptions { scale: 0.5, ..ForgeOptions::default() });
    assert_eq!(chain.ledger.tip.height, 101 + 4 + 12);
    assert_eq!(chain.ledger.tip.inputs, 4 + 12 * 300);
    let last = chain.ledger.blocks.last().expect("there are blocks").phase;
    assert_eq!(last, Phase::Width { series: Series::Taproot, inputs: 300 });
}
