//! Integration tests of a crate are modules of one program, `tests/suite/main.rs`, because each program is linked with all that
//! is below it. Others are named in the crate's `Cargo.toml`, with the reason.

use std::path::{Path, PathBuf};

use super::{is_rust, read};

/// Finds tests that would be a program of their own, and files of the suite that no `mod` reaches: their tests would not run.
pub(super) fn check(
    root: &Path,
    sources: &[PathBuf],
    findings: &mut Vec<String>,
) -> anyhow::Result<()> {
    for path in sources.iter().filter(|path| is_rust(path)) {
        let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
        let [workspace @ ("crates" | "curves"), krate, "tests", rest @ ..] = &parts[..] else {
            continue;
        };
        let program = match rest {
            [file] => file.strip_suffix(".rs"),
            [folder, "main.rs"] => Some(*folder),
            _ => None,
        };
        if let Some(program) = program {
            let manifest = read(&root.join(workspace).join(krate).join("Cargo.toml"))?;
            let entry = format!("[[test]]\nname = \"{program}\"\n");
            if program != "suite" && !manifest.contains(&entry) {
                findings.push(format!("{} is no module of tests/suite/main.rs", path.display()));
            }
            continue;
        }
        let parent = parent(path);
        let is_reached = parent.is_some_and(|(name, parents)| {
            let declaration = format!("mod {name};");
            let is_it = |line: &str| line.trim_start().ends_with(&declaration);
            let text = |parent: &PathBuf| read(&root.join(parent)).unwrap_or_default();
            let [beside @ .., program] = &parents;
            // The program above declares it in the block of its folder alone.
            let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
            let block = format!("mod {} {{", folder.display());
            beside.iter().any(|parent| text(parent).lines().any(is_it))
                || text(program)
                    .lines()
                    .skip_while(|line| !line.ends_with(&block))
                    .take_while(|line| *line != "}")
                    .any(is_it)
        });
        if !is_reached {
            findings.push(format!("{}: no file declares this module", path.display()));
        }
    }
    Ok(())
}

/// A module's name, and the files that may declare it.
fn parent(path: &Path) -> Option<(&str, [PathBuf; 4])> {
    let folder = path.parent()?;
    let stem = path.file_stem()?.to_str()?;
    let (name, above) = if stem == "mod" {
        (folder.file_name()?.to_str()?, folder.parent()?)
    } else {
        (stem, folder)
    };
    // In the file of the program, the module may be in another one.
    let program = above.with_file_name("main.rs");
    let parents =
        [above.join("main.rs"), above.join("mod.rs"), above.with_extension("rs"), program];
    Some((name, parents))
}

#[cfg(test)]
mod checks {
    use super::*;

    #[test]
    fn names_and_parents_of_modules() {
        let of = |path: &'static str| {
            let (name, parents) = parent(Path::new(path)).expect("a module");
            (name, parents.map(|parent| parent.display().to_string()))
        };
        assert_eq!(
            of("suite/a.rs"),
            ("a", ["suite/main.rs", "suite/mod.rs", "suite.rs", "main.rs"].map(str::to_owned))
        );
        assert_eq!(
            of("suite/b/mod.rs"),
            ("b", ["suite/main.rs", "suite/mod.rs", "suite.rs", "main.rs"].map(str::to_owned))
        );
        assert_eq!(
            of("suite/b/c.rs"),
            (
                "c",
                ["suite/b/main.rs", "suite/b/mod.rs", "suite/b.rs", "suite/main.rs"]
                    .map(str::to_owned)
            )
        );
    }
}
