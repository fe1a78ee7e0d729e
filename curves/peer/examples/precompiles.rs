//! Times every precompile of the Ethereum virtual machine, ours against revm's, interleaved in one
//! process, on the same inputs, after comparing outputs and gas:
//!
//! `cargo run --release --example precompiles -- [--json] [--rounds N] [NAME …]`
//!
//! The default of `--rounds` is 31; names select the precompiles that contain one, by default all. A round is a
//! sample of each, some milliseconds long, and every second round starts with revm. Times are medians of CPU time on
//! one thread. The ratio, revm's time over ours, is the median of the rounds' ratios with its 95 % interval (order
//! statistics), so a load common to both cancels out. Progress is printed on standard error.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::hint::black_box;

use anyhow::{Context as _, Result, bail, ensure};
use assay_peer_pairing::assay::{PRECOMPILES, gas, precompile_input};
use assay_peer_pairing::evm;
use assay_peer_pairing::interleaved::{Side, measure};
use assay_peer_pairing::table::Work;
use assay_secp::Recoverer;
use assay_secp::ethereum::{ECRECOVER_GAS, ecrecover_all};
use serde_json::json;

const ROUNDS: usize = 31;

/// Sizes of inputs, for precompiles with a size.
const SIZES: [(&str, &[usize]); 9] = [
    ("sha256", &[32, 256, 4096]),
    ("ripemd160", &[32, 256, 4096]),
    ("identity", &[32, 256, 4096]),
    ("modexp", &[32, 64, 128, 256, 512, 1024]),
    ("bn254-pairing", &[1, 2, 4, 8]),
    ("bls12-381-g1msm", &[1, 2, 16, 128]),
    ("bls12-381-g2msm", &[1, 2, 16, 128]),
    ("bls12-381-pairing", &[1, 2, 4, 8]),
    ("ecrecover-many", &[16, 256]),
];

/// Both sides of one comparison.
struct Case {
    name: String,
    gas: u64,
    /// Our side, then revm's.
    sides: [Side; 2],
}

struct Arguments {
    is_json: bool,
    rounds: usize,
    names: Vec<String>,
}

fn main() -> Result<()> {
    let Arguments { is_json, rounds, names } = arguments()?;
    let is_wanted = |name: &str| names.is_empty() || names.iter().any(|part| name.contains(part));
    let all = PRECOMPILES.iter().map(|(_, name, _)| *name).chain(["ecrecover-many"]);
    let cases = all.flat_map(|name| {
        let sizes = SIZES.iter().find(|(with_sizes, _)| *with_sizes == name);
        sizes.map_or(&[0][..], |(_, sizes)| sizes).iter().map(move |size| (name, *size))
    });
    let cases: Vec<(&str, usize)> = cases.filter(|(name, _)| is_wanted(name)).collect();
    ensure!(!cases.is_empty(), "no precompile has a name with {}", names.join(" or "));
    if !is_json {
        println!(
            "{:28} {:>9} {:>12} {:>12} {:>22} {:>11} {:>11}",
            "precompile", "gas", "ours", "revm", "revm / ours", "ours gas/us", "revm gas/us"
        );
    }
    let mut results = Vec::new();
    let mut slower = 0;
    for (done, (name, size)) in cases.iter().enumerate() {
        eprintln!("{name} {size}: {done} of {} done", cases.len());
        let mut case = case(name, *size)?;
        let figures = measure(&mut case.sides, rounds);
        let (ours_ns, revm_ns, [low, median, high]) =
            (figures[0].ns, figures[1].ns, figures[1].ratio);
        slower += usize::from(high < 1.0);
        let rate = |ns: f64| case.gas as f64 / (ns / 1e3);
        if is_json {
            results.push(json!({
                "precompile": case.name, "gas": case.gas, "ours_ns": ours_ns, "revm_ns": revm_ns,
                "ratio": median, "ratio_low": low, "ratio_high": high,
                "ours_gas_per_us": rate(ours_ns), "revm_gas_per_us": rate(revm_ns),
            }));
        } else {
            println!(
                "{:28} {:>9} {:>9.2} us {:>9.2} us {median:>7.2} ({low:.2} to {high:.2}) {:>11.1} {:>11.1}",
                case.name,
                case.gas,
                ours_ns / 1e3,
                revm_ns / 1e3,
                rate(ours_ns),
                rate(revm_ns)
            );
        }
    }
    if is_json {
        println!(
            "{}",
            json!({ "format": 1, "rounds": rounds, "revm": evm::VERSION, "precompiles": results })
        );
    } else {
        println!("{} compared, equal outputs and gas; slower than revm: {slower}", cases.len());
    }
    Ok(())
}

fn arguments() -> Result<Arguments> {
    let mut parsed = Arguments { is_json: false, rounds: ROUNDS, names: Vec::new() };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => parsed.is_json = true,
            "--rounds" => {
                let text = arguments.next().context("--rounds is followed by a number")?;
                parsed.rounds =
                    text.parse().with_context(|| format!("--rounds {text}: no number"))?;
                ensure!((5..=10_000).contains(&parsed.rounds), "--rounds is from 5 to 10,000");
            }
            flag if flag.starts_with('-') => {
                bail!("{flag}: there are --json, --rounds N and names of precompiles")
            }
            name => parsed.names.push(name.to_owned()),
        }
    }
    Ok(parsed)
}

/// Prepares both sides and compares their results.
fn case(name: &'static str, size: usize) -> Result<Case> {
    let title = if size == 0 { name.to_owned() } else { format!("{name}/{size}") };
    let work = Work {
        curve: "evm".to_owned(),
        operation: name.to_owned(),
        size,
        threads: 1,
        seed: 7,
        inputs: String::new(),
    };
    if name == "ecrecover-many" {
        return recoveries(title, &work);
    }
    let (address, _, run) =
        PRECOMPILES.into_iter().find(|(_, own, _)| *own == name).context("a precompile")?;
    let (theirs, input) = (evm::at(address)?, precompile_input(name, &work)?);
    let gas = gas(address, &input);
    let ours = run(&input).ok().map(|output| (output, gas));
    ensure!(ours == evm::verdict(theirs, &input), "{title}: revm's output or gas is another");
    ensure!(ours.is_some(), "{title}: the input is rejected");
    let again = input.clone();
    Ok(Case {
        name: title,
        gas,
        sides: [
            Side::new(1, move || drop(black_box(run(black_box(&input))))),
            Side::new(1, move || drop(black_box(evm::verdict(theirs, black_box(&again))))),
        ],
    })
}

fn recoveries(name: String, work: &Work) -> Result<Case> {
    let (theirs, inputs) = (evm::at(1)?, evm::recoveries(work)?);
    let again = inputs.clone();
    let mut recoverer = Recoverer::new();
    let mut ours = move || {
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        ecrecover_all(&mut recoverer, &inputs)
    };
    let revm = move || -> Vec<Option<(Vec<u8>, u64)>> {
        again.iter().map(|input| evm::verdict(theirs, input)).collect()
    };
    for (ours, revm) in ours().into_iter().zip(revm()) {
        ensure!(ours.map(|word| (word.to_vec(), ECRECOVER_GAS)) == revm, "{name}: another address");
    }
    Ok(Case {
        name,
        gas: ECRECOVER_GAS * work.size as u64,
        sides: [
            Side::new(1, move || drop(black_box(ours()))),
            Side::new(1, move || drop(black_box(revm()))),
        ],
    })
}
