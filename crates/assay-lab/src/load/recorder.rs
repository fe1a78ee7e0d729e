//! Counts and latencies of a run in progress.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;

use super::protocol::Method;
use super::results::{Latency, MethodFigures, PhaseFigures};

/// Maximum of the histograms; longer latencies are clamped.
const LATENCY_NS_MAX: u64 = 600_000_000_000;
/// Significant digits of the histograms.
const DIGITS: u8 = 3;
/// Distinct errors kept; bounds memory if a server puts a hash into each.
const ERRORS_MAX: usize = 64;

/// Phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Clients connect and subscribe.
    Start,
    /// No block is submitted.
    Idle,
    /// Blocks are submitted.
    Blocks,
}

impl Phase {
    const COUNT: usize = 3;
}

/// All counts by phase.
#[derive(Debug)]
pub(crate) struct Recorder {
    phases: [PhaseRecord; Phase::COUNT],
    /// From a block's submission to each client's header notification.
    pub(crate) header_notifications: Histogram<u64>,
    /// From a block's submission to each script notification.
    pub(crate) script_notifications: Histogram<u64>,
    /// Delay of sending behind schedule: the generator's own delay.
    pub(crate) lag: Histogram<u64>,
}

#[derive(Debug)]
struct PhaseRecord {
    methods: BTreeMap<Method, MethodRecord>,
    all: Histogram<u64>,
    since_sent: Histogram<u64>,
    errors: BTreeMap<String, u64>,
    unanswered: u64,
    bytes_in: u64,
    bytes_out: u64,
    seconds: f64,
    server_cpu_s: Option<f64>,
    generator_cpu_s: Option<f64>,
}

#[derive(Debug)]
struct MethodRecord {
    latency: Histogram<u64>,
    answers: u64,
    errors: u64,
}

/// An empty histogram of nanoseconds.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1_000, LATENCY_NS_MAX, DIGITS)
        .expect("the bounds are a decade apart and the digits are few")
}

/// Records a duration.
pub(crate) fn enter(histogram: &mut Histogram<u64>, nanoseconds: u64) {
    histogram.saturating_record(nanoseconds);
}

impl Default for PhaseRecord {
    fn default() -> Self {
        Self {
            methods: BTreeMap::new(),
            all: histogram(),
            since_sent: histogram(),
            errors: BTreeMap::new(),
            unanswered: 0,
            bytes_in: 0,
            bytes_out: 0,
            seconds: 0.0,
            server_cpu_s: None,
            generator_cpu_s: None,
        }
    }
}

impl Recorder {
    pub(crate) fn new() -> Self {
        Self {
            phases: std::array::from_fn(|_| PhaseRecord::default()),
            header_notifications: histogram(),
            script_notifications: histogram(),
            lag: histogram(),
        }
    }

    /// Records a response with its latency from the due time and from sending; errors count as responses.
    pub(crate) fn answer(
        &mut self,
        phase: Phase,
        method: Method,
        since_due_ns: u64,
        since_sent_ns: u64,
        is_error: bool,
    ) {
        let record = &mut self.phases[phase as usize];
        let entry = record.methods.entry(method).or_insert_with(|| MethodRecord {
            latency: histogram(),
            answers: 0,
            errors: 0,
        });
        entry.answers += 1;
        entry.errors += u64::from(is_error);
        enter(&mut entry.latency, since_due_ns);
        enter(&mut record.all, since_due_ns);
        enter(&mut record.since_sent, since_sent_ns);
    }

    /// Records an unanswered request with the time waited.
    pub(crate) fn unanswered(&mut self, phase: Phase, waited_ns: u64) {
        let record = &mut self.phases[phase as usize];
        record.unanswered += 1;
        enter(&mut record.all, waited_ns);
    }

    pub(crate) fn error(&mut self, phase: Phase, kind: String) {
        let errors = &mut self.phases[phase as usize].errors;
        let is_full = errors.len() >= ERRORS_MAX && !errors.contains_key(&kind);
        *errors.entry(if is_full { "other errors".to_owned() } else { kind }).or_default() += 1;
    }

