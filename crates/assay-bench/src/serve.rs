//! Benchmarks on order, for another process of this program that compares builds: a line of JSON for each order and answer.

#[cfg(test)]
use std::io;
use std::io::{BufRead, Write};

use serde::{Deserialize, Serialize};

use crate::BenchError;
use crate::counters::Counts;
use crate::harness::{Alternative, Sample};
use crate::registry::{Filter, Section, benchmarks};
use crate::suite::{Benchmark, Extent};

/// What is to be done.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub(crate) enum Order {
    /// Prepare a benchmark; the one before is dropped.
    Prepare {
        /// Its whole name.
        benchmark: String,
    },
    /// Time one epoch of the alternative with this number.
    Epoch {
        /// From 0, in the order of the answer to the preparation.
        alternative: usize,
    },
}

/// What came of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// Why nothing came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// The alternatives that were prepared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) alternatives: Vec<String>,
    /// What was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) epoch: Option<Epoch>,
}

/// A [`Sample`] on its way.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Epoch {
    ops: u64,
    wall_ns: u64,
    cpu_ns: u64,
    counts: Counts,
}

impl From<Sample> for Epoch {
    fn from(Sample { ops, wall_ns, cpu_ns, counts }: Sample) -> Self {
        Self { ops, wall_ns, cpu_ns, counts }
    }
}

impl From<Epoch> for Sample {
    fn from(Epoch { ops, wall_ns, cpu_ns, counts }: Epoch) -> Self {
        Self { ops, wall_ns, cpu_ns, counts }
    }
}

/// Obeys until there are no more orders. An order that fails is answered with why.
///
/// # Errors
/// When the settings of a suite make no sense, or the one who orders cannot be heard or spoken to.
pub fn serve(
    sections: &[Section],
    extent: Extent,
    orders: impl BufRead,
    mut answers: impl Write,
) -> Result<(), BenchError> {
    let all = benchmarks(sections, extent, &Filter::default())?;
    let fail = |source| BenchError::Peer { program: "the one who orders".into(), source };
    let mut prepared: Vec<Alternative<'_>> = Vec::new();
    for line in orders.lines() {
        let line = line.map_err(fail)?;
        let answer = obey(&line, &all, extent, &mut prepared)
            .unwrap_or_else(|error| Answer { error: Some(error), ..Answer::default() });
        let text = serde_json::to_string(&answer).map_err(|error| fail(error.into()))?;
        writeln!(answers, "{text}").and_then(|()| answers.flush()).map_err(fail)?;
    }
    Ok(())
}

fn obey<'a>(
    line: &str,
    all: &[(&'static str, Benchmark<'a>)],
    extent: Extent,
    prepared: &mut Vec<Alternative<'a>>,
) -> Result<Answer, String> {
    let order: Order = serde_json::from_str(line).map_err(|error| error.to_string())?;
    match order {
        Order::Prepare { benchmark: name } => {
            prepared.clear();
            let found = all.iter().find(|(_, benchmark)| benchmark.name == name);
            let (_, benchmark) = found.ok_or_else(|| format!("there is no benchmark {name}"))?;
            *prepared = (benchmark.make)().map_err(|error| error.to_string())?;
            if extent == Extent::Smoke {
                for alternative in prepared.iter_mut() {
                    alternative.shorten();
                }
            }
            let alternatives = prepared.iter().map(|one| one.name().to_owned()).collect();
            Ok(Answer { alternatives, ..Answer::default() })
        }
        Order::Epoch { alternative } => {
            let alternative =
                prepared.get_mut(alternative).ok_or("there is no such alternative")?;
            let sample = alternative.epoch().map_err(|error| error.to_string())?;
            Ok(Answer { epoch: Some(sample.into()), ..Answer::default() })
        }
    }
}

/// A text that is read as lines, for tests of who orders and who obeys.
#[cfg(test)]
fn lines(text: &str) -> io::Cursor<Vec<u8>> {
    io::Cursor::new(text.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_obeyed_or_refused() {
        let orders = "{\"do\":\"epoch\",\"alternative\":0}\n{\"do\":\"prepare\",\"benchmark\":\"nothing\"}\n\
            {\"do\":\"prepare\",\"benchmark\":\"harness/same\"}\n{\"do\":\"epoch\",\"alternative\":1}\n\
            {\"do\":\"epoch\",\"alternative\":2}\nnonsense\n";
        let mut answers = Vec::new();
        serve(&[Section::harness()], Extent::Smoke, lines(orders), &mut answers).expect("a text");
        let answers: Vec<Answer> = String::from_utf8(answers)
            .expect("text")
            .lines()
            .map(|line| serde_json::from_str(line).expect("an answer"))
            .collect();
        let refused: Vec<bool> = answers.iter().map(|answer| answer.error.is_some()).collect();
        assert_eq!(refused, [true, true, false, false, true, true]);
        assert_eq!(answers[2].alternatives, ["first", "second"]);
        assert!(answers[3].epoch.is_some_and(|epoch| epoch.ops == 1 && epoch.wall_ns > 0));
    }
}
