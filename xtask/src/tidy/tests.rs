//! Integration tests of a crate are modules of one program, `tests/suite/main.rs`, because each program is linked with all that
//! is below it. Others are named in the crate's `Cargo.toml`, with the reason.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{is_rust, read};

/// Number of files less the number of declarations, by program and name of the module.
type Modules = BTreeMap<(String, String), i32>;

/// Finds tests that would be a program of their own, and files of the suite that no `mod` declares: their tests would not run.
pub(super) fn check(
    root: &Path,
    sources: &[PathBuf],
    findings: &mut Vec<String>,
) -> anyhow::Result<()> {
    let mut modules = Modules::new();
    for path in sources.iter().filter(|path| is_rust(path)) {
        let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
        let [workspace @ ("crates" | "curves"), krate, "tests", rest @ ..] = &parts[..] else {
            continue;
        };
        if let [program, "main.rs"] | [program] = rest
            && let program = program.trim_end_matches(".rs")
            && program != "suite"
            && !read(&root.join(workspace).join(krate).join("Cargo.toml"))?
                .contains(&format!("[[test]]\nname = \"{program}\"\n"))
        {
            findings.push(format!("{} is no module of tests/suite/main.rs", path.display()));
        }
        add(&parts[..parts.len().min(4)].join("/"), rest, &read(&root.join(path))?, &mut modules);
    }
    let undeclared = modules.into_iter().filter(|(_, count)| *count > 0);
    findings.extend(undeclared.map(|((program, name), _)| format!("{program}: no mod {name}")));
    Ok(())
}

/// Adds a file of a program and its declarations. The first part of the path is the folder of the program.
fn add(program: &str, path: &[&str], text: &str, modules: &mut Modules) {
    let file = match path {
        [] | [_] | [_, "main.rs"] => None,
        [.., folder, "mod.rs"] => Some(*folder),
        [.., file] => file.strip_suffix(".rs"),
    };
    let declared = text.lines().filter_map(|line| {
        let (before, name) = line.trim().strip_suffix(';')?.split_once("mod ")?;
        (before.is_empty() || before.starts_with("pub")).then_some(name)
    });
    for (name, count) in
        file.map(|name| (name, 1)).into_iter().chain(declared.map(|name| (name, -1)))
    {
        *modules.entry((program.to_owned(), name.to_owned())).or_default() += count;
    }
}

#[cfg(test)]
mod checks {
    use super::*;

    #[test]
    fn planted_files_without_a_declaration_are_found() {
        let mut modules = Modules::new();
        for (path, text) in [
            (&["suite", "main.rs"][..], "mod a;\nmod b {\n    pub(crate) mod c;\n}\nmod d;\n"),
            (&["suite", "a.rs"], "use x; // mod e;\n"),
            (&["suite", "b", "c.rs"], ""),
            (&["suite", "d", "mod.rs"], "#[path = \"x.rs\"]\nmod f;"),
            (&["suite", "d", "c.rs"], ""),
            (&["suite", "e.rs"], "let modules = x;"),
        ] {
            add("suite", path, text, &mut modules);
        }
        modules.retain(|_, count| *count > 0);
        let names: Vec<&str> = modules.keys().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["c", "e"]);
    }
}
