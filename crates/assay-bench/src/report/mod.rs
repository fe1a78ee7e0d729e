//! The report of a run: `results.json`, `results.csv`, `report.md` and `report.html`. All depend on the results alone, so a
//! report can be rebuilt from `results.json` at any time.

mod charts;
mod finding;
mod front;
mod prose;
mod record;
mod tables;

use std::path::Path;

use assay_report::atomic_file::{self, WriteError};
use assay_report::{Page, ResultsFile, Section};

pub use assay_report::LoadError;

use crate::results::{BenchResults, Measured, SCHEMA};

pub use self::finding::finding;
pub use self::record::record;

pub const FILES: [&str; 4] = ["results.json", "results.csv", "report.md", "report.html"];

/// Writes the four files into `dir`, each atomically and the results first.
///
/// # Errors
/// When a file cannot be written; the error names it.
pub fn write_all(results: &BenchResults, dir: &Path) -> Result<(), WriteError> {
    atomic_file::create_folder(dir)?;
    write_json(results, &dir.join(FILES[0]))?;
    atomic_file::write(&dir.join(FILES[1]), record(results).csv().as_bytes())?;
    let page = page(results);
    atomic_file::write(&dir.join(FILES[2]), page.markdown().as_bytes())?;
    atomic_file::write(&dir.join(FILES[3]), page.html().as_bytes())
}

/// Writes the results alone.
///
/// # Errors
/// When the file cannot be written.
pub fn write_json(results: &BenchResults, path: &Path) -> Result<(), WriteError> {
    let json = serde_json::to_vec_pretty(results)
        .map_err(|error| WriteError { path: path.to_owned(), source: error.into() })?;
    atomic_file::write(path, &json)
}

/// Reads results from a file, or from `results.json` of a folder.
///
/// # Errors
/// When there are none, or they are of another schema version.
pub fn load(path: &Path) -> Result<BenchResults, LoadError> {
    let path = if path.is_dir() { path.join(FILES[0]) } else { path.to_owned() };
    parse(ResultsFile::read(&path)?)
}

/// Parses results.
///
/// # Errors
/// When they are malformed or of another schema version.
pub fn parse(file: ResultsFile) -> Result<BenchResults, LoadError> {
    const WHAT: &str = "results of benchmarks";
    // Schema versions of other kinds are unrelated.
    if !file.is_of_benchmarks() {
        return Err(file.error(WHAT));
    }
    file.parse(WHAT, SCHEMA..=SCHEMA)
}

pub fn page(results: &BenchResults) -> Page {
    let plan = results.plan.as_ref();
    Page {
        title: plan.map_or("Benchmarks", |plan| &plan.title).to_owned(),
        summary: plan.map_or("", |plan| &plan.summary).to_owned(),
        created: results.created.clone(),
        front: Some(front::of(results)),
        sections: sections(results),
    }
}

fn sections(results: &BenchResults) -> Vec<Section> {
    let mut all = vec![
        Section::new("summary", "Summary", prose::summary(results), tables::summary(results)),
        Section::new(
            "published",
            "Compared with published figures",
            prose::published(results),
            tables::published(results),
        ),
    ];
    for study in &results.studies {
        let id = format!("study-{}", study.id);
        all.push(Section {
            charts: study.draw(),
            ..Section::new(&id, &study.title, study.prose.clone(), study.tables.clone())
        });
    }
    let groups = groups(&results.benchmarks);
    let charts = groups.iter().flat_map(|(group, measured)| charts::of_group(group, measured));
    all.push(Section {
        charts: charts.collect(),
        ..Section::new("charts", "Charts", Vec::new(), Vec::new())
    });
    if !results.builds.is_empty() {
        let every: Vec<&Measured> = results.builds.iter().collect();
        all.push(Section {
            charts: charts::ratios("Builds", &every),
            ..Section::new("builds", "Builds compared", prose::builds(results), Vec::new())
        });
    }
    all.retain(|one| match one.id.as_str() {
        "published" => !one.tables.is_empty(),
        "charts" => !one.charts.is_empty(),
        _ => true,
    });
    all.extend(record(results).page().sections);
    all.push(Section::new("method", "Method", prose::method(results), Vec::new()));
    all
}

/// Benchmarks by the first part of their names, in order of first appearance.
fn groups(all: &[Measured]) -> Vec<(&str, Vec<&Measured>)> {
    let mut groups: Vec<(&str, Vec<&Measured>)> = Vec::new();
    for measured in all {
        let name = measured.name.split('/').next().unwrap_or_default();
        match groups.iter_mut().find(|(group, _)| *group == name) {
            Some((_, members)) => members.push(measured),
            None => groups.push((name, vec![measured])),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::results::fixture;

    #[test]
    fn report_can_be_rebuilt() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let results = fixture::results();
        write_all(&results, folder.path()).expect("writable");
        let read = |file: &str| fs::read(folder.path().join(file)).expect("there");
        let first = FILES.map(read);
        let again = load(folder.path()).expect("results");
        assert!(again == results, "nothing is lost in results.json");
        write_all(&again, folder.path()).expect("writable");
        assert_eq!(FILES.map(read), first);
        if let Some(keep) = std::env::var_os("ASSAY_REPORT_FIXTURE_DIR") {
            write_all(&results, Path::new(&keep)).expect("writable");
        }
    }

    #[test]
    fn everything_has_its_place() {
        let page = page(&fixture::results());
        let (html, markdown) = (page.html(), page.markdown());
        for words in [
            "<td>faster</td>",
            "Ryzen 5 3600",
            "https://example.org/figures (2025-08)",
            "637.0",
            "What &lt;limits&gt; change",
            "<code>paragraph</code>",
            "wrong &lt;answer&gt;",
            "unavailable: refused",
            "g/s, ns/op over bytes",
            "Builds compared",
            "id=\"figures\"",
        ] {
            assert!(html.contains(words), "{words}");
        }
        assert!(markdown.contains("| g/s/520 |") && markdown.contains("**Vectors**"));
        for tag in ["section", "table", "tr", "td", "ul", "li", "p", "figure", "svg"] {
            let open = html.matches(&format!("<{tag}>")).count()
                + html.matches(&format!("<{tag} ")).count();
            assert_eq!(open, html.matches(&format!("</{tag}>")).count(), "{tag}");
        }
        let csv = record(&fixture::results()).csv();
        let columns: Vec<usize> = csv.lines().map(|line| line.matches(',').count()).collect();
        // A name with a comma is quoted, so lines that contain it have one more.
        assert!(columns.iter().all(|count| (columns[0]..=columns[0] + 2).contains(count)), "{csv}");
    }

    #[test]
    fn bad_results_are_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        assert!(matches!(load(folder.path()), Err(LoadError::Read { .. })));
        let path = folder.path().join(FILES[0]);
        fs::write(&path, b"{\"schema\":2}").expect("writable");
        assert!(matches!(load(&path), Err(LoadError::Json { .. })));
        fs::write(&path, b"{\"schema\":9,\"kind\":\"bench\"}").expect("writable");
        let error = load(&path).expect_err("another schema").to_string();
        assert!(error.ends_with("schema 9, this program knows schema 1"), "{error}");
    }
}
