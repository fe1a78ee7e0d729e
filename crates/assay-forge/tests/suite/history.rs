//! History chains: valid era by era, consistent with the recipe, and identical after an interruption.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    io::Write as _,
    path::Path,
};

use crate::{Chain, SecpChecker, file_hashes, forged};
use assay_consensus::params::ChainParams;
use assay_forge::{ForgeOptions, Phase, Recipe, forge, ledger};

/// The built-in recipe with smaller special transactions, which need fewer coins.
fn history() -> Recipe {
    let text = Recipe::builtin_text("history").expect("built in");
    let text = text
        .replace("consolidation_inputs = [5, 50]", "consolidation_inputs = [5, 8]")
        .replace("many_inputs = [51, 300]", "many_inputs = [51, 55]");
    Recipe::from_toml(&text).expect("a small one")
}

/// Eight hundred small blocks: every era, every kind of script.
fn options() -> ForgeOptions {
    ForgeOptions { scale: 0.04, byte_scale: 0.12, seed: 3, ..ForgeOptions::default() }
}

/// The kind of an output, as far as visible in its script.
fn shown(script: &[u8]) -> &'static str {
    match (script.len(), script[0]) {
        (67, 65) => "p2pk",
        (25, 0x76) => "p2pkh",
        (23, 0xa9) => "p2sh",
        (22, 0x00) => "p2wpkh",
        (34, 0x00) => "p2wsh",
        (34, 0x51) => "p2tr",
        (71, 0x51) => "multisig",
        (22, 0x6a) => "op_return",
        other => panic!("no script of a history begins so: {other:?}"),
    }
}

/// The visible kind of a ledger kind.
fn shown_of(kind: &str) -> &'static str {
    match kind {
        "p2pk" => "p2pk",
        "p2pkh" => "p2pkh",
        "p2sh_2of3" | "p2sh_p2wpkh" => "p2sh",
        "p2wpkh" => "p2wpkh",
        "p2wsh_2of3" => "p2wsh",
        "p2tr_key" | "p2tr_script" => "p2tr",
        "multisig_1of2" => "multisig",
        "op_return" => "op_return",
        other => panic!("no kind is called {other}"),
    }
}

/// Regtest rules with the soft fork heights of the ledger.
fn params(chain: &Chain) -> ChainParams {
    let regtest = ChainParams::by_name("regtest").expect("it is known");
    chain.ledger.chain.activation.iter().fold(regtest, |params, (fork, height)| {
        params.with_activation_height(fork, *height).expect("a fork that test chains may move")
    })
}

#[test]
fn history_is_valid_and_matches_its_ledger() {
    let chain = forged(&history(), &options());
    let params = params(&chain);
    let segwit = chain.ledger.chain.activation["segwit"];
    assert_eq!(chain.ledger.chain.activation.len(), 5, "every fork that test chains may move");
    let mut coins = crate::Coins { consensus_only: true, ..Default::default() };
    let mut checker = SecpChecker::default();
    let mut previous = crate::genesis(&params);
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    let mut made: HashMap<_, u32> = HashMap::new();
    let mut ranges = chain.ledger.ranges.iter();
    let mut range = ranges.next().expect("there are ranges");
    let (mut txs, mut segwit_txs, mut many, mut in_block) = (0, 0, 0, 0);
    for line in &chain.ledger.blocks {
        let height = line.height;
        let (block, _) = chain.checked_block(&params, line, previous);
        previous = block.hash();
        let has_witness = block.txs().any(|tx| tx.has_witness());
        assert_eq!(has_witness, height >= segwit, "block {height}: the coinbase has one at least");
        for tx in block.txs() {
            for output in tx.outputs() {
                // The witness commitment has 38 bytes.
                if output.script_pubkey.len() != 38 {
                    *kinds.entry(shown(output.script_pubkey)).or_default() += 1;
                }
            }
        }
        for tx in block.txs().skip(1) {
            txs += 1;
            segwit_txs += u64::from(tx.has_witness());
            many += u64::from(tx.input_count() > 50);
            let here = |made: Option<&u32>| made.is_some_and(|made| *made == height);
            in_block +=
                tx.inputs().filter(|input| here(made.get(&input.prevout.txid))).count() as u64;
            made.insert(tx.txid(), height);
        }
        // The flags of the height; programs with fixed fork heights are tested below.
        let flags = params.block_script_flags(height, &previous);
        let signatures = coins.connect(&block, height, flags, &mut checker);
        assert_eq!(signatures, line.signatures, "block {height}");
        if height == range.last {
            assert_eq!((range.txs, range.segwit_txs), (txs, segwit_txs), "{range:?}");
            let age_zero = range.ages.first().copied().unwrap_or(0);
            assert_eq!((range.many_input_txs, age_zero), (many, in_block));
            let set = coins.unspent.len() as u64;
            assert_eq!(range.coins, set, "block {height}");
            let next = ranges.next();
            assert_eq!(next.map_or(height, |next| next.first - 1), height);
            range = next.unwrap_or(range);
            (txs, segwit_txs, many, in_block) = (0, 0, 0, 0);
        } else {
            assert!(height < range.last);
        }
    }
    let all = ["multisig", "op_return", "p2pk", "p2pkh", "p2sh", "p2tr", "p2wpkh", "p2wsh"];
    assert_eq!(kinds.keys().copied().collect::<Vec<_>>(), all);
    forged::check_coins(&chain.ledger, &coins);
}

