//! Records the versions of the compilers in the program.

use std::env;
use std::process::Command;

fn main() {
    let first_line = |program: &str| -> String {
        let output = Command::new(program).arg("--version").output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        text.ok().and_then(|text| text.lines().next().map(str::to_owned)).unwrap_or_default()
    };
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let cc = env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default().replace('\u{1f}', " ");
    let cflags = env::var("CFLAGS").unwrap_or_default();
    let text = [first_line(&rustc), flags, first_line(&cc), cflags].join("; ");
    println!(
        "cargo::rustc-env=PEER_COMPILER={}",
        text.replace("; ; ", "; ").trim_end_matches("; ")
    );
    for name in ["CC", "CFLAGS", "RUSTFLAGS"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
}
