//! Prepares a common initial state before a run: data folder and page cache.

use std::path::Path;
use std::{fs, io};

use assay_report::atomic_file::WriteError;

use crate::chain::block_files;
use crate::machine::disk::forget_file;
use crate::plan::Plan;
use crate::results::Preparation;

const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Copies the data folder of the plan, and empties the page cache if configured.
pub(crate) fn prepare(
    plan: &Plan,
    blocks: &Path,
    datadir: &Path,
) -> Result<Preparation, WriteError> {
    let mut done = Preparation::default();
    if let Some(from) = &plan.runs.start_from {
        done.copied_bytes = copy(from, datadir)?;
        done.copied_from = Some(from.display().to_string());
    }
    if plan.runs.drop_caches {
        done.page_cache = Some(empty_page_cache(&[blocks, datadir]));
    } else if plan.runs.drop_blocks {
        done.page_cache = Some(drop_blocks(blocks));
    }
    Ok(done)
}

/// A full copy: links would let one run write into the files of the next.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<u64, WriteError> {
    let at = WriteError::at;
    fs::create_dir_all(to).map_err(at(to))?;
    let mut bytes = 0;
    for entry in fs::read_dir(from).map_err(at(from))? {
        let entry = entry.map_err(at(from))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(at(&source))?;
        if kind.is_dir() {
            bytes += copy(&source, &target)?;
        } else if kind.is_file() {
            bytes += fs::copy(&source, &target).map_err(at(&source))?;
        } else {
            let reason = "neither a file nor a folder: a data folder to begin from holds no links";
            return Err(at(&source)(io::Error::other(reason)));
        }
    }
    Ok(bytes)
}

/// Evicts the block files from the page cache; returns a description.
fn drop_blocks(blocks: &Path) -> String {
    let forgotten = match block_files(blocks) {
        Ok(files) => files.iter().find_map(|file| forget_file(file).err()),
        Err(error) => Some(error),
    };
    match forgotten {
        None => "block files dropped from the page cache before each run".to_owned(),
        Some(error) => format!("block files stayed in the page cache ({error})"),
    }
}

/// Evicts files from the page cache: everything if the kernel permits, else the files of these folders. Returns a description.
fn empty_page_cache(folders: &[&Path]) -> String {
    // Dirty pages cannot be dropped.
    rustix::fs::sync();
    if fs::write(DROP_CACHES, "3\n").is_ok() {
        return "all of it was emptied".to_owned();
    }
    let (mut dropped, mut refused) = (0, 0);
    for folder in folders {
        drop_files(folder, &mut dropped, &mut refused);
    }
    let done = format!("{dropped} files of chain and data folder were taken out of it");
    if refused == 0 { done } else { format!("{done}, {refused} could not be") }
}

fn drop_files(folder: &Path, dropped: &mut u64, refused: &mut u64) {
    // Block files may be a single one.
    if folder.is_file() {
        *(if forget_file(folder).is_ok() { dropped } else { refused }) += 1;
        return;
    }
    let Ok(entries) = fs::read_dir(folder) else {
        *refused += 1;
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => drop_files(&path, dropped, refused),
            Ok(kind) if kind.is_file() => {
                let advised = forget_file(&path);
                *(if advised.is_ok() { &mut *dropped } else { &mut *refused }) += 1;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some_folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir_all(folder.path().join("regtest/blocks")).expect("writable");
        fs::write(folder.path().join("regtest/blocks/blk00000.dat"), [7; 5000]).expect("writable");
        fs::write(folder.path().join("regtest/note"), "12345").expect("writable");
        folder
    }

    #[test]
    fn a_run_begins_with_a_copy_of_its_own() {
        let (from, to) = (some_folder(), tempfile::tempdir().expect("a temporary folder"));
        assert_eq!(copy(from.path(), to.path()).expect("copied"), 5005);
        let copied = to.path().join("regtest/note");
        fs::write(&copied, "changed").expect("writable");
        let model = fs::read_to_string(from.path().join("regtest/note")).expect("there");
        assert_eq!(model, "12345", "the model stays as it was");
        let error = copy(&from.path().join("none"), to.path()).expect_err("not there").to_string();
        assert!(error.contains("none"), "{error}");
        std::os::unix::fs::symlink("/", from.path().join("link")).expect("writable");
        assert!(copy(from.path(), to.path()).is_err(), "links are refused");
    }

    #[test]
    fn files_leave_the_page_cache() {
        let folder = some_folder();
        let (mut dropped, mut refused) = (0, 0);
        drop_files(folder.path(), &mut dropped, &mut refused);
        assert_eq!((dropped, refused), (2, 0));
        drop_files(&folder.path().join("none"), &mut dropped, &mut refused);
        assert_eq!(refused, 1, "what cannot be read is told");
        let done = drop_blocks(&folder.path().join("regtest/blocks"));
        assert_eq!(done, "block files dropped from the page cache before each run");
    }
}