/// The recipe's tables, read without any code of the forge.
fn tables() -> toml::Table {
    toml::from_str(Recipe::builtin_text("history").expect("built in")).expect("it is TOML")
}

fn number(table: &toml::Value, key: &str) -> f64 {
    let value = &table[key];
    value.as_float().or_else(|| value.as_integer().map(|value| value as f64)).expect("a number")
}

#[test]
fn eras_match_the_recipe() {
    let chain = forged(&history(), &options());
    let tables = tables();
    let bytes = number(&tables["history"], "bytes") * 0.12;
    for (number_of_era, era) in (1u8..).zip(tables["era"].as_array().expect("eras")) {
        let phase = Phase::Era { number: number_of_era };
        let lines = chain.ledger.blocks.iter().filter(|line| line.phase == phase);
        let (mut blocks, mut txs, mut inputs) = (0.0, 0.0, 0.0);
        let mut made: BTreeMap<&str, f64> = BTreeMap::new();
        for line in lines {
            blocks += 1.0;
            txs += (line.txs - 1) as f64;
            inputs += line.inputs as f64;
            for tx in chain.block(line).txs().skip(1) {
                for output in tx.outputs() {
                    *made.entry(shown(output.script_pubkey)).or_default() += 1.0;
                }
            }
        }
        // At small scale the first eras have few coins and few transactions.
        if number_of_era <= 3 {
            continue;
        }
        let wanted = blocks * number(era, "txs") * bytes;
        assert!((txs - wanted).abs() <= 1.0, "era {number_of_era}: {txs} of {wanted} transactions");
        // One special transaction may be missing or surplus.
        let wanted = number(era, "inputs") * txs;
        assert!((inputs - wanted).abs() <= 60.0_f64.max(0.02 * wanted), "{inputs} of {wanted}");
        let outputs: f64 = made.values().sum();
        let mut shares: BTreeMap<&str, f64> = BTreeMap::new();
        for (kind, share) in era["outputs"].as_table().expect("a mix") {
            *shares.entry(shown_of(kind)).or_default() += share.as_float().expect("a share");
        }
        for (kind, share) in &shares {
            let (made, wanted) = (made.get(kind).copied().unwrap_or(0.0), share * outputs);
            assert!((made - wanted).abs() <= 3.0, "era {number_of_era}: {made} {kind} of {wanted}");
        }
        assert!(made.keys().all(|kind| shares.contains_key(kind)), "era {number_of_era}: {made:?}");
    }
}

