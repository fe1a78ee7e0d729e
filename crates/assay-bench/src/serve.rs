//! Benchmarks on order, for a process that compares builds of this program, or that has suites of another program in its plan
//! ([`crate::served`]): a line of JSON for each order and answer.

use std::cell::RefCell;
use std::io::{self, BufRead, Write};

use anyhow::{Context as _, Result};
use assay_report::record::Record;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Progress;
use crate::harness::{Alternative, Row, Sample};
use crate::registry::{Filter, Section, benchmarks};
use crate::suite::{Benchmark, Extent, Published, Study};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub(crate) enum Order {
    /// List the benchmarks and the published figures for them.
    List,
    /// Prepare a benchmark; the one before is dropped.
    Prepare { benchmark: String },
    /// Time one epoch of an alternative.
    Epoch {
        /// Index from 0, in the order of the response to the preparation.
        alternative: usize,
    },
    /// Answer the questions that times alone do not. Lines with `progress` come before the answer.
    Studies { rows: Vec<Row> },
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Answer {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) alternatives: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) epoch: Option<Sample>,
    /// As [`Benchmark`] serialises itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) benchmarks: Vec<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) published: Vec<Published>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) studies: Vec<Study>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) record: Option<Record>,
    /// Progress of an answer that is still to come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) progress: Option<Step>,
}

impl Answer {
    fn failed(error: &anyhow::Error) -> Self {
        Self { error: Some(format!("{error:#}")), ..Self::default() }
    }
}

/// A call of [`Progress`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Step {
    Begin { part: String, steps: u64 },
    Done,
}

/// Writes progress between the answers.
struct Reported<'w, W>(&'w RefCell<W>);

impl<W: Write> Reported<'_, W> {
    fn report(&self, step: Step) {
        // An error is ignored: if the reader has gone, writing the answer fails as well.
        let _ = write(self.0, &Answer { progress: Some(step), ..Answer::default() });
    }
}

impl<W: Write> Progress for Reported<'_, W> {
    fn begin(&self, part: &str, steps: u64) {
        self.report(Step::Begin { part: part.to_owned(), steps });
    }

    fn step(&self) {
        self.report(Step::Done);
    }
}

fn write(to: &RefCell<impl Write>, answer: &Answer) -> io::Result<()> {
    let text = serde_json::to_string(answer)?;
    let mut to = to.borrow_mut();
    writeln!(to, "{text}")?;
    to.flush()
}

/// Runs an experiment; writes its progress and its record or error.
///
/// # Errors
/// When answers cannot be written.
pub fn perform(
    experiment: impl FnOnce(&dyn Progress) -> Result<Record>,
    answers: impl Write,
) -> Result<()> {
    let answers = RefCell::new(answers);
    let record = experiment(&Reported(&answers));
    let answer = record.map(|record| Answer { record: Some(record), ..Answer::default() });
    write(&answers, &answer.unwrap_or_else(|error| Answer::failed(&error))).context(CALLER)
}

const CALLER: &str = "cannot speak to the caller";

/// Serves requests until the end of input. A failed request is answered with its error.
///
/// # Errors
/// When requests cannot be read, or answers cannot be written.
pub fn serve(
    sections: &[Section],
    extent: Extent,
    orders: impl BufRead,
    answers: impl Write,
) -> Result<()> {
    let all = benchmarks(sections, extent, &Filter::default());
    let answers = RefCell::new(answers);
    let mut prepared: Vec<Alternative<'_>> = Vec::new();
    for line in orders.lines() {
        let line = line.context(CALLER)?;
        let answer = match &all {
            Err(error) => Answer::failed(error),
            Ok(all) => {
                let served = Served { sections, all, extent };
                let answer = served.obey(&line, &mut prepared, &Reported(&answers));
                answer.unwrap_or_else(|error| Answer::failed(&error))
            }
        };
        write(&answers, &answer).context(CALLER)?;
    }
    Ok(())
}

/// The benchmarks that requests name.
#[derive(Clone, Copy)]
struct Served<'s, 'a> {
    sections: &'s [Section],
    all: &'s [(&'static str, Benchmark<'a>)],
    extent: Extent,
}

