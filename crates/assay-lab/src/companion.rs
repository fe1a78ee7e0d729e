//! Programs of this repository that are built apart from this one, each in a workspace of its own, and where they are.

use std::env;
use std::path::{Path, PathBuf};

/// A program that is built apart.
#[derive(Clone, Copy, Debug)]
pub struct Companion<'a> {
    /// Environment variable that may hold its path.
    pub variable: &'a str,
    /// Its workspace below the root of a checkout.
    pub folder: &'a str,
    /// Its file below the workspace. A leading `target` stands for the folder that `CARGO_TARGET_DIR` names.
    pub file: &'a str,
}

impl Companion<'_> {
    /// Places to look at, in order: `named` alone, or the variable's path alone; else the folder of this program, then checkouts.
    pub fn places(&self, named: Option<&Path>) -> Vec<PathBuf> {
        let variable = || env::var_os(self.variable).map(PathBuf::from);
        if let Some(path) = named.map(Path::to_owned).or_else(variable) {
            return vec![path];
        }
        let name = Path::new(self.file).file_name();
        let sibling = env::current_exe().ok().zip(name).map(|(exe, name)| exe.with_file_name(name));
        let mut places: Vec<PathBuf> = sibling.into_iter().chain(self.in_checkouts()).collect();
        places.dedup();
        places
    }

    /// Path of the built program below each of [`Companion::workspaces`].
    pub fn in_checkouts(&self) -> Vec<PathBuf> {
        let file = Path::new(self.file);
        let built = |workspace: PathBuf| match file.strip_prefix("target") {
            Ok(rest) => {
                let target = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
                workspace.join(target).join(rest)
            }
            Err(_) => workspace.join(file),
        };
        self.workspaces().into_iter().map(built).collect()
    }

    /// Its workspace in the checkout that holds the working folder, and in the one that holds this program.
    pub fn workspaces(&self) -> Vec<PathBuf> {
        let is_checkout = |root: &&Path| {
            root.join(self.folder).is_dir() && root.join("crates").join("assay").is_dir()
        };
        let folders = [env::current_dir().ok(), env::current_exe().ok()];
        let roots =
            folders.iter().flatten().filter_map(|folder| folder.ancestors().find(is_checkout));
        let mut workspaces: Vec<PathBuf> = roots.map(|root| root.join(self.folder)).collect();
        workspaces.dedup();
        workspaces
    }
}

/// Paths in a message.
pub fn listed(looked: &[PathBuf]) -> String {
    let names: Vec<String> = looked.iter().map(|path| path.display().to_string()).collect();
    if names.is_empty() { String::new() } else { format!(" (looked at {})", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GNARK: Companion<'static> =
        Companion { variable: "ASSAY_NO_SUCH_VARIABLE", folder: "peers/gnark", file: "gnark" };

    #[test]
    fn a_path_that_is_named_is_the_only_place() {
        let named = Path::new("/nonexistent/peer");
        assert_eq!(GNARK.places(Some(named)), [named]);
        // It is set wherever programs are found at all.
        let by_variable = Companion { variable: "PATH", ..GNARK };
        let path = env::var_os("PATH").map(PathBuf::from).expect("PATH");
        assert_eq!(by_variable.places(None), [path]);
    }

    #[test]
    fn this_program_comes_first_and_its_checkout_next() {
        let places = GNARK.places(None);
        let exe = env::current_exe().expect("this program");
        assert_eq!(places[0], exe.with_file_name("gnark"));
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a root");
        assert_eq!(places[1], root.join("peers/gnark/gnark"));
        let cargos = Companion { file: "target/release/gnark", ..GNARK };
        assert!(cargos.in_checkouts()[0].ends_with("release/gnark"));
        assert!(Companion { folder: "no-such-folder", ..GNARK }.workspaces().is_empty());
    }
}
