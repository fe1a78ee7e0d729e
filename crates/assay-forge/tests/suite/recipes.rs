//! Invalid recipes and options, with their error messages.

use std::fmt::Write as _;

use assay_forge::{ForgeOptions, Phase, Recipe, estimate};

/// The built-in recipe with a text replacement.
fn changed(name: &str, from: &str, to: &str) -> String {
    let text = Recipe::builtin_text(name).expect("built in");
    assert!(text.contains(from), "{name} contains {from}");
    text.replacen(from, to, 1)
}

#[test]
fn rejects_bad_recipes() {
    let cases = [
        ("bch-scaling", "chains = 4", "chians = 4"),
        ("bch-scaling", "[fan_in]", "[fan_inn]"),
        ("bch-scaling", "blocks = 100", "blocks = 99"),
        ("bch-scaling", "blocks = 100", "blocks = -1"),
        ("bch-scaling", "format = 1", "format = 2"),
        ("bch-scaling", "name = \"bch-scaling\"", "name = \"../etc\""),
        ("bch-scaling", "chain = \"bch-regtest\"", "chain = \"main\""),
        ("bch-scaling", "chain = \"bch-regtest\"", "chain = \"regtest\""),
        ("bch-scaling", "fee_sat_per_kb = 1_000", "fee_sat_per_kb = 999"),
        ("bch-scaling", "fee_sat_per_kb = 1_000", "fee_sat_per_kb = 12_000"),
        ("bch-scaling", "amount_min = 546", "amount_min = 545"),
        ("bch-scaling", "outputs = 25", "outputs = 251"),
        ("bch-scaling", "outputs = 25", "outputs = 1"),
        ("bch-scaling", "chains = 4", "chains = 0"),
        ("bch-scaling", "block_bytes_max = 256_000_000", ""),
        ("bch-scaling", "[fan_in]\nblocks = 2", "[fan_in]\nblocks = 6"),
        ("bch-scaling", "inputs = 64", "inputs = 1"),
        ("bch-scaling", "block_interval_s = 600", "block_interval_s = 0"),
        ("bch-scaling", "chains = 20", "chains = 21"),
        ("bch-scaling", "block_bytes = 1_000_000", "block_bytes = 5_000_000"),
        (
            "bitcoin-scaling",
            "[fan_out]",
            "[baseline]\nblocks = 1\nblock_bytes = 1_000_000\nchains = 2\n[fan_out]",
        ),
        ("bitcoin-placement", "rounds = 8", "rounds = 0"),
        ("bitcoin-placement", "[fan_out]\nblocks = 20", "[fan_out]\nblocks = 1"),
        ("bitcoin-placement", "[steady_1]\nblocks = 0", "[steady_1]\nblocks = 1"),
        ("bitcoin-scaling", "chain = \"regtest\"", "chain = \"bch-regtest\""),
        ("bitcoin-scaling", "chain_depth = 20", "chain_depth = 25"),
        ("bitcoin-scaling", "chain_depth = 20", "chains = 4\nchain_depth = 20"),
        ("bitcoin-scaling", "block_weight_max = 4_000_000", "block_weight_max = 8_000_000"),
        ("bitcoin-scaling", "amount_span = 1_067", "amount_span = 900_000"),
        ("bitcoin-scaling", "outputs = 25\n", "outputs = 3\n"),
        ("bitcoin-scaling", "p2pkh = 15", "p2pk = 15"),
        ("bitcoin-scaling", "blocks = 101", "blocks = 100"),
        ("sighash-scaling", "chain = \"regtest\"", "chain = \"bch-regtest\""),
        ("sighash-scaling", "[widths]", "[width]"),
        ("sighash-scaling", "series = [\"legacy\", \"segwit\"", "series = [\"legacy\", \"legacy\""),
        ("sighash-scaling", "\"taproot\"]", "\"tapscript\"]"),
        ("sighash-scaling", "inputs = [1, 10,", "inputs = [10, 1,"),
        ("sighash-scaling", "inputs = [1, 10,", "inputs = [1, 3,"),
        ("sighash-scaling", "inputs_per_block = 5_000", "inputs_per_block = 10_000"),
        ("sighash-scaling", "outputs = 15_000", "outputs = 20_000"),
        ("sighash-scaling", "amount_min = 2_000", "amount_min = 600"),
        ("sighash-scaling", "amount_min = 2_000", "amount_min = 600_000"),
    ];
    let mut told = String::new();
    for (name, from, to) in cases {
        let error = match Recipe::from_toml(&changed(name, from, to)) {
            Ok(_) => "accepted".to_owned(),
            Err(error) => error.to_string(),
        };
        writeln!(
            told,
            "## {name}: {} -> {}\n{}\n",
            from.escape_debug(),
            to.escape_debug(),
            error.trim_end()
        )
        .expect("strings take all");
    }
    let error = Recipe::builtin("bsv-scaling").expect_err("there is none");
    writeln!(told, "## bsv-scaling\n{error}").expect("strings take all");
    insta::assert_snapshot!(told);
}

