//! Measures the time to parse a block and to compute its txids, one by one and batched, on every backend of this machine.
//!
//! `cargo run --release -p assay-wire --example identifiers <file with one raw block> [rounds]`

#![expect(clippy::print_stdout, reason = "the table is this program's output")]

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use assay_hash::Backend;
use assay_wire::{Block, Encoding, Txid, Wtxid};

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let raw = args.next().and_then(|path| std::fs::read(path).ok());
    let rounds = args.next().map_or(Ok(21), |text| text.parse::<usize>());
    let (Some(raw), Ok(rounds @ 1..)) = (raw, rounds) else {
        println!("usage: identifiers <file with one raw block> [rounds]");
        return ExitCode::from(2);
    };
    let Ok(block) = Block::parse(raw.clone(), Encoding::Segwit) else {
        println!("the file does not hold one block");
        return ExitCode::FAILURE;
    };
    let txs = block.tx_count();
    println!("{txs} transactions, {} bytes; {rounds} interleaved rounds, medians", raw.len());
    let txids: Vec<Txid> = block.txs().map(|tx| tx.txid()).collect();
    let wtxids: Vec<Wtxid> = block.txs().map(|tx| tx.wtxid()).collect();
    let backends = Backend::available();
    let mut times = vec![[const { Vec::new() }; 5]; backends.len()];
    for _ in 0..rounds {
        for (backend, times) in backends.iter().zip(&mut times) {
            backend.select();
            let copy = raw.clone();
            times[0]
                .push(time(|| Block::parse(copy, Encoding::Segwit).map_or(0, |b| b.tx_count())));
            times[1].push(time(|| block.txs().map(|tx| tx.txid()).collect::<Vec<_>>()));
            times[2].push(time(|| block.txids(0..txs)));
            times[3].push(time(|| block.txs().map(|tx| tx.wtxid()).collect::<Vec<_>>()));
            times[4].push(time(|| block.wtxids(0..txs, &txids)));
            assert!(block.txids(0..txs) == txids && block.wtxids(0..txs, &txids) == wtxids);
        }
    }
    println!("ns per transaction   parse   txid   txids  wtxid  wtxids");
    for (backend, times) in backends.iter().zip(&mut times) {
        let medians = times.each_mut().map(|times| {
            times.sort_by(f64::total_cmp);
            times[rounds / 2] / txs as f64
        });
        let [parse, txid, many_txids, wtxid, many_wtxids] = medians;
        println!(
            "{:<20} {parse:>5.0} {txid:>6.0} {many_txids:>7.0} {wtxid:>6.0} {many_wtxids:>7.0}",
            backend.name()
        );
    }
    ExitCode::SUCCESS
}

fn time<T>(run: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    black_box(run());
    start.elapsed().as_nanos() as f64
}
