//! Rust counterpart of `driver.c`: runs the kernels on orders, with lines of JSON as input and output.
#![allow(unsafe_code, reason = "the kernels take pointers; the standard library has no clock of CPU time")]

mod kernels;

use std::hint::black_box;
use std::io::{self, BufRead, Write};
use std::time::Instant;

use kernels::*;

const WORDS_MAX: usize = 6;
const CHAINS_MAX: usize = 8;

#[derive(Clone, Copy)]
enum Function {
    InPlace(unsafe extern "C" fn(*mut u64, *const u64)),
    Three(unsafe extern "C" fn(*mut u64, *const u64, *const u64)),
}

#[derive(Clone, Copy)]
struct Kernel {
    name: &'static str,
    words: usize,
    function: Function,
}

macro_rules! entries {
    ($($words:literal $kind:ident $name:ident),+ $(,)?) => {
        [$(Kernel { name: stringify!($name), words: $words, function: Function::$kind($name) }),+]
    };
}

static KERNELS: [Kernel; 15] = entries![
    4 InPlace add256_portable, 4 InPlace add256_intrinsics, 4 InPlace add256_assembly,
    4 Three add_mod_4_portable, 4 Three add_mod_4_intrinsics, 4 Three add_mod_4_assembly,
    6 Three add_mod_6_portable, 6 Three add_mod_6_intrinsics, 6 Three add_mod_6_assembly,
    4 Three mont_mul_4_portable, 4 Three mont_mul_4_intrinsics, 4 Three mont_mul_4_assembly,
    6 Three mont_mul_6_portable, 6 Three mont_mul_6_intrinsics, 6 Three mont_mul_6_assembly,
];

fn parse(text: &str, words: usize) -> Option<[u64; WORDS_MAX]> {
    let mut number = [0; WORDS_MAX];
    if text.len() != words * 16 || !text.is_ascii() {
        return None;
    }
    for (word, at) in number[..words].iter_mut().rev().zip((0..).step_by(16)) {
        *word = u64::from_str_radix(&text[at..at + 16], 16).ok()?;
    }
    Some(number)
}

fn compute(kernel: Kernel, a: &str, b: &str) -> String {
    let (Some(mut a), Some(b)) = (parse(a, kernel.words), parse(b, kernel.words)) else {
        return r#"{"error":"an operand has the wrong length"}"#.to_owned();
    };
    let r = a.as_mut_ptr();
    match black_box(kernel.function) {
        Function::InPlace(f) => unsafe { f(r, b.as_ptr()) },
        Function::Three(f) => unsafe { f(r, r, b.as_ptr()) },
    }
    let digits: String = a[..kernel.words].iter().rev().map(|word| format!("{word:016x}")).collect();
    format!(r#"{{"result":"{digits}"}}"#)
}

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

extern "C" {
    fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
}

/// Linux's number of that clock.
const CLOCK_PROCESS_CPUTIME_ID: i32 = 2;

fn cpu_ns() -> i64 {
    let mut time = Timespec { seconds: 0, nanoseconds: 0 };
    unsafe { clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.seconds * 1_000_000_000 + time.nanoseconds
}

#[repr(align(64))]
struct Operands([[u64; 8]; CHAINS_MAX + 1]);

fn repeat(kernel: Kernel, operands: &mut Operands, chains: usize, count: u64) {
    let a = operands.0.as_mut_ptr().cast::<u64>();
    let b = a.wrapping_add(8 * CHAINS_MAX).cast_const();
    let mask = chains as u64 - 1;
    match black_box(kernel.function) {
        Function::InPlace(f) => {
            for i in 0..count {
                unsafe { f(a.add(8 * (i & mask) as usize), b) };
            }
        }
        Function::Three(f) => {
            for i in 0..count {
                let r = a.wrapping_add(8 * (i & mask) as usize);
                unsafe { f(r, r, b) };
            }
        }
    }
}

fn time(kernel: Kernel, timing: &str, count: u64) -> String {
    let chains = if timing == "throughput" { CHAINS_MAX } else { 1 };
    let mut operands = Operands([[0; 8]; CHAINS_MAX + 1]);
    for word in 0..kernel.words {
        for chain in 0..chains {
            operands.0[chain][word] = (0x123456789abcdef * (chain as u64 + 1)) >> 4;
        }
        operands.0[CHAINS_MAX][word] = 0xfedcba987654321 >> word;
    }
    let (cpu, wall) = (cpu_ns(), Instant::now());
    repeat(kernel, &mut operands, chains, count);
    let wall_ns = wall.elapsed().as_nanos();
    let cpu_ns = cpu_ns() - cpu;
    black_box(&operands.0);
    format!(r#"{{"wall_ns":{wall_ns},"cpu_ns":{cpu_ns}}}"#)
}

fn answer(line: &str) -> String {
    let line = line.replace(['[', ']', '"', ','], " ");
    let words: Vec<&str> = line.split_whitespace().collect();
    let [what, name, first, second] = words[..] else {
        return r#"{"error":"no such order"}"#.to_owned();
    };
    let Some(kernel) = KERNELS.iter().copied().find(|kernel| kernel.name == name) else {
        return r#"{"error":"no such kernel"}"#.to_owned();
    };
    match (what, second.parse()) {
        ("compute", _) => compute(kernel, first, second),
        ("time", Ok(count)) => time(kernel, first, count),
        _ => r#"{"error":"no such order"}"#.to_owned(),
    }
}

fn main() -> io::Result<()> {
    let mut out = io::stdout();
    for line in io::stdin().lock().lines() {
        writeln!(out, "{}", answer(&line?))?;
        out.flush()?;
    }
    Ok(())
}
