//! Search for the compilers of a plan on this machine.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use assay_lab::process::bounded::output_within;

/// Timeout of printing a version.
const VERSION_WITHIN: Duration = Duration::from_secs(20);

/// Compiler family, which decides the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Gcc,
    Clang,
    Rustc,
}

impl Family {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Gcc => "gcc",
            Self::Clang => "clang",
            Self::Rustc => "rustc",
        }
    }

    /// Family by the version output.
    fn of(version: &str) -> Option<Self> {
        let first = version.lines().next().unwrap_or_default();
        if first.contains("clang version") {
            Some(Self::Clang)
        } else if first.starts_with("rustc ") {
            Some(Self::Rustc)
        } else if version.contains("Free Software Foundation") {
            Some(Self::Gcc)
        } else {
            None
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Compiler {
    /// Name in the plan.
    pub(super) name: String,
    /// Name in reports: family and release, `gcc 12.2.0`.
    pub(super) label: String,
    pub(super) program: PathBuf,
    pub(super) family: Family,
    /// First line of the version output.
    pub(super) version: String,
    /// Numbers of the release from major to patch; empty if the version has none.
    pub(super) release: Vec<u32>,
    /// Other names of the same program in the plan.
    pub(super) also: Vec<String>,
    /// The version output without the name of the program.
    identity: String,
}

/// A compiler of the plan that is unavailable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Absent {
    pub(super) name: String,
    /// Reason, and remedy.
    pub(super) why: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) compilers: Vec<Compiler>,
    pub(super) absent: Vec<Absent>,
}

/// True if a program with one of these names exists; its version is not checked.
pub(super) fn any_exists(names: &[String], path: &OsStr) -> bool {
    names.iter().any(|name| place(name, path).is_some())
}

impl Found {
    /// Searches for these names in the folders of `path`, a list as in the variable PATH; commands
    /// run in `folder`. Two names with the same program or the same version are one compiler.
    pub(super) fn look(names: &[String], path: &OsStr, folder: &Path) -> Self {
        let mut found = Self::default();
        for name in names {
            let Some(program) = place(name, path) else {
                found.absent.push(Absent { name: name.clone(), why: hint(name) });
                continue;
            };
            match Compiler::ask(name, program, folder) {
                Ok(compiler) => found.add(compiler),
                Err(why) => found.absent.push(Absent { name: name.clone(), why }),
            }
        }
        found
    }

    fn add(&mut self, compiler: Compiler) {
        let real =
            |program: &Path| fs::canonicalize(program).unwrap_or_else(|_| program.to_owned());
        let is_same = |other: &&mut Compiler| {
            other.family == compiler.family
                && (other.identity == compiler.identity
                    || real(&other.program) == real(&compiler.program))
        };
        match self.compilers.iter_mut().find(is_same) {
            Some(same) => same.also.push(compiler.name),
            None => self.compilers.push(self.distinct(compiler)),
        }
    }
}

impl Found {
    /// Distinguishes two compilers of one release by their names in the plan.
    fn distinct(&self, compiler: Compiler) -> Compiler {
        let is_taken = self.compilers.iter().any(|other| other.label == compiler.label);
        let label = if is_taken {
            format!("{} ({})", compiler.label, compiler.name)
        } else {
            compiler.label
        };
        Compiler { label, ..compiler }
    }
}