#[test]
fn rejects_bad_options() {
    let default = ForgeOptions::default();
    let cases = [
        ("bch-scaling", ForgeOptions { scale: 1.5, ..default.clone() }),
        ("bch-scaling", ForgeOptions { scale: 0.00001, ..default.clone() }),
        ("bch-scaling", ForgeOptions { scale: f64::NAN, ..default.clone() }),
        ("bch-scaling", ForgeOptions { scale: -1.0, ..default.clone() }),
        ("bch-scaling", ForgeOptions { stop_height: Some(0), ..default.clone() }),
        ("bch-scaling", ForgeOptions { stop_height: Some(138), ..default.clone() }),
        ("bch-scaling", ForgeOptions { end_time: Some(1_296_688_602), ..default.clone() }),
        ("bch-scaling", ForgeOptions { threads: 2000, ..default.clone() }),
        ("bitcoin-scaling", ForgeOptions { scale: 0.001, ..default.clone() }),
        ("bitcoin-scaling", ForgeOptions { scale: 41.0, ..default.clone() }),
        ("sighash-scaling", ForgeOptions { scale: 0.1, ..default.clone() }),
        ("sighash-scaling", ForgeOptions { scale: 3.0, ..default.clone() }),
        ("sighash-scaling", ForgeOptions { stop_height: Some(326), ..default }),
    ];
    let mut told = String::new();
    for (name, options) in cases {
        let recipe = Recipe::builtin(name).expect("built in");
        let error = estimate(&recipe, &options).expect_err("impossible");
        writeln!(told, "{error}").expect("strings take all");
    }
    insta::assert_snapshot!(told);
}

#[test]
fn coinbases_pay_up_to_the_largest_scale() {
    let recipe = Recipe::builtin("bitcoin-scaling").expect("built in");
    let largest = ForgeOptions { scale: 40.0, ..ForgeOptions::default() };
    estimate(&recipe, &largest).expect("possible");
}

#[test]
fn smallest_scale_works() {
    for name in ["bch-scaling", "bitcoin-scaling"] {
        let recipe = Recipe::builtin(name).expect("built in");
        let error = estimate(&recipe, &ForgeOptions { scale: 0.0, ..ForgeOptions::default() });
        let Err(assay_forge::OptionsError::Scale { min, .. }) = error else {
            panic!("{name}: scale 0 was accepted");
        };
        let dir = tempfile::tempdir().expect("a directory for tests");
        let options = ForgeOptions { scale: min, ..ForgeOptions::default() };
        let made = assay_forge::forge(&recipe, &options, dir.path(), &mut ()).expect("forged");
        let baseline = (name == "bch-scaling").then_some(Phase::Baseline);
        let phases = [Phase::FanOut, Phase::Steady1, Phase::FanIn, Phase::Steady2, Phase::Steady3];
        for phase in phases.into_iter().chain(baseline) {
            let mut blocks = made.ledger.blocks.iter().filter(|line| line.phase == phase);
            assert!(blocks.any(|line| line.inputs > 0), "{name} at {min}: {phase:?}");
        }
    }
}
