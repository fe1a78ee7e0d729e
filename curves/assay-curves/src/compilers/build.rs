//! Builds the programs of the kernels: sources, compilation, start, and the generated machine code.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use assay_bench::harness::Sample;
use assay_bench::talk::Talk;
use assay_bench::wrong_answer;
use assay_lab::process::bounded::output_within;
use serde::Deserialize;

use super::code::{Code, function};
use super::discover::{Compiler, Family};
use super::kernel::{KERNELS, Kernel, SOURCES, Style, hexadecimal};
use super::stack_usage;

/// Timeout of a compiler command; each takes about a second.
const COMPILE_WITHIN: Duration = Duration::from_mins(3);

/// C sources with kernels, without their endings.
const UNITS: [&str; 3] = ["portable", "intrinsics", "assembly"];

/// Folder of the sources, next to those of the programs.
const SOURCES_FOLDER: &str = "sources";

const PROGRAM: &str = "kernels";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flags {
    pub(super) level: u8,
    /// True if the compiler may use MULX and ADX.
    pub(super) mulx: bool,
}

impl Flags {
    pub(super) fn label(self) -> String {
        format!("-O{}{}", self.level, if self.mulx { " +mulx" } else { "" })
    }
}

/// Machine code of a routine, and its stack use as the compiler reports it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Routine {
    pub(super) code: Code,
    pub(super) reported_stack: Option<u64>,
}

/// A running program of all kernels.
#[derive(Debug)]
pub(super) struct Build {
    /// Index of the compiler.
    pub(super) compiler: usize,
    pub(super) flags: Flags,
    routines: BTreeMap<String, Routine>,
    talk: RefCell<Talk>,
    program: PathBuf,
}

#[derive(Deserialize)]
struct Computed {
    result: String,
}

#[derive(Deserialize)]
struct Timed {
    wall_ns: u64,
    cpu_ns: u64,
}

/// Writes the sources into a subfolder of `folder`.
pub(super) fn write_sources(folder: &Path) -> Result<()> {
    let sources = folder.join(SOURCES_FOLDER);
    fs::create_dir_all(&sources).with_context(|| cannot_use(&sources))?;
    for (name, text) in SOURCES {
        let path = sources.join(name);
        fs::write(&path, text).with_context(|| cannot_use(&path))?;
    }
    Ok(())
}

fn cannot_use(path: &Path) -> String {
    format!("cannot use {}", path.display())
}

impl Build {
    /// Compiles and starts a program in a subfolder of `folder`, next to the sources.
    pub(super) fn make(
        folder: &Path,
        index: usize,
        compiler: &Compiler,
        flags: Flags,
    ) -> Result<Self> {
        let suffix = if flags.mulx { "-mulx" } else { "" };
        let work = folder.join(format!("{index}-O{}{suffix}", flags.level));
        fs::create_dir_all(&work).with_context(|| cannot_use(&work))?;
        for arguments in commands(compiler.family, flags) {
            compile(&compiler.program, &arguments, &work)?;
        }
        let program = work.join(PROGRAM);
        let routines = routines(&program, &reported_stack(&work, compiler.family)?)?;
        let talk = RefCell::new(Talk::start(&program, &[])?);
        Ok(Self { compiler: index, flags, routines, talk, program })
    }

    pub(super) fn routine(&self, kernel: Kernel, style: Style) -> Option<&Routine> {
        self.routines.get(&kernel.symbol(style))
    }

    /// Compares a kernel with plain Rust; `name` identifies the program in errors.
    pub(super) fn check(
        &self,
        name: &str,
        (kernel, style): (Kernel, Style),
        inputs: &[(Vec<u64>, Vec<u64>)],
    ) -> Result<()> {
        let symbol = kernel.symbol(style);
        for (a, b) in inputs {
            let [a_text, b_text] = [a, b].map(|number| hexadecimal(number));
            let order = ["compute", &symbol, &a_text, &b_text];
            let Computed { result } = self.talk.borrow_mut().ask(&order)?;
            let expected = hexadecimal(&kernel.expected(a, b));
            if result != expected {
                let detail =
                    format!("{result} for {a_text} and {b_text}, and plain Rust gives {expected}");
                return Err(wrong_answer(kernel.name, name, detail));
            }
        }
        Ok(())
    }

    /// Times `count` calls of a kernel.
    pub(super) fn time(&self, symbol: &str, timing: &str, count: u64) -> Result<Sample> {
        let order = ["time", symbol, timing, &count.to_string()];
        let Timed { wall_ns, cpu_ns } = self.talk.borrow_mut().ask(&order)?;
        if wall_ns == 0 {
            let program = self.program.display();
            bail!("{program} failed: {count} calls of {symbol} took no time");
        }
        Ok(Sample::timed(count, wall_ns, cpu_ns))
    }
}

