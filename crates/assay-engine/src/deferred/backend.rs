//! Selects the backend that verifies signatures.
//!
//! It is measured once and stored in a file of the user's cache folder, so that short commands do not measure first. The file has
//! a line per processor, number of cores and set of hidden features, and is valid for one version of this program.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use assay_hash::cpu;
use assay_secp::Backend;

use super::settings;

/// The backend named by `ASSAY_BACKEND`, or the fastest one of this machine.
pub(super) static BACKEND: LazyLock<Backend> = LazyLock::new(|| {
    settings::backend().or_else(remembered).unwrap_or_else(|| {
        let backend = Backend::fastest();
        remember(backend);
        backend
    })
});

/// Name of the backend that verifies signatures.
pub fn backend_name() -> &'static str {
    BACKEND.name()
}

/// The stored backend, if this machine supports it.
fn remembered() -> Option<Backend> {
    let text = fs::read_to_string(file()?).ok()?;
    let machine = machine();
    let name = text.lines().find_map(|line| line.strip_prefix(&machine)?.strip_prefix('\t'))?;
    Backend::by_name(name).filter(|backend| backend.available())
}

/// Stores it for the next process. Failures are ignored.
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
    // Limit the number of machines that share a home folder.
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

/// The cache file: in `$XDG_CACHE_HOME` or `~/.cache`, as in the XDG base directory specification.
fn file() -> Option<PathBuf> {
    let named = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let dir = named.filter(|dir| dir.is_absolute()).or_else(|| {
        std::env::home_dir().filter(|dir| dir.is_absolute()).map(|home| home.join(".cache"))
    })?;
    Some(dir.join("assay").join(concat!("signature-backend-", env!("CARGO_PKG_VERSION"))))
}

/// The inputs of the choice, in one line without tabs.
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
    fn the_machine_key_is_one_line() {
        let machine = machine();
        assert!(!machine.contains(['\t', '\n']), "{machine:?}");
        assert_eq!(machine, super::machine());
    }
}