impl Compiler {
    fn ask(name: &str, program: PathBuf, folder: &Path) -> Result<Self, String> {
        let mut command = Command::new(&program);
        command.arg("--version").current_dir(folder).env("LC_ALL", "C");
        let output = output_within(&mut command, VERSION_WITHIN, folder)
            .map_err(|error| format!("`{} --version` failed: {error}", program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version = text.lines().next().unwrap_or_default().trim().to_owned();
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let line = said.lines().next().unwrap_or_default();
            return Err(format!(
                "`{} --version` failed ({}): {line}",
                program.display(),
                output.status
            ));
        }
        let family = Family::of(&text).ok_or_else(|| {
            format!("{} is neither gcc, clang nor rustc: it says `{version}`", program.display())
        })?;
        // gcc prints the name of the program first.
        let identity = match family {
            Family::Gcc => text.split_once(' ').map_or("", |(_, rest)| rest).to_owned(),
            Family::Clang | Family::Rustc => text,
        };
        let release = release(family, &version);
        let numbers: Vec<String> = release.iter().map(ToString::to_string).collect();
        let label = format!("{} {}", family.name(), numbers.join("."));
        let label = if release.is_empty() { name.to_owned() } else { label };
        Ok(Self {
            name: name.to_owned(),
            label,
            program,
            family,
            version,
            release,
            also: Vec::new(),
            identity,
        })
    }
}

/// Numbers of a release: for gcc the last such word, after those of the distribution; otherwise the first.
fn release(family: Family, version: &str) -> Vec<u32> {
    let mut words = version.split_whitespace().filter(|word| {
        word.contains('.') && word.starts_with(|first: char| first.is_ascii_digit())
    });
    let word = if family == Family::Gcc { words.next_back() } else { words.next() };
    let numbers = word.unwrap_or_default().split(['-', '+', '~', ')']).next().unwrap_or_default();
    numbers.split('.').map_while(|number| number.parse().ok()).collect()
}

/// A path is used unchanged; a name is searched for in the folders.
fn place(name: &str, path: &OsStr) -> Option<PathBuf> {
    let is_program = |file: &PathBuf| file.is_file();
    if name.contains('/') {
        let file = env::current_dir().unwrap_or_default().join(name);
        return Some(file).filter(is_program);
    }
    env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(is_program)
}

fn hint(name: &str) -> String {
    if name.contains('/') {
        return "there is no such file; correct the path in the plan".to_owned();
    }
    if name == "rustc" {
        return "not on PATH; install Rust (https://rustup.rs, or Debian: apt-get install rustc)"
            .to_owned();
    }
    format!(
        "not on PATH; install it (Debian, Ubuntu: apt-get install {name}, where the release has it)"
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A folder of scripts that print versions like compilers.
    fn fakes(scripts: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, script) in scripts {
            let path = folder.path().join(name);
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("writable");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("our file");
        }
        folder
    }

    const GCC: &str = r#"echo "$(basename "$0") (Debian 12.2.0-14) 12.2.0"; echo "Copyright (C) 2022 Free Software Foundation, Inc.""#;

    #[test]
    fn compilers_of_a_path() {
        let folder = fakes(&[
            ("gcc", GCC),
            ("gcc-12", GCC),
            (
                "clang-19",
                "echo 'Debian clang version 19.1.7 (3)'; echo 'Target: x86_64-pc-linux-gnu'",
            ),
            ("rustc", "echo 'rustc 1.95.0 (59807616e 2026-04-14)'"),
            ("tcc", "echo 'tcc version 0.9.27 (x86_64 Linux)'"),
            ("broken", "echo 'no toolchain' >&2; exit 1"),
        ]);
        symlink(folder.path().join("clang-19"), folder.path().join("clang")).expect("a link");
        let other = folder.path().join("gcc-12").display().to_string();
        let names = [
            "gcc",
            "gcc-12",
            "gcc-13",
            "clang",
            "clang-19",
            "rustc",
            "tcc",
            "broken",
            &other,
            "/nonexistent/gcc",
        ];
        let found =
            Found::look(&names.map(str::to_owned), folder.path().as_os_str(), folder.path());
        let seen: Vec<(&str, Family, &[String])> = found
            .compilers
            .iter()
            .map(|one| (one.name.as_str(), one.family, &one.also[..]))
            .collect();
        assert_eq!(
            seen,
            [
                ("gcc", Family::Gcc, &["gcc-12".to_owned(), other.clone()][..]),
                ("clang", Family::Clang, &["clang-19".to_owned()][..]),
                ("rustc", Family::Rustc, &[][..]),
            ]
        );
        assert_eq!(found.compilers[0].version, "gcc (Debian 12.2.0-14) 12.2.0");
        let labels: Vec<&str> = found.compilers.iter().map(|one| one.label.as_str()).collect();
        assert_eq!(labels, ["gcc 12.2.0", "clang 19.1.7", "rustc 1.95.0"]);
        let absent: Vec<(&str, &str)> =
            found.absent.iter().map(|one| (one.name.as_str(), one.why.as_str())).collect();
        assert_eq!(absent.len(), 4, "{absent:?}");
        for (name, said) in [
            ("gcc-13", "apt-get install gcc-13"),
            ("tcc", "neither gcc, clang nor rustc: it says `tcc version 0.9.27"),
            ("broken", "no toolchain"),
            ("/nonexistent/gcc", "correct the path"),
        ] {
            assert!(
                absent.iter().any(|(one, why)| *one == name && why.contains(said)),
                "{absent:?}"
            );
        }
    }

    #[test]
    fn releases_and_labels() {
        for (family, version, numbers) in [
            (Family::Gcc, "gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0", &[12, 2, 0][..]),
            (Family::Gcc, "gcc (GCC) 15.1.1 20250521", &[15, 1, 1]),
            (Family::Clang, "Ubuntu clang version 14.0.0-1ubuntu1.1", &[14, 0, 0]),
            (Family::Rustc, "rustc 1.97.0-nightly (0123abc 2026-05-01)", &[1, 97, 0]),
            (Family::Gcc, "gcc 99", &[]),
        ] {
            assert_eq!(release(family, version), numbers, "{version}");
        }
        let folder = fakes(&[("gcc-a", GCC), ("gcc-b", &format!("{GCC}; echo patched"))]);
        let names = ["gcc-a", "gcc-b"].map(str::to_owned);
        let found = Found::look(&names, folder.path().as_os_str(), folder.path());
        let labels: Vec<&str> = found.compilers.iter().map(|one| one.label.as_str()).collect();
        assert_eq!(labels, ["gcc 12.2.0", "gcc 12.2.0 (gcc-b)"]);
    }
}
