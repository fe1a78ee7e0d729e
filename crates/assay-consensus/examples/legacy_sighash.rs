//! Measures how the cost of a legacy signature message grows with the inputs of its transaction:
//! one message at a time, and many at once, on every backend of this machine.
//!
//! `cargo run --release -p assay-consensus --example legacy_sighash [rounds]`

#![expect(clippy::print_stdout, reason = "the table is this program's output")]

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use assay_consensus::script::{SIGHASH_ALL, TxContext};
use assay_hash::Backend;
use assay_wire::{Encoding, Transaction, TxOut, encode};

fn main() -> ExitCode {
    let rounds = std::env::args().nth(1).map_or(Ok(5), |text| text.parse::<usize>());
    let Ok(rounds @ 1..) = rounds else {
        println!("usage: legacy_sighash [rounds]");
        return ExitCode::from(2);
    };
    let backends = Backend::available();
    println!("ns per input, medians of {rounds} interleaved rounds: alone / many at once, ratio");
    for inputs in [10, 31, 32, 100, 300, 1000, 3000, 5569] {
        print!("{inputs:>5} inputs");
        let transaction = transaction(inputs);
        let mut times = vec![[const { Vec::new() }; 2]; backends.len()];
        for _ in 0..rounds {
            let mut answers = Vec::new();
            for (backend, times) in backends.iter().zip(&mut times) {
                backend.select();
                // A script code that is not the one spent is never expected.
                for (script, times) in [&[][..], &P2PKH].into_iter().zip(times) {
                    let spent = vec![TxOut { value: 1, script_pubkey: script }; inputs];
                    let start = Instant::now();
                    let context = TxContext::new(transaction.view(), &spent);
                    let mut sum = [0u8; 32];
                    for input in 0..inputs {
                        let hash = context.sighash_legacy(input, &P2PKH, SIGHASH_ALL);
                        sum.iter_mut().zip(hash).for_each(|(sum, byte)| *sum ^= byte);
                    }
                    times.push(start.elapsed().as_nanos() as f64 / inputs as f64);
                    answers.push(black_box(sum));
                }
            }
            assert!(answers.iter().all(|answer| *answer == answers[0]), "backends differ");
        }
        for (backend, times) in backends.iter().zip(&mut times) {
            let [alone, many] = times.each_mut().map(|times| {
                times.sort_by(f64::total_cmp);
                times[rounds / 2]
            });
            print!("  {} {alone:.0} / {many:.0} {:.2}", backend.name(), alone / many);
        }
        println!();
    }
    ExitCode::SUCCESS
}

const P2PKH: [u8; 25] = [
    0x76, 0xa9, 20, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 0x88,
    0xac,
];

/// A transaction with `inputs` inputs that spend P2PKH, and two outputs.
fn transaction(inputs: usize) -> Transaction {
    let mut raw = vec![1, 0, 0, 0];
    encode::compact_size(&mut raw, inputs as u64);
    for input in 0..inputs {
        raw.extend([input as u8; 36]);
        encode::var_bytes(&mut raw, &[0x51; 107]);
        raw.extend([0xff; 4]);
    }
    raw.push(2);
    for _ in 0..2 {
        raw.extend([0; 8]);
        encode::var_bytes(&mut raw, &P2PKH);
    }
    raw.extend([0; 4]);
    Transaction::parse(raw, Encoding::Legacy).expect("it is built like one")
}
