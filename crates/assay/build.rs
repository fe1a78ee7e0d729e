//! Notes the compiler and the commit of the program, for records of measurements.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=../assay/build.rs");
    let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    println!("cargo:rustc-env=ASSAY_RUSTC_VERSION={}", output(&compiler, &["--version"]));
    println!(
        "cargo:rustc-env=ASSAY_COMMIT={}",
        output("git", &["rev-parse", "--short=12", "HEAD"])
    );
    // Each commit and checkout appends to it. A watched file that is missing would cause a build each time.
    let log = output("git", &["rev-parse", "--git-path", "logs/HEAD"]);
    if Path::new(&log).is_file() {
        println!("cargo:rerun-if-changed={log}");
    }
}

/// Standard output of a program; empty if it fails.
fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().ok();
    let text = output.filter(|output| output.status.success()).map(|output| output.stdout);
    String::from_utf8(text.unwrap_or_default()).unwrap_or_default().trim().to_owned()
}