#[test]
fn spent_ages_match_the_recipe() {
    let chain = forged(&history(), &options());
    let blocks = f64::from(chain.ledger.tip.height);
    // Late ranges have coins of every age.
    let late = chain.ledger.ranges.iter().filter(|range| f64::from(range.first) > 0.6 * blocks);
    let mut spent: Vec<f64> = Vec::new();
    for range in late {
        spent.resize(spent.len().max(range.ages.len()), 0.0);
        spent.iter_mut().zip(&range.ages).for_each(|(sum, count)| *sum += *count as f64);
    }
    let total: f64 = spent.iter().sum();
    let tables = tables();
    let ages = tables["age"].as_array().expect("ages");
    let heights = number(tables["era"].as_array().expect("eras").last().expect("one"), "until");
    // Share of spends up to this age in heights; log-uniform within a band.
    let at_most = |age: f64| {
        let (mut sum, mut above) = (0.0, 0.0);
        for band in ages {
            let (until, share) = (number(band, "until"), number(band, "share"));
            let part = if until <= age || until == 0.0 {
                1.0
            } else if age > above {
                ((age + 1.0) / (above + 1.0)).ln() / ((until + 1.0) / (above + 1.0)).ln()
            } else {
                0.0
            };
            sum += share * part;
            above = until;
        }
        sum
    };
    let mut up_to = 0.0;
    for (bucket, count) in spent.iter().enumerate().take(6) {
        up_to += count / total;
        // Bucket 0 is the same block, bucket n ends at 2^n - 1 blocks; ages are rounded.
        let blocks_of_age = f64::from(1u32 << bucket) - 0.5;
        let heights_of_age =
            if bucket == 0 { 0.0 } else { (blocks_of_age * heights / blocks).floor() };
        let expected = at_most(heights_of_age);
        // The previous block often has no coin left, since many spends use it; then an older coin is used, never a younger one.
        let missing = expected - up_to;
        assert!((-0.02..0.06).contains(&missing), "bucket {bucket}: {up_to}, not {expected}");
    }
}

fn small() -> ForgeOptions {
    ForgeOptions { stop_height: Some(520), ..options() }
}

#[test]
fn output_depends_on_the_seed_not_on_threads() {
    let with = |threads, seed| {
        file_hashes(forged(&history(), &ForgeOptions { threads, seed, ..small() }).path())
    };
    let one = with(1, 3);
    assert_eq!(one, with(2, 3), "2 threads");
    assert_eq!(one, with(5, 3), "5 threads");
    let other = with(2, 4);
    assert_ne!(one["blocks/blk00000.dat"], other["blocks/blk00000.dat"]);
}

#[test]
fn a_stopped_history_is_the_start_of_the_whole_one() {
    let whole = forged(&history(), &options());
    for stop in [1, 100, 300] {
        let part = forged(&history(), &ForgeOptions { stop_height: Some(stop), ..options() });
        assert_eq!(part.ledger.blocks, whole.ledger.blocks[..stop as usize]);
    }
}

/// Copies the state of an interrupted forge of `whole`: the first `lines` of the ledger, and a part of the block file.
fn interrupted(whole: &Chain, lines: usize, cut: impl Fn(&Path)) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory for tests");
    for sub in ["blocks", "order"] {
        fs::create_dir(dir.path().join(sub)).expect("made");
        for entry in fs::read_dir(whole.path().join(sub)).expect("a directory") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("it has a name");
            fs::copy(&path, dir.path().join(sub).join(name)).expect("copied");
        }
    }
    let text = fs::read_to_string(whole.path().join(ledger::LEDGER)).expect("a ledger");
    let mut part: String = text.split_inclusive('\n').take(lines).collect();
    part.push_str("{\"kind\":\"block\",\"hei");
    fs::write(dir.path().join(ledger::LEDGER_PART), part).expect("written");
    fs::write(dir.path().join("txids.part"), b"old").expect("written");
    cut(dir.path());
    dir
}

/// Damages the folder of an interrupted forge.
type Damage<'a> = Box<dyn Fn(&Path) + 'a>;

