//! Counts and latencies of a run in progress.

use std::collections::BTreeMap;

use assay_report::record::{Figure, Record, Unit, bytes, count};
use assay_report::stats::rate;
use hdrhistogram::Histogram;

/// Maximum of the histograms; longer latencies are clamped.
const LATENCY_NS_MAX: u64 = 600_000_000_000;
const DIGITS: u8 = 3;
/// Distinct errors kept; bounds memory if a server puts a hash into each.
const ERRORS_MAX: usize = 64;

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
    pub(crate) const ALL: [Self; 3] = [Self::Start, Self::Idle, Self::Blocks];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Idle => "idle",
            Self::Blocks => "blocks",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) target: &'a str,
    /// `quiet` or `hostile`; empty for a single pass.
    pub(crate) pass: &'a str,
    /// Number of the pair.
    pub(crate) round: Option<u32>,
}

impl Place<'_> {
    fn case(&self, parts: &[&str]) -> String {
        let parts = [&[self.pass][..], parts].concat();
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }

    pub(super) fn add(&self, record: &mut Record, case: &[&str], figures: &[Figure<'_>]) {
        record.add((self.target, &self.case(case), self.round), figures);
    }

    pub(super) fn add_series<'f, R: AsRef<[Figure<'f>]>>(
        &self,
        record: &mut Record,
        case: &[&str],
        rows: &[R],
    ) {
        record.add_series((self.target, &self.case(case), self.round), rows);
    }
}

#[derive(Debug)]
pub(crate) struct Recorder {
    phases: [PhaseRecord; Phase::ALL.len()],
    /// From a block's submission to each client's header notification.
    pub(crate) header_notifications: Histogram<u64>,
    /// From a block's submission to each script notification.
    pub(crate) script_notifications: Histogram<u64>,
    /// Delay of sending behind schedule: the generator's own delay.
    pub(crate) lag: Histogram<u64>,
}

#[derive(Debug)]
struct PhaseRecord {
    /// By method: latencies of the responses, and the number of errors among them.
    methods: BTreeMap<&'static str, (Histogram<u64>, u64)>,
    /// Unanswered requests count with the time waited.
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

pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1_000, LATENCY_NS_MAX, DIGITS)
        .expect("the bounds are a decade apart and the digits are few")
}

