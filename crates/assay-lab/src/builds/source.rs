//! Source: revisions of the user's git repository, and work trees of them.
//!
//! A work tree is a repository of its own that borrows the objects of the user's (`objects/info/alternates`). Nothing is written
//! to the user's repository, which may be bare or read-only, and a killed build leaves nothing there. The build still finds
//! `.git`, which programs read for the commit in their version.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, anyhow, bail};
use assay_report::child;

use super::no_program;
use crate::machine::disk::renew_folder;

#[derive(Debug, Clone)]
pub struct Repository {
    path: PathBuf,
}

impl Repository {
    /// Opens the repository that contains this folder.
    ///
    /// # Errors
    /// When git is missing or finds no repository.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let path = fs::canonicalize(path)
            .with_context(|| format!("cannot open repository {}", path.display()))?;
        let repository = Self { path };
        repository.ask(["rev-parse", "--git-dir"])?;
        Ok(repository)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Full hash of the commit that a name denotes.
    ///
    /// # Errors
    /// When there is no such commit.
    pub fn commit(&self, revision: &str) -> anyhow::Result<String> {
        let name = format!("{revision}^{{commit}}");
        let arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options", &name];
        self.ask(arguments).map_err(|_| {
            let repository = self.path.display();
            anyhow!("{repository} has no revision {revision:?}; fetch it, or name a commit, tag or branch that `git log` knows")
        })
    }

    /// Merge base of two revisions.
    ///
    /// # Errors
    /// When they have no common ancestor.
    pub fn merge_base(&self, one: &str, other: &str) -> anyhow::Result<String> {
        let (one, other) = (self.commit(one)?, self.commit(other)?);
        self.ask(["merge-base", &one, &other])
    }

    /// First line of a commit message.
    ///
    /// # Errors
    /// When there is no such commit.
    pub fn subject(&self, commit: &str) -> anyhow::Result<String> {
        self.ask(["show", "--no-patch", "--no-show-signature", "--format=%s", commit])
    }

    /// Contents of a file in a commit, if present.
    pub(super) fn file(&self, commit: &str, path: &str) -> Option<String> {
        self.ask(["show", &format!("{commit}:{path}")]).ok()
    }

    /// Creates a work tree of a commit in `folder`, which is emptied first.
    pub(super) fn check_out(&self, commit: &str, folder: &Path) -> anyhow::Result<()> {
        renew_folder(folder)?;
        // Without the user's template for new repositories, which may contain hooks.
        git(folder, ["init", "--quiet", "--template="])?;
        let objects = self.ask(["rev-parse", "--path-format=absolute", "--git-path", "objects"])?;
        let info = folder.join(".git").join("objects").join("info");
        fs::create_dir_all(&info)
            .and_then(|()| fs::write(info.join("alternates"), format!("{objects}\n")))
            .with_context(|| format!("cannot write {}", info.display()))?;
        git(
            folder,
            ["-c", "advice.detachedHead=false", "checkout", "--quiet", "--detach", commit],
        )?;
        Ok(())
    }

    fn ask<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> anyhow::Result<String> {
        git(&self.path, arguments)
    }
}

/// Output of git without the final newline.
fn git<S: AsRef<OsStr>>(
    folder: &Path,
    arguments: impl IntoIterator<Item = S>,
) -> anyhow::Result<String> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(arguments);
    // Git sets these for its hooks; they would override the folder.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"] {
        command.env_remove(name);
    }
    let output = child::output(&mut command).map_err(|source| no_program(source, "git", "git"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    bail!("git in {}: {}", folder.display(), text.trim())
}
