//! Whole reports of synthetic results.

use std::fs;

use super::*;
use crate::results::{LoadError, fixture, load};

#[test]
fn report_can_be_rebuilt() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let results = fixture::results();
    write_all(&results, folder.path()).expect("writable");
    let first: Vec<_> =
        FILES.iter().map(|file| fs::read(folder.path().join(file)).expect("there")).collect();
    let again = load(folder.path()).expect("results");
    assert!(again == results, "nothing is lost in results.json");
    write_all(&again, folder.path()).expect("writable");
    for (file, before) in FILES.iter().zip(first) {
        assert_eq!(fs::read(folder.path().join(file)).expect("there"), before, "{file}");
    }
    if let Some(keep) = std::env::var_os("ASSAY_REPORT_FIXTURE_DIR") {
        write_all(&results, Path::new(&keep)).expect("writable");
        write_all(&fixture::syncs(), &Path::new(&keep).join("syncs")).expect("writable");
    }
}

#[test]
fn rejects_bad_results() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("results.json");
    assert!(matches!(load(folder.path()), Err(LoadError::Read { .. })));
    fs::write(&path, b"{}").expect("writable");
    assert!(matches!(load(folder.path()), Err(LoadError::Json { .. })));
    // Schema 1 has a single chain, no indexes, and another name for the reference rates.
    let mut old = serde_json::to_value(fixture::node_results()).expect("results are JSON");
    old["schema"] = 1.into();
    let fields = old.as_object_mut().expect("an object");
    fields.remove("more_chains");
    let rates = fields.remove("reference_rates").expect("reference rates");
    fields.insert("yardsticks".to_owned(), rates);
    for target in old["targets"].as_array_mut().expect("targets") {
        let target = target.as_object_mut().expect("an object");
        target.remove("index");
        target.remove("distinct_keys");
        for run in target["runs"].as_array_mut().expect("runs") {
            run.as_object_mut().expect("an object").remove("index");
            for block in run["blocks"].as_array_mut().expect("blocks") {
                block.as_object_mut().expect("an object").remove("index");
            }
        }
    }
    fs::write(&path, old.to_string()).expect("writable");
    let read = load(folder.path()).expect("schema 1 is read");
    assert!(read == fixture::node_results(), "as one without indexes");
    fs::write(&path, b"{\"schema\":99}").expect("writable");
    let error = load(folder.path()).expect_err("another schema").to_string();
    assert!(error.ends_with("schema 99, this program knows schema 3"), "{error}");
}

#[test]
fn unwritable_folder_names_the_path() {
    let error = write_all(&fixture::results(), Path::new("/dev/null/report"));
    let error = error.expect_err("not a folder").to_string();
    assert!(error.contains("/dev/null/report"), "{error}");
}

#[test]
fn terminal_tables() {
    insta::assert_snapshot!(terminal(&fixture::results()));
}

#[test]
fn whole_page() {
    let results = fixture::results();
    insta::assert_snapshot!(page(&results).markdown());
}

#[test]
fn page_is_self_contained() {
    let results = fixture::results();
    let page = page(&results).html();
    for outside in ["http://", "https://", "<script", "<link", "@import", "url(", "src="] {
        let found = page.matches(outside).count();
        // The namespace of SVG is an address that is never fetched.
        let names = page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count();
        assert_eq!(found, if outside == "http://" { names } else { 0 }, "{outside}");
    }
}

#[test]
fn elements_are_closed() {
    let results = fixture::results();
    let page = page(&results).html();
    for tag in ["section", "table", "tr", "td", "ul", "li", "p", "figure", "svg", "span", "div"] {
        let open =
            page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(open, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}

#[test]
fn escapes_html() {
    let mut results = fixture::results();
    results.targets[0].version = "<script>alert(1)</script>".to_owned();
    results.targets[0].runs[0].void_reason = Some("`<b>` & \"x\"".to_owned());
    let page = page(&results).html();
    assert!(!page.contains("<script") && !page.contains("<b>"));
}