/// Arguments of the build commands, run in the program's folder. The loop around kernels always has the same flags.
pub(super) fn commands(family: Family, flags: Flags) -> Vec<Vec<OsString>> {
    let words =
        |text: &str| text.split(' ').filter(|word| !word.is_empty()).map(OsString::from).collect();
    let source = |name: &str| format!("../{SOURCES_FOLDER}/{name}");
    if family == Family::Rustc {
        let features = if flags.mulx { "-C target-feature=+bmi2,+adx" } else { "" };
        let level = flags.level;
        return vec![words(&format!(
            "--edition 2021 -C panic=abort -C codegen-units=1 -C opt-level={level} {features} -o {PROGRAM} {}",
            source("driver.rs")
        ))];
    }
    let features = if flags.mulx { "-mbmi2 -madx" } else { "" };
    let sources = UNITS.map(|unit| source(&format!("{unit}.c"))).join(" ");
    let objects = UNITS.map(|unit| format!("{unit}.o")).join(" ");
    vec![
        words(&format!("-O{} {features} -fstack-usage -c {sources}", flags.level)),
        words(&format!("-O2 -o {PROGRAM} {} {objects}", source("driver.c"))),
    ]
}

fn compile(program: &Path, arguments: &[OsString], work: &Path) -> Result<()> {
    let fail = |said: String| anyhow!("{} cannot compile: {said}", program.display());
    let mut command = Command::new(program);
    command.args(arguments).current_dir(work).env("LC_ALL", "C");
    let output = output_within(&mut command, COMPILE_WITHIN, work)
        .map_err(|error| fail(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let line = said.lines().find(|line| line.contains("error")).or(said.lines().next());
    Err(fail(format!("{} ({})", line.unwrap_or("it says nothing").trim(), output.status)))
}

/// Stack use reported by the compiler; rustc reports none.
fn reported_stack(work: &Path, family: Family) -> Result<BTreeMap<String, u64>> {
    let mut functions = BTreeMap::new();
    for unit in UNITS.iter().filter(|_| family != Family::Rustc) {
        let path = work.join(format!("{unit}.su"));
        // Older clang accepts the flag and writes nothing.
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            text => text.with_context(|| cannot_use(&path))?,
        };
        functions.extend(stack_usage::parse(&text, family == Family::Gcc)?);
    }
    Ok(functions)
}

fn routines(program: &Path, reported: &BTreeMap<String, u64>) -> Result<BTreeMap<String, Routine>> {
    let data = fs::read(program).with_context(|| cannot_use(program))?;
    let file = object::File::parse(&data[..])
        .with_context(|| format!("{} is no ELF file that can be read", program.display()))?;
    let mut routines = BTreeMap::new();
    for (kernel, style) in
        KERNELS.into_iter().flat_map(|kernel| Style::ALL.map(|style| (kernel, style)))
    {
        let symbol = kernel.symbol(style);
        let code = function(&file, &symbol)
            .and_then(|(bytes, address)| Code::of(bytes, address))
            .with_context(|| symbol.clone())?;
        let reported_stack = reported.get(&symbol).copied();
        routines.insert(symbol, Routine { code, reported_stack });
    }
    Ok(routines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_by_family() {
        let text = |family, flags| -> Vec<String> {
            let join =
                |words: &Vec<OsString>| words.join(" ".as_ref()).into_string().expect("ours");
            commands(family, flags).iter().map(join).collect()
        };
        let plain = Flags { level: 2, mulx: false };
        let mulx = Flags { level: 3, mulx: true };
        assert!(
            text(Family::Gcc, plain)[0].starts_with("-O2 -fstack-usage -c ../sources/portable.c")
        );
        assert!(text(Family::Clang, mulx)[0].starts_with("-O3 -mbmi2 -madx -fstack-usage -c "));
        assert!(text(Family::Clang, mulx)[1].starts_with("-O2 -o kernels ../sources/driver.c "));
        assert!(text(Family::Rustc, mulx)[0].contains("opt-level=3 -C target-feature=+bmi2,+adx"));
        assert_eq!((plain.label().as_str(), mulx.label().as_str()), ("-O2", "-O3 +mulx"));
    }

    #[test]
    fn a_compiler_that_fails_is_quoted() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let shell = |script: &str| {
            let arguments = ["-c", script].map(OsString::from);
            compile(Path::new("sh"), &arguments, folder.path())
        };
        let error = shell("echo note >&2; echo 'a.c:1: error: no such flag' >&2; exit 4")
            .expect_err("it fails");
        assert_eq!(
            error.to_string(),
            "sh cannot compile: a.c:1: error: no such flag (exit status: 4)"
        );
        assert!(shell("true").is_ok());
    }

    /// A program that prints the same answer to every order.
    fn fixed_answer(answer: &str) -> Build {
        let script = format!("while read order; do echo '{answer}'; done");
        let talk = Talk::start(Path::new("sh"), &["-c".to_owned(), script]).expect("a shell");
        Build {
            compiler: 0,
            flags: Flags { level: 2, mulx: false },
            routines: BTreeMap::new(),
            talk: RefCell::new(talk),
            program: "sh".into(),
        }
    }

    #[test]
    fn wrong_answers_and_impossible_times() {
        let wrong = fixed_answer(r#"{"result":"00"}"#);
        let inputs = KERNELS[0].inputs(7, 1);
        let error =
            wrong.check("fixed_answer", (KERNELS[0], Style::Portable), &inputs).expect_err("wrong");
        assert!(
            error.to_string().starts_with("add256: fixed_answer gave a wrong answer: 00 for 0000"),
            "{error}"
        );
        let idle = fixed_answer(r#"{"wall_ns":0,"cpu_ns":0}"#);
        let error = idle.time("add256_portable", "latency", 5).expect_err("no time");
        assert!(error.to_string().contains("5 calls of add256_portable took no time"), "{error}");
    }
}
