//! Results as text: for a terminal, CSV and Markdown.

use std::fmt::Write as _;

use crate::report::record;
use crate::results::BenchResults;

pub fn csv(results: &BenchResults) -> String {
    record(results).csv()
}

pub fn markdown(results: &BenchResults) -> String {
    record(results).page().markdown()
}

pub fn terminal(results: &BenchResults) -> String {
    let mut text = record(results).text();
    for study in &results.studies {
        let _ = write!(text, "\n{}\n", study.title);
        for paragraph in &study.prose {
            let _ = writeln!(text, "  {paragraph}");
        }
        study.tables.iter().for_each(|table| {
            text.push('\n');
            table.text(&mut text);
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use assay_report::record::Outcome;

    use super::*;
    use crate::experiment::TIMES;
    use crate::results::fixture;

    #[test]
    fn figures_of_the_record_are_those_of_the_results() {
        let results = fixture::results();
        let record = record(&results);
        assert_eq!(record.outcome(), Outcome::Failed("wrong <answer>".to_owned()));
        let measured = &results.benchmarks[1];
        let of = |metric: &str| -> Vec<f64> {
            let cells = record.cells.iter().filter(|cell| {
                (&*cell.target, &*cell.case) == (&*measured.name, "ours, fast")
                    && cell.metric == metric
            });
            cells.map(|cell| cell.value).collect()
        };
        let figures = measured.row.of("ours, fast").expect("an alternative");
        let times_ns: Vec<f64> = of("time").iter().map(|seconds| seconds * 1e9).collect();
        assert_eq!(times_ns.len(), figures.samples_ns.len());
        assert!(
            times_ns.iter().zip(&figures.samples_ns).all(|(one, other)| (one - other).abs() < 1e-3)
        );
        let ratio = measured.comparison("ours, fast").expect("a comparison").ratio;
        assert_eq!(of(TIMES), [ratio.median]);
        assert_eq!(of("ratio of times, low"), [ratio.low]);
        let text = terminal(&results);
        for part in ["g/s/520", "FAILED: wrong <answer>", "One `paragraph`."] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let stopped = BenchResults { is_complete: false, failures: Vec::new(), ..results };
        assert!(matches!(super::record(&stopped).outcome(), Outcome::NotRun(_)));
    }
}