impl<'a> Served<'_, 'a> {
    fn obey(
        self,
        order: &str,
        prepared: &mut Vec<Alternative<'a>>,
        progress: &dyn Progress,
    ) -> Result<Answer> {
        match serde_json::from_str(order)? {
            Order::List => {
                let benchmarks = self.all.iter().map(|(_, one)| serde_json::to_value(one));
                let benchmarks = benchmarks.collect::<Result<_, _>>()?;
                let published = self.sections.iter().flat_map(|one| one.suite.published());
                Ok(Answer { benchmarks, published: published.collect(), ..Answer::default() })
            }
            Order::Prepare { benchmark } => {
                prepared.clear();
                *prepared = self.prepare(&benchmark)?;
                let alternatives = prepared.iter().map(|one| one.name().to_owned()).collect();
                Ok(Answer { alternatives, ..Answer::default() })
            }
            Order::Epoch { alternative } => {
                let alternative =
                    prepared.get_mut(alternative).context("there is no such alternative")?;
                Ok(Answer { epoch: Some(alternative.epoch()?), ..Answer::default() })
            }
            Order::Studies { rows } => {
                Ok(Answer { studies: self.studies(&rows, progress)?, ..Answer::default() })
            }
        }
    }

    fn prepare(&self, name: &str) -> Result<Vec<Alternative<'a>>> {
        let found = self.all.iter().find(|(_, benchmark)| benchmark.name == name);
        let (_, benchmark) = found.with_context(|| format!("there is no benchmark {name}"))?;
        let mut prepared = (benchmark.make)()?;
        if self.extent == Extent::Smoke {
            prepared.iter_mut().for_each(Alternative::shorten);
        }
        Ok(prepared)
    }

    fn studies(&self, rows: &[Row], progress: &dyn Progress) -> Result<Vec<Study>> {
        let mut studies = Vec::new();
        for section in self.sections {
            let is_of_section = |row: &&Row| {
                self.all.iter().any(|(name, one)| *name == section.name && one.name == row.name)
            };
            let rows: Vec<Row> = rows.iter().filter(is_of_section).cloned().collect();
            studies.extend(section.suite.studies(self.extent, &rows, progress)?);
        }
        Ok(studies)
    }
}

#[cfg(test)]
mod tests {
    use anyhow::ensure;

    use super::*;
    use crate::suite::Suite;

    #[test]
    fn orders_are_obeyed_or_refused() {
        let orders = "{\"do\":\"epoch\",\"alternative\":0}\n{\"do\":\"prepare\",\"benchmark\":\"nothing\"}\n\
            {\"do\":\"prepare\",\"benchmark\":\"harness/same\"}\n{\"do\":\"epoch\",\"alternative\":1}\n\
            {\"do\":\"epoch\",\"alternative\":2}\nnonsense\n";
        let answers = answers_to(Section::harness(), Extent::Smoke, orders);
        let refused: Vec<bool> = answers.iter().map(|answer| answer.error.is_some()).collect();
        assert_eq!(refused, [true, true, false, false, true, true]);
        assert_eq!(answers[2].alternatives, ["first", "second"]);
        assert!(answers[3].epoch.is_some_and(|epoch| epoch.ops == 1 && epoch.wall_ns > 0));
    }

    /// A suite with one benchmark and one study, or with neither.
    struct Fake(bool);

    impl Suite for Fake {
        fn benchmarks(&self, _: Extent) -> Result<Vec<Benchmark<'_>>> {
            ensure!(self.0, "there is no setting");
            Ok(vec![Benchmark::of_size("fake", 8, "bytes", |_| Ok(Vec::new()))])
        }

        fn studies(&self, _: Extent, rows: &[Row], progress: &dyn Progress) -> Result<Vec<Study>> {
            progress.begin("part", 1);
            progress.step();
            let id = format!("{} rows", rows.len());
            Ok(vec![Study { id, ..Study::default() }])
        }
    }

    fn answers_to(section: Section, extent: Extent, orders: &str) -> Vec<Answer> {
        let mut answers = Vec::new();
        serve(&[section], extent, orders.as_bytes(), &mut answers).expect("a text");
        let answers = String::from_utf8(answers).expect("text");
        answers.lines().map(|line| serde_json::from_str(line).expect("an answer")).collect()
    }

    #[test]
    fn lists_and_studies_with_their_progress() {
        let orders = "{\"do\":\"list\"}\n{\"do\":\"studies\",\"rows\":[]}\n";
        let fake = |works| Section { name: "fake", suite: Box::new(Fake(works)) };
        let answers = answers_to(fake(true), Extent::Full, orders);
        let [list, begin, step, studies] = &answers[..] else { panic!("{answers:?}") };
        assert_eq!(list.benchmarks[0]["name"], "fake/8");
        assert!(matches!(&begin.progress, Some(Step::Begin { part, steps: 1 }) if part == "part"));
        assert!(matches!(step.progress, Some(Step::Done)));
        assert_eq!(studies.studies[0].id, "0 rows");
        let answers = answers_to(fake(false), Extent::Full, orders);
        assert_eq!(answers.len(), 2);
        for answer in answers {
            assert_eq!(answer.error.as_deref(), Some("there is no setting"));
        }
    }
}