/// Figures of a histogram of nanoseconds; without values if it is empty.
pub(crate) fn latency(histogram: &Histogram<u64>) -> [Figure<'static>; 8] {
    let is_used = !histogram.is_empty();
    let time = |name, ns: f64| (name, Unit::Seconds, is_used.then_some(ns / 1e9));
    let at = |name, quantile| time(name, histogram.value_at_quantile(quantile) as f64);
    [
        at("p50", 0.5),
        at("p95", 0.95),
        at("p99", 0.99),
        time("max", histogram.max() as f64),
        ("number", Unit::Count, is_used.then_some(histogram.len() as f64)),
        time("mean", histogram.mean()),
        at("p90", 0.9),
        at("p99.9", 0.999),
    ]
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
            phases: Default::default(),
            header_notifications: histogram(),
            script_notifications: histogram(),
            lag: histogram(),
        }
    }

    /// Records a response with its latency from the due time and from sending; errors count as responses.
    pub(crate) fn answer(
        &mut self,
        phase: Phase,
        method: &'static str,
        since_due_ns: u64,
        since_sent_ns: u64,
        is_error: bool,
    ) {
        let record = &mut self.phases[phase as usize];
        let (latency, errors) = record.methods.entry(method).or_insert_with(|| (histogram(), 0));
        *errors += u64::from(is_error);
        latency.saturating_record(since_due_ns);
        record.all.saturating_record(since_due_ns);
        record.since_sent.saturating_record(since_sent_ns);
    }

    /// Records an unanswered request with the time waited.
    pub(crate) fn unanswered(&mut self, phase: Phase, waited_ns: u64) {
        let record = &mut self.phases[phase as usize];
        record.unanswered += 1;
        record.all.saturating_record(waited_ns);
    }

    pub(crate) fn error(&mut self, phase: Phase, kind: String) {
        let errors = &mut self.phases[phase as usize].errors;
        let is_full = errors.len() >= ERRORS_MAX && !errors.contains_key(&kind);
        *errors.entry(if is_full { "other errors".to_owned() } else { kind }).or_default() += 1;
    }

    pub(crate) fn errors(&self, phase: Phase) -> &BTreeMap<String, u64> {
        &self.phases[phase as usize].errors
    }

    pub(crate) fn bytes(&mut self, phase: Phase, bytes_in: u64, bytes_out: u64) {
        let record = &mut self.phases[phase as usize];
        record.bytes_in += bytes_in;
        record.bytes_out += bytes_out;
    }

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

    /// Adds the latencies of a phase, in total and by method. While clients connect, those by method are series of one row, which
    /// the text omits.
    pub(super) fn add_latencies(&self, record: &mut Record, place: &Place<'_>, phase: Phase) {
        let figures = &self.phases[phase as usize];
        let per_s = |count: u64| Some(rate(count as f64, figures.seconds));
        let all = [("per second", Unit::PerSecond, per_s(figures.since_sent.len()))];
        place.add(record, &[phase.name(), "all"], &all);
        place.add(record, &[phase.name(), "all"], &latency(&figures.all));
        place.add(record, &[phase.name(), "from sending"], &latency(&figures.since_sent));
        for (method, (histogram, errors)) in &figures.methods {
            let case = [phase.name(), method.trim_start_matches("blockchain.")];
            let rate = ("per second", Unit::PerSecond, per_s(histogram.len()));
            let counts = [rate, count("errors", *errors)];
            let figures: Vec<_> = counts.into_iter().chain(latency(histogram)).collect();
            if phase == Phase::Start {
                place.add_series(record, &case, &[figures]);
            } else {
                place.add(record, &case, &figures);
            }
        }
    }

    pub(super) fn add_sums(&self, record: &mut Record, place: &Place<'_>, phase: Phase) {
        let figures = &self.phases[phase as usize];
        let responses = figures.since_sent.len();
        let each = figures.server_cpu_s.map(|cpu_s| cpu_s / responses.max(1) as f64);
        let sums = [
            ("duration", Unit::Seconds, Some(figures.seconds)),
            count("responses", responses),
            count("unanswered", figures.unanswered),
            bytes("received", figures.bytes_in),
            bytes("sent", figures.bytes_out),
            ("server CPU time", Unit::Seconds, figures.server_cpu_s),
            ("server CPU time per response", Unit::Seconds, each),
            ("generator CPU time", Unit::Seconds, figures.generator_cpu_s),
        ];
        place.add(record, &[phase.name()], &sums);
        for (kind, number) in &figures.errors {
            place.add(record, &[phase.name()], &[count(&format!("error: {kind}"), *number)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(record: &Record, case: &str, metric: &str) -> f64 {
        let values = record.values(case, metric);
        *values.first().unwrap_or_else(|| panic!("{metric} of {case}: {}", record.text()))
    }

    #[test]
    fn percentiles() {
        let mut recorder = Recorder::new();
        for milliseconds in 1..=1000 {
            let due_ns = milliseconds * 1_000_000;
            recorder.answer(Phase::Idle, "server.ping", due_ns, 1_000_000, false);
        }
        recorder.answer(Phase::Idle, "x.get_history", u64::MAX, 1_000_000, true);
        recorder.end(Phase::Idle, 10.0, None, None);
        let mut record = Record::default();
        let place = Place { target: "server", pass: "quiet", round: None };
        for phase in [Phase::Idle, Phase::Blocks] {
            recorder.add_latencies(&mut record, &place, phase);
            recorder.add_sums(&mut record, &place, phase);
        }
        let of = |case: &str, metric: &str| value(&record, case, metric);
        assert!((of("quiet, idle", "responses") - 1001.0).abs() < 1e-9);
        let ping = "quiet, idle, server.ping";
        assert!((of(ping, "p50") - 0.5).abs() < 1e-3 && (of(ping, "p99") - 0.99).abs() < 1e-3);
        assert!((of(ping, "per second") - 100.0).abs() < 1e-9);
        assert!(of("quiet, idle, x.get_history", "max") >= 600.0, "the longest time");
        assert!(of("quiet, idle, from sending", "max") < 0.00101);
        assert!(record.values("quiet, blocks, all", "p50").is_empty());
    }

    #[test]
    fn distinct_errors_are_bounded() {
        let mut recorder = Recorder::new();
        for number in 0..1000 {
            recorder.error(Phase::Idle, format!("error {number}"));
        }
        let errors = recorder.errors(Phase::Idle);
        assert_eq!(errors.len(), ERRORS_MAX + 1);
        assert_eq!(errors.values().sum::<u64>(), 1000);
    }
}