    pub(crate) fn bytes(&mut self, phase: Phase, bytes_in: u64, bytes_out: u64) {
        let record = &mut self.phases[phase as usize];
        record.bytes_in += bytes_in;
        record.bytes_out += bytes_out;
    }

    /// Ends a phase.
    pub(crate) fn end(
        &mut self,
        phase: Phase,
        seconds: f64,
        server_cpu_s: Option<f64>,
        generator_cpu_s: Option<f64>,
    ) {
        let record = &mut self.phases[phase as usize];
        (record.seconds, record.server_cpu_s) = (seconds, server_cpu_s);
        record.generator_cpu_s = generator_cpu_s;
    }

    pub(crate) fn figures(&self, phase: Phase) -> PhaseFigures {
        let record = &self.phases[phase as usize];
        let per_s = |count: u64| assay_report::stats::rate(count as f64, record.seconds);
        let method = |(method, record): (&Method, &MethodRecord)| MethodFigures {
            method: method.name().to_owned(),
            answers: record.answers,
            errors: record.errors,
            per_s: per_s(record.answers),
            latency: latency(&record.latency),
        };
        let answers: u64 = record.methods.values().map(|method| method.answers).sum();
        PhaseFigures {
            seconds: record.seconds,
            answers,
            per_s: per_s(answers),
            errors: record.errors.clone(),
            unanswered: record.unanswered,
            bytes_in: record.bytes_in,
            bytes_out: record.bytes_out,
            server_cpu_s: record.server_cpu_s,
            generator_cpu_s: record.generator_cpu_s,
            latency: latency(&record.all),
            since_sent: latency(&record.since_sent),
            methods: record.methods.iter().map(method).collect(),
        }
    }
}

/// Percentiles of a histogram of nanoseconds, in milliseconds; `None` if empty.
pub(crate) fn latency(histogram: &Histogram<u64>) -> Option<Latency> {
    let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e6;
    (!histogram.is_empty()).then(|| Latency {
        count: histogram.len(),
        mean_ms: histogram.mean() / 1e6,
        p50_ms: at(0.5),
        p90_ms: at(0.9),
        p95_ms: at(0.95),
        p99_ms: at(0.99),
        p999_ms: at(0.999),
        max_ms: histogram.max() as f64 / 1e6,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles() {
        let mut recorder = Recorder::new();
        for milliseconds in 1..=1000 {
            recorder.answer(Phase::Idle, Method::Ping, milliseconds * 1_000_000, 1_000_000, false);
        }
        recorder.answer(Phase::Idle, Method::History, u64::MAX, 1_000_000, true);
        recorder.end(Phase::Idle, 10.0, None, None);
        let figures = recorder.figures(Phase::Idle);
        assert_eq!((figures.answers, figures.methods.len()), (1001, 2));
        let ping = &figures.methods[0];
        let latency = ping.latency.as_ref().expect("a thousand answers");
        assert!((latency.p50_ms - 500.0).abs() < 1.0 && (latency.p99_ms - 990.0).abs() < 1.0);
        assert!((ping.per_s - 100.0).abs() < 1e-9);
        let history = figures.methods[1].latency.as_ref().expect("one answer");
        assert!(history.max_ms >= 600_000.0, "as long as can be told");
        assert!(figures.since_sent.is_some_and(|latency| latency.max_ms < 1.01));
        assert!(recorder.figures(Phase::Blocks).latency.is_none());
    }

    #[test]
    fn distinct_errors_are_bounded() {
        let mut recorder = Recorder::new();
        for number in 0..1000 {
            recorder.error(Phase::Idle, format!("error {number}"));
        }
        let figures = recorder.figures(Phase::Idle);
        assert_eq!(figures.errors.len(), ERRORS_MAX + 1);
        assert_eq!(figures.errors.values().sum::<u64>(), 1000);
    }
}
