//! Whole reports of synthetic and of stored results.

use std::fs;

use assay_report::record::Cell;

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
        write_all(&fixture::scaling_results(), &Path::new(&keep).join("widths")).expect("writable");
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
fn figures_and_charts_of_a_plan() {
    let record = record(&fixture::results());
    assert_eq!(
        record.headline,
        "assay+index validates 59,189 inputs/s with nothing relayed before its block, and 191,504 inputs/s with 90 % of each block \
         relayed before; the first is 0.79× the rate at which the reference library verifies signatures on all cores."
    );
    let scale = "the chain is of scale 0.02 (127 blocks, 232,016 inputs)";
    assert!(record.notes[0].starts_with(scale), "{:?}", record.notes);
    for (target, case, metric, expected) in [
        ("assay+index, 0 % pre-relayed", "", "inputs", 59_189.0),
        ("assay+index, 0 % pre-relayed", "", "service time", 3.920),
        ("bchn-28.0.1, 90 % pre-relayed", "", "transactions", 7_773.1),
        ("bchn-28.0.1, 0 % pre-relayed", "Fan-in", "MiB", 1.460),
        ("bchn-28.0.1, 90 % pre-relayed", "", "pre-relayed | in the mempool", 90.0),
        ("assay+index, 0 % pre-relayed", "", "index | inputs, with the node", 58_985.0),
        ("reference library, all cores", "", "signatures", 75_000.0),
        ("chain", "", "contents | blocks", 27.0),
    ] {
        let is_it =
            |cell: &&Cell| (&*cell.target, &*cell.case, &*cell.metric) == (target, case, metric);
        let found: Vec<f64> = record.cells.iter().filter(is_it).map(|cell| cell.value).collect();
        let [value] = found[..] else { panic!("{target}, {case}, {metric}: {found:?}") };
        assert!((value / expected - 1.0).abs() < 1e-3, "{target}, {case}, {metric}: {value}");
    }
    assert!(record.has_passed(), "{:?}", record.checks);
    let page = record.page();
    let ids: Vec<&str> = page.sections.iter().map(|section| section.id.as_str()).collect();
    for id in
        ["checks", "figures", "curves", "times", "disk", "contents", "index", "resources", "setup"]
    {
        assert!(ids.contains(&id), "{id}: {ids:?}");
    }
    // Bars of four rates, curves of the blocks, and of memory, written bytes and cores.
    let charts = page.pictures().len();
    assert!(charts >= 4 + 3 + 3, "{charts}");
    let text = record.text();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(
        !text.contains("written in blocks") && record.csv().contains("disk | written in blocks")
    );
}

#[test]
fn verdict_is_the_headline() {
    let record = record(&fixture::syncs());
    let verdict = &record.headline;
    assert!(verdict.starts_with("VERDICT: undecided"), "four pairs cannot show one: {verdict}");
    assert!(verdict.contains("4 of 4 planned pairs"), "{verdict}");
    assert!(!record.values("total", "ratio").is_empty());
    let once = super::record(&fixture::results());
    assert!(once.notes.iter().any(|note| note.starts_with("each target ran once")));
    assert!(!once.page().markdown().contains("VERDICT"));
}

#[test]
fn void_runs_have_no_figures() {
    let mut results = fixture::results();
    for run in results.targets.iter_mut().flat_map(|target| &mut target.runs) {
        run.status = crate::results::Status::Void;
        run.void_reason = Some("the tip differs".to_owned());
    }
    let record = record(&results);
    let is_measured =
        |cell: &&Cell| results.targets.iter().any(|target| cell.target.starts_with(&target.name));
    assert_eq!(record.cells.iter().filter(is_measured).count(), 0);
    assert!(record.samples.is_empty() && !record.has_passed());
    assert!(record.notes[0].ends_with(" is discarded: the tip differs"), "{:?}", record.notes);
}

/// Results that were published with schema 1 to 3 become records with their figures.
#[test]
fn stored_results_are_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../reports");
    let mut found = 0;
    for machine in fs::read_dir(root).expect("reports").flatten().filter(|e| e.path().is_dir()) {
        for plan in fs::read_dir(machine.path()).expect("a folder").flatten() {
            let path = plan.path().join("results.json.gz");
            let Ok(file) = assay_report::ResultsFile::read(&path) else { continue };
            let Ok(results) = crate::results::parse(file) else { continue };
            let record = record(&results);
            assert!(!record.cells.is_empty() && !record.samples.is_empty(), "{}", path.display());
            let blocks: usize = results.runs().map(|run| run.blocks.len()).sum();
            assert!(blocks > 0 && record.page().markdown().contains(&record.headline));
            found += 1;
        }
    }
    assert!(found > 0, "there are stored results of chains");
}

#[test]
fn page_is_self_contained() {
    let results = fixture::results();
    let page = record(&results).page().html();
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
    let page = record(&results).page().html();
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
    let page = record(&results).page().html();
    assert!(!page.contains("<script") && !page.contains("<b>"));
}
