//! Runs random scripts for a given time under a sanitizer: `docs/sanitizers.md`.
//!
//! `soak [--seconds N] [--seed N] [--fault overflow|leak]`. A deliberate fault shows that the sanitizer works.

#![expect(unsafe_code, reason = "the overflow that a sanitizer has to find")]
#![expect(clippy::print_stdout, reason = "a program of its own")]

use std::hint::black_box;
use std::time::Duration;

use assay_studies::stack::soak::soak;

fn main() {
    let mut seconds = 60;
    let mut seed = 1;
    let mut fault = String::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().unwrap_or_default();
        let number = || value.parse().unwrap_or_else(|_| panic!("{name} takes a number"));
        match name.as_str() {
            "--seconds" => seconds = number(),
            "--seed" => seed = number(),
            "--fault" => fault = value,
            _ => panic!("unknown: {name}; give --seconds, --seed or --fault"),
        }
    }
    match fault.as_str() {
        "" => {}
        "overflow" => overflow(),
        "leak" => leak(),
        _ => panic!("--fault is overflow or leak"),
    }
    let soaked = soak(Duration::from_secs(seconds), seed);
    println!("{} inputs verified, {} passed, {} bytes", soaked.inputs, soaked.passed, soaked.bytes);
}

/// Reads beyond the end of an array of a hundred numbers.
#[inline(never)]
fn overflow() {
    let numbers = black_box(vec![1u32; 100]);
    // SAFETY: none; the sanitizer must stop the program here.
    let behind = unsafe { numbers.as_ptr().add(black_box(100)).read_volatile() };
    println!("read behind the end: {behind}");
}

/// Leaks memory without a pointer to it.
#[inline(never)]
fn leak() {
    std::mem::forget(black_box(vec![1u32; 100]));
}
