//! A suite of another program, which serves it ([`crate::serve`]): its benchmarks are measured, and its studies reported, with those
//! of this program.

use std::cell::{OnceCell, RefCell};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::Progress;
use crate::harness::{Alternative, Row};
use crate::serve::{Answer, Order};
use crate::suite::{Benchmark, Extent, Published, Study, Suite};
use crate::talk::Talk;

#[derive(Debug)]
pub struct ServedSuite {
    program: PathBuf,
    arguments: Vec<String>,
    /// Started when benchmarks are listed.
    served: OnceCell<Served>,
}

/// The running program, with the benchmarks and figures that it lists.
#[derive(Debug)]
struct Served {
    talk: RefCell<Talk>,
    benchmarks: Vec<Value>,
    published: Vec<Published>,
}

impl ServedSuite {
    /// The suite that `program` serves when it is called with `arguments` and, after them, an extent.
    pub const fn new(program: PathBuf, arguments: Vec<String>) -> Self {
        Self { program, arguments, served: OnceCell::new() }
    }

    /// The running program; the first extent is that of all calls.
    fn served(&self, extent: Extent) -> Result<&Served> {
        if let Some(served) = self.served.get() {
            return Ok(served);
        }
        let mut arguments = self.arguments.clone();
        arguments.push(extent.text().to_owned());
        let mut talk = Talk::start(&self.program, &arguments)?;
        let Answer { benchmarks, published, .. } = talk.ask(&Order::List)?;
        let served = Served { talk: RefCell::new(talk), benchmarks, published };
        Ok(self.served.get_or_init(|| served))
    }
}

/// Lets a program prepare a benchmark; returns its alternatives, which are named by `name`.
pub(crate) fn prepare<'a>(
    talk: &'a RefCell<Talk>,
    benchmark: &str,
    name: impl Fn(&str) -> String,
) -> Result<Vec<Alternative<'a>>> {
    let order = Order::Prepare { benchmark: benchmark.to_owned() };
    let names = talk.borrow_mut().ask::<Answer>(&order)?.alternatives;
    let alternative = |(alternative, own): (usize, &String)| {
        let order = Order::Epoch { alternative };
        Alternative::fallible(&name(own), move || {
            talk.borrow_mut().ask::<Answer>(&order)?.epoch.context("it timed nothing")
        })
    };
    Ok(names.iter().enumerate().map(alternative).collect())
}

impl Suite for ServedSuite {
    fn benchmarks(&self, extent: Extent) -> Result<Vec<Benchmark<'_>>> {
        let served = self.served(extent)?;
        let benchmark = |listed: &Value| {
            let mut benchmark: Benchmark<'_> = serde_json::from_value(listed.clone())?;
            let name = benchmark.name.clone();
            benchmark.make = Box::new(move || prepare(&served.talk, &name, str::to_owned));
            Ok(benchmark)
        };
        served.benchmarks.iter().map(benchmark).collect()
    }

    fn studies(&self, extent: Extent, rows: &[Row], progress: &dyn Progress) -> Result<Vec<Study>> {
        let mut talk = self.served(extent)?.talk.borrow_mut();
        talk.send(&Order::Studies { rows: rows.to_vec() })?;
        Ok(talk.hear_with_progress(progress)?.studies)
    }

    fn published(&self) -> Vec<Published> {
        self.served.get().map_or_else(Vec::new, |served| served.published.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::harness::{Rounds, compare};

    struct Steps(Cell<u64>);

    impl Progress for Steps {
        fn begin(&self, part: &str, steps: u64) {
            assert_eq!((part, steps), ("traces", 1));
        }

        fn step(&self) {
            self.0.set(self.0.get() + 1);
        }
    }

    /// A program in shell: the answers in their order, the last one again and again.
    fn suite(answers: &[&str]) -> ServedSuite {
        let (last, first) = answers.split_last().expect("an answer");
        let first: Vec<String> = first.iter().map(|one| format!("read order; {one}")).collect();
        let script = format!("{}\nwhile read order; do {last}; done", first.join("\n"));
        ServedSuite::new("sh".into(), vec!["-c".to_owned(), script])
    }

    const LIST: &str = r#"echo '{"benchmarks":[{"name":"fp/4","series":"fp","size":4,"unit":"words","bytes_per_op":null,"baseline":"b"}]}'"#;
    const PREPARED: &str = r#"echo '{"alternatives":["a","b"]}'"#;
    const EPOCH: &str =
        r#"echo '{"epoch":{"ops":10,"wall_ns":50,"cpu_ns":40,"counts":{"instructions":70}}}'"#;

    #[test]
    fn benchmarks_of_another_program_are_measured() {
        let suite = suite(&[LIST, PREPARED, EPOCH]);
        assert!(suite.published().is_empty());
        let benchmarks = suite.benchmarks(Extent::Quick).expect("it is served");
        let [benchmark] = &benchmarks[..] else { panic!("{benchmarks:?}") };
        assert_eq!((&*benchmark.name, &*benchmark.unit), ("fp/4", "words"));
        assert_eq!(benchmark.baseline.as_deref(), Some("b"));
        let mut alternatives = (benchmark.make)().expect("it is prepared");
        let rounds = Rounds { count: 2, warm_up: 0 };
        let row = compare(&benchmark.name, &mut alternatives, rounds, &mut || {}).expect("epochs");
        assert_eq!(row.figures[1].name, "b");
        assert!((row.figures[1].ns_per_op - 5.0).abs() < 1e-9, "{row:?}");
        assert_eq!(row.figures[0].instructions_per_op, Some(7.0));
    }

    #[test]
    fn studies_come_after_their_progress() {
        let answer = r#"echo '{"progress":{"begin":{"part":"traces","steps":1}}}'; echo '{"progress":"done"}'; echo '{"studies":[{"id":"x","title":"X","prose":[],"tables":[]}]}'"#;
        let suite = suite(&[LIST, answer]);
        let steps = Steps(Cell::new(0));
        let studies = suite.studies(Extent::Quick, &[], &steps).expect("they are served");
        assert_eq!((studies[0].id.as_str(), steps.0.get()), ("x", 1));
    }

    #[test]
    fn errors_of_another_program_are_its_own_words() {
        let suite = suite(&[r#"echo '{"error":"no such curve"}'"#]);
        let error = suite.benchmarks(Extent::Full).expect_err("it complains").to_string();
        assert!(error.contains("no such curve"), "{error}");
        let absent = ServedSuite::new("/nonexistent/assay-curves".into(), Vec::new());
        let error = absent.benchmarks(Extent::Full).expect_err("there is none").to_string();
        assert!(error.contains("/nonexistent/assay-curves"), "{error}");
    }
}