#[test]
fn interrupted_history_resumes_identically() {
    let whole = forged(&history(), &small());
    let expected = file_hashes(whole.path());
    let block_file = |dir: &Path| dir.join("blocks/blk00000.dat");
    let cut_at = |height: usize| {
        let line = &whole.ledger.blocks[height - 1];
        line.offset + line.bytes / 2
    };
    let shorten = |dir: &Path, length: u64| {
        let file = fs::OpenOptions::new().write(true).open(block_file(dir)).expect("there");
        file.set_len(length).expect("cut");
    };
    let damage = |dir: &Path, at: u64| {
        let mut bytes = fs::read(block_file(dir)).expect("there");
        bytes[at as usize] ^= 1;
        fs::write(block_file(dir), bytes).expect("written");
    };
    let half = cut_at(400);
    let cases: [(&str, usize, Damage<'_>); 6] = [
        ("only the first line", 1, Box::new(|_| ())),
        ("all blocks are there", usize::MAX, Box::new(|_| ())),
        ("the ledger is behind", 300, Box::new(|_| ())),
        ("the block file is behind", 500, Box::new(move |dir| shorten(dir, half))),
        ("a block is damaged", 500, Box::new(move |dir| damage(dir, half))),
        (
            "an order is missing",
            400,
            Box::new(|dir| fs::remove_file(dir.join("order/000200.bin")).expect("removed")),
        ),
    ];
    for (what, lines, cut) in cases {
        let lines = lines.min(
            fs::read_to_string(whole.path().join(ledger::LEDGER)).expect("there").lines().count()
                - 1,
        );
        let dir = interrupted(&whole, lines, cut);
        let made = forge(&history(), &small(), dir.path(), &mut ()).expect("it goes on");
        assert_eq!(made.ledger, whole.ledger, "{what}");
        assert_eq!(file_hashes(dir.path()), expected, "{what}");
    }
}

#[test]
fn leftovers_of_another_chain_are_replaced() {
    let whole = forged(&history(), &small());
    let dir = interrupted(&whole, 300, |_| ());
    let other = ForgeOptions { seed: 9, ..small() };
    let made = forge(&history(), &other, dir.path(), &mut ()).expect("it begins anew");
    let fresh = forged(&history(), &other);
    assert_eq!(made.ledger, fresh.ledger);
    assert_eq!(file_hashes(dir.path()), file_hashes(fresh.path()));
    // Foreign files are left alone.
    let dir = interrupted(&whole, 300, |_| ());
    let mut file = fs::File::create(dir.path().join("thesis.txt")).expect("made");
    file.write_all(b"mine").expect("written");
    let error = forge(&history(), &small(), dir.path(), &mut ()).expect_err("a file is there");
    assert!(error.to_string().contains("thesis.txt"), "{error}");
}

#[test]
fn an_estimate_is_close() {
    let chain = forged(&history(), &options());
    let estimate = assay_forge::estimate(&history(), &options()).expect("possible");
    let tip = &chain.ledger.tip;
    assert_eq!(estimate.blocks, tip.height);
    for (what, estimated, made) in
        [("signatures", estimate.signatures, tip.signatures), ("bytes", estimate.bytes, tip.bytes)]
    {
        let ratio = estimated as f64 / made as f64;
        assert!((0.85..1.15).contains(&ratio), "{what}: {ratio}");
    }
}

#[test]
fn a_recipe_extends_the_history() {
    let settled = Recipe::builtin("history-settled").expect("built in");
    assert_eq!(settled.name(), "history-settled");
    let options = ForgeOptions { byte_scale: 0.02, ..ForgeOptions::default() };
    let last = 5_000;
    let estimate = |recipe: &Recipe, scale| {
        let options = ForgeOptions { scale, ..options.clone() };
        assay_forge::estimate(recipe, &options).expect("possible")
    };
    let (history, whole) =
        (estimate(&Recipe::builtin("history").expect("built in"), 0.25), estimate(&settled, 1.0));
    assert_eq!(
        (history.blocks, whole.blocks),
        (last, 7_100),
        "more than 2,016 blocks follow the history"
    );
    let more = whole.signatures as f64 / history.signatures as f64;
    assert!((0.99..1.01).contains(&more), "and hardly a signature: {more}");

    let own = "format = 1\nname = \"mine\"\nextends = \"history\"\n[history]\nblocks = 1_000\n";
    let mine = Recipe::from_toml(own).expect("it reads");
    assert_eq!(mine.name(), "mine");
    assert_ne!(mine.sha256(), settled.sha256());
    assert_eq!(estimate(&mine, 1.0).blocks, 1_000, "its own keys win");
    for (from, to, expected) in [
        (
            "\"history\"",
            "\"bch-scaling\"",
            "extends = \"bch-scaling\" is impossible: name a built-in recipe",
        ),
        ("\"history\"", "\"history-settled\"", "extends = \"history-settled\" is impossible"),
        ("\"history\"", "7", "extends = \"7\" is impossible"),
        ("blocks = 1_000", "block = 1_000", "unknown field `block`"),
        ("blocks = 1_000", "blocks = 20", "history.blocks = 20 is impossible"),
    ] {
        assert!(own.contains(from), "{from}");
        let error = Recipe::from_toml(&own.replacen(from, to, 1)).expect_err(to).to_string();
        assert!(error.contains(expected), "{from} -> {to}: {error}");
    }
}

#[test]
fn rejects_bad_eras() {
    let text = Recipe::builtin_text("history").expect("built in");
    let cases = [
        ("blocks = 20_000", "blocks = 20", "history.blocks = 20 is impossible"),
        ("bytes = 0.08", "bytes = 0.0", "history.bytes = 0 is impossible"),
        ("until = 160_036", "until = 99_000", "era \"2011\": until = 99000 is impossible"),
        ("txs = 31.7 ", "txs = -1.0 ", "era \"2011\": txs = -1 is impossible"),
        ("fork = \"cltv\"", "fork = \"bip34\"", "fork = bip34 is impossible: forks are"),
        ("fork = \"segwit\"", "", "p2sh_p2wpkh is impossible: it needs SegWit"),
        ("p2pk = 0.02, p2pkh = 0.98", "p2pk = 0.02, p2pkh = 0.9", "outputs (sum) = 0.92"),
        ("p2pk = 0.02, p2pkh = 0.98", "p2pk = 0.02, p2x = 0.98", "the kinds are p2pk, p2pkh"),
        ("coins = 1_150_000 ", "coins = 900_000_000_000 ", "it gives the outputs of a transaction"),
        ("many_inputs = [51, 300]", "many_inputs = [51, 3]", "shapes.many_inputs = [51, 3]"),
        ("until = 4_320\n", "until = 100\n", "each larger than the one before"),
        ("share = 0.25", "share = 0.3", "age.share (sum) = 1.05"),
        ("chain = \"regtest\"", "chain = \"bch-regtest\"", "history means nothing on bch-regtest"),
        ("[shapes]", "[shape]", "unknown field `shape`"),
    ];
    for (from, to, expected) in cases {
        assert!(text.contains(from), "{from}");
        let error = Recipe::from_toml(&text.replacen(from, to, 1)).expect_err(to).to_string();
        assert!(error.contains(expected), "{from} -> {to}: {error}");
    }
    let impossible = [
        (ForgeOptions { scale: 0.001, ..options() }, "scale 0.001 is impossible for history"),
        (ForgeOptions { byte_scale: 0.0, ..options() }, "byte scale 0 is impossible for history"),
        (ForgeOptions { byte_scale: 90.0, ..options() }, "byte scale 90 is impossible for history"),
        (ForgeOptions { byte_scale: f64::NAN, ..options() }, "byte scale NaN is impossible"),
    ];
    for (options, expected) in impossible {
        let error = assay_forge::estimate(&history(), &options).expect_err("impossible");
        assert!(error.to_string().starts_with(expected), "{error}");
    }
    let other = Recipe::builtin("bitcoin-scaling").expect("built in");
    let error = assay_forge::estimate(&other, &options());
    let error = error.expect_err("it has no byte scale").to_string();
    assert!(error.contains("a byte scale means nothing to bitcoin-scaling"), "{error}");
}
