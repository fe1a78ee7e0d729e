//! Which backend verifies signatures.
//!
//! It is measured, and remembered in a file of the user's cache folder, so that a short command does not measure first. The
//! file has a line for each processor, number of cores, and set of hidden features, and is of one version of this program.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use assay_hash::cpu;
use assay_secp::Backend;

use super::settings;

/// The backend that `ASSAY_BACKEND` names, or the fastest one on this machine.
pub(super) static BACKEND: LazyLock<Backend> = LazyLock::new(|| {
    settings::backend().or_else(remembered).unwrap_or_else(|| {
        let backend = Backend::fastest();
        remember(backend);
        backend
    })
});

/// The name of the backend that verifies signatures.
pub fn backend_name() -> &'static str {
    BACKEND.name()
}

/// What was found to be the fastest before, if this machine runs it.
fn remembered() -> Option<Backend> {
    let text = fs::read_to_string(file()?).ok()?;
    let machine = machine();
    let name = text.lines().find_map(|line| line.strip_prefix(&machine)?.strip_prefix('\t'))?;
    Backend::by_name(name).filter(|backend| backend.available())
}

/// Keeps it for the next process. Nothing depends on whether that works.
fn remember(backend: Backend) {
    let Some(file) = file() else { return };
    let machine = machine();
    let before = fs::read_to_string(&file).unwrap_or_default();
    let mut lines: Vec<String> = before
        .lines()
        .filter(|line| line.split('\t').next() != Some(&machine))
        .map(str::to_owned)
        .collect();
    lines.push(format!("{machine}\t{}", backend.name()));
    // More machines than share a home folder are not worth remembering.
    let first = lines.len().saturating_sub(MACHINES_MAX);
    let text = lines[first..].join("\n") + "\n";
    let temporary = file.with_extension(std::process::id().to_string());
    let written = file
        .parent()
        .is_none_or(|dir| fs::create_dir_all(dir).is_ok() && fs::write(&temporary, text).is_ok());
    if !written || fs::rename(&temporary, &file).is_err() {
        let _ = fs::remove_file(&temporary);
    }
}

const MACHINES_MAX: usize = 64;

/// Where it is remembered: `$XDG_CACHE_HOME` or `~/.cache`, as the XDG base directory specification has it.
fn file() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let dir = named.filter(|dir| dir.is_absolute()).or_else(|| {
        std::env::home_dir().filter(|dir| dir.is_absolute()).map(|home| home.join(".cache"))
    })?;
    Some(dir.join("assay").join(concat!("signature-backend-", env!("CARGO_PKG_VERSION"))))
}

/// What the fastest backend depends on, in one line without tabs.
fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|line| line.split(':').next().map(str::trim) == Some(name));
        line.and_then(|line| line.split_once(':')).map_or("", |(_, value)| value.trim()).to_owned()
    };
    let hidden: Vec<&str> =
        cpu::hidden().into_iter().flatten().map(cpu::CpuFeature::name).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let processor =
        ["model name", "cpu family", "model", "stepping", "microcode"].map(field).join(" ");
    format!("{processor}, {threads} threads, without {}", hidden.join(" ")).replace('\t', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_one_line() {
        let machine = machine();
        assert!(!machine.contains(['\t', '\n']), "{machine:?}");
        assert_eq!(machine, super::machine());
    }
}
