//! The C interface: its header equals cbindgen's output, and a C program, compiled against the header and linked with the
//! static library, finds the one invalid signature of a batch.

#![expect(clippy::print_stdout, reason = "prints skipped parts and the output of the program")]

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::SystemTime;

/// The header in `include/` equals cbindgen's output for this source.
///
/// `ASSAY_UPDATE_HEADER=1 cargo test -p assay-secp-c header` regenerates it.
#[test]
fn header_equals_that_of_cbindgen() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config =
        cbindgen::Config::from_file(folder.join("cbindgen.toml")).expect("a configuration");
    let mut made = Vec::new();
    cbindgen::Builder::new()
        .with_config(config)
        .with_src(folder.join("src/types.rs"))
        .with_src(folder.join("src/calls.rs"))
        .generate()
        .expect("a header")
        .write(&mut made);
    let made = String::from_utf8(made).expect("UTF-8");

    let path = folder.join("include/assay_secp.h");
    if std::env::var_os("ASSAY_UPDATE_HEADER").is_some() {
        fs::write(&path, &made).expect("the header can be written");
    }
    let kept = fs::read_to_string(&path).expect("the header is in include/");
    assert!(
        kept == made,
        "{} is not what cbindgen makes; to write it anew: ASSAY_UPDATE_HEADER=1 cargo test -p assay-secp-c header\n{made}",
        path.display()
    );
}

/// System libraries of the static library, from `rustc --print native-static-libs`.
const SYSTEM_LIBRARIES: &[&str] = if cfg!(target_os = "macos") {
    &["-lSystem", "-lc", "-lm"]
} else {
    &["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc"]
};

/// The C compiler for the target of this test: `CC`, cargo's linker, or `cc`.
fn compiler() -> OsString {
    std::env::var_os("CC").or_else(|| cargo_setting("LINKER")).unwrap_or_else(|| "cc".into())
}

/// A variable such as `CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER`, of a cross build for Linux.
fn cargo_setting(name: &str) -> Option<OsString> {
    let architecture = std::env::consts::ARCH.to_uppercase();
    std::env::var_os(format!("CARGO_TARGET_{architecture}_UNKNOWN_LINUX_GNU_{name}"))
}

/// The static library that cargo built with this test: the newest one, since cargo has just built or confirmed it.
fn static_library() -> PathBuf {
    let this = std::env::current_exe().expect("this program has a path");
    let folder = this.parent().expect("in a folder");
    let is_ours = |path: &Path| {
        let starts = |stem: &OsStr| stem.to_string_lossy().starts_with("libassay_secp_c");
        path.extension() == Some(OsStr::new("a")) && path.file_stem().is_some_and(starts)
    };
    let modified = |path: &PathBuf| {
        path.metadata().and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
    };
    fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| is_ours(path))
        .max_by_key(modified)
        .expect("cargo builds the static library with the tests")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

fn exists(compiler: &OsString) -> bool {
    let is_there = Command::new(compiler).arg("--version").output().is_ok();
    if !is_there {
        println!("skipped: there is no compiler {}", compiler.display());
    }
    is_there
}

#[test]
fn c_program_finds_the_bad_signature() {
    let compiler = compiler();
    if !exists(&compiler) {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("verify");
    let compiled = Command::new(&compiler)
        .args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-I"])
        .arg(folder.join("include"))
        .arg(folder.join("examples/verify.c"))
        .arg(static_library())
        .args(SYSTEM_LIBRARIES)
        .arg("-o")
        .arg(&program)
        .output()
        .expect("the compiler can be started");
    assert!(compiled.status.success(), "{}", text(&compiled));

    // Under emulation the program needs the emulator too.
    let runner = cargo_setting("RUNNER").map(|runner| runner.to_string_lossy().into_owned());
    let mut words = runner.iter().flat_map(|runner| runner.split_whitespace());
    let mut command = match words.next() {
        Some(emulator) => {
            let mut command = Command::new(emulator);
            command.args(words).arg(&program);
            command
        }
        None => Command::new(&program),
    };
    let output = command.output().expect("the program can be started");
    println!("{}", text(&output));
    assert!(output.status.success(), "{}: {}", output.status, text(&output));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(printed.contains("1 of 1200 signatures is bad: 823"), "{printed}");
}

#[test]
fn header_is_also_cpp() {
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    if !exists(&compiler) {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let compiled = Command::new(&compiler)
        .args(["-std=c++11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c++"])
        .arg(folder.join("include/assay_secp.h"))
        .output()
        .expect("the compiler can be started");
    assert!(compiled.status.success(), "{}", text(&compiled));
}
