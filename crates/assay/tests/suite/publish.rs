//! `reports/`: its overview and reports match the output of the program on the stored results.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::{command, stderr};

/// Folder with the fewest results.
const SMALLEST: &str = "intel-xeon-model-207-2-cores";

fn publish(arguments: &[&str], into: &Path) -> Output {
    let mut command = command(&["publish"]);
    command.args(arguments).arg("--into").arg(into).output().expect("the program starts")
}

fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../reports")
}

/// Contents of all files below `from`, by relative path.
fn files(from: &Path, dir: &Path, out: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(dir).expect("readable") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(from, &path, out);
        } else {
            let name = path.strip_prefix(from).expect("under it").to_owned();
            out.push((name, fs::read(&path).expect("readable")));
        }
    }
    out.sort();
}

fn all(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut out = Vec::new();
    files(dir, dir, &mut out);
    out
}

#[test]
fn the_page_matches_the_results() {
    let output = publish(&["--check"], &committed());
    assert!(
        output.status.success(),
        "run `assay publish` and commit reports/: {}",
        stderr(&output)
    );
}

#[test]
fn rewriting_is_idempotent_and_a_changed_page_is_found() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let machine = committed().join(SMALLEST);
    for (name, bytes) in all(&machine) {
        let path = folder.path().join(SMALLEST).join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        fs::write(path, bytes).expect("writable");
    }
    assert!(publish(&[], folder.path()).status.success());
    let once = all(folder.path());
    assert_eq!(all(&folder.path().join(SMALLEST)), all(&machine));
    assert!(publish(&[], folder.path()).status.success());
    assert_eq!(all(folder.path()), once);
    assert!(publish(&["--check"], folder.path()).status.success());
    let page = folder.path().join("README.md");
    let text = fs::read_to_string(&page).expect("a page");
    fs::write(&page, text + "changed").expect("writable");
    let output = publish(&["--check"], folder.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("run `assay publish`"));
}

#[test]
fn folders_without_results_are_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (arguments, words) in [
        (vec![], "holds no results: give folders of `assay run`"),
        (vec!["no-such-folder"], "no-such-folder"),
    ] {
        let output = publish(&arguments, folder.path());
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(words), "{output:?}");
    }
}
