//! Studies of the measurements: subjects, a summary per curve, fastest libraries.

use assay_bench::harness::{Figures, Row, Sample};
use assay_bench::plan::PairingSettings;
use assay_bench::suite::{Published, Study, StudyTable};
use assay_report::number::{duration, three_digits};
use assay_report::stats::ratio::Ratio;

use super::load::{self, Load};
use super::pools;
use super::protocol::Description;
use super::published;
use super::ranking::{fastest, interval, table};
use super::subjects::{Subjects, TIMINGS, figures_of, timing_of};

pub(super) fn all(
    settings: &PairingSettings,
    subjects: &Subjects,
    rows: &[Row],
    loads: &[Load],
) -> Vec<Study> {
    let clock = clock(settings);
    let mut studies = vec![participants(subjects, &clock)];
    for curve in &settings.curves {
        let of_curve: Vec<&Row> =
            rows.iter().filter(|row| row.name.split('/').next() == Some(curve)).collect();
        if !of_curve.is_empty() {
            studies.push(summary(curve, subjects, &of_curve, &clock));
        }
    }
    let names: Vec<&str> = subjects.all.iter().map(|subject| subject.name.as_str()).collect();
    let of_pools: Vec<&Row> = rows.iter().filter(|row| row.name.starts_with("pool/")).collect();
    studies.extend(pools::losses(&names, &of_pools).map(|study| load::added(study, loads)));
    studies.extend(fastest(settings, rows));
    studies.extend(builds(subjects, rows));
    studies.push(how(settings, subjects, rows));
    studies
}

/// Clock frequency of the processor, and the source of the figure.
struct Clock {
    ghz: f64,
    source: &'static str,
}

/// Latency of a 64-bit multiplication on the processors of the last fifteen years.
const MULTIPLICATION_CYCLES: f64 = 3.0;

/// Length of the chain of multiplications that estimates the clock: some milliseconds.
const STEPS: u64 = 4_000_000;

fn clock(settings: &PairingSettings) -> Clock {
    if let Some(ghz) = settings.clock_ghz {
        return Clock { ghz, source: "as the plan says" };
    }
    let once = || {
        let mut x = std::hint::black_box(3u64);
        let sample = Sample::of(STEPS, || {
            for _ in 0..STEPS {
                x = x.wrapping_mul(std::hint::black_box(0x9e37_79b9_7f4a_7c15));
            }
            std::hint::black_box(x);
        });
        STEPS as f64 * MULTIPLICATION_CYCLES / sample.wall_ns.max(1) as f64
    };
    let ghz = (0..5).map(|_| once()).fold(0.0, f64::max);
    Clock { ghz, source: "estimated from a chain of multiplications of three cycles each" }
}

fn participants(subjects: &Subjects, clock: &Clock) -> Study {
    let mut rows: Vec<Vec<String>> = subjects
        .all
        .iter()
        .map(|subject| {
            let told = &subject.description;
            let [name, version, compiler] =
                [&told.name, &told.version, &told.compiler].map(Clone::clone);
            let operations = told.operations.len().to_string();
            vec![subject.name.clone(), name, version, compiler, operations]
        })
        .collect();
    for absent in &subjects.absent {
        let build = format!("absent; build it with `{}`", absent.build);
        let [names, none] = [absent.names.join(", "), String::new()];
        rows.push(vec![names, none.clone(), none.clone(), build, none]);
    }
    let head = ["subject", "library", "version", "compiled by", "operations"];
    Study {
        id: "pairing-subjects".to_owned(),
        title: "Who took part".to_owned(),
        prose: vec![
            "Each subject is a process of its own and times itself; they are interleaved. Before an operation is timed, all subjects \
             that have it computed it from the same inputs and gave the same answer."
                .to_owned(),
            "Operations on fields and additions of points are chains: each step works on the result of the one before, so the \
             time is the latency of one step. An inversion's step adds once too, so that the chain does not go back and forth."
                .to_owned(),
            format!("Cycles are times multiplied by {:.2} GHz, {}.", clock.ghz, clock.source),
            "`forte` is not among the thread pools: it needs Rust 1.96, and this repository is built with 1.95.".to_owned(),
        ],
        tables: vec![table("Subjects", &head, 4, rows)],
        ..Study::default()
    }
}

fn summary(curve: &str, subjects: &Subjects, rows: &[&Row], clock: &Clock) -> Study {
    let is_msm = |row: &&&Row| row.name.contains("-msm-");
    let (msm, others): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| is_msm(row));
    let mut tables = Vec::new();
    if !others.is_empty() {
        let cell = |ns: f64| format!("{} ({})", duration(ns), cycles(ns * clock.ghz));
        tables.push(times(
            &format!("{curve}: time of one operation (cycles)"),
            subjects,
            &others,
            cell,
        ));
    }
    for (suffix, caption) in [("-one-thread/", "one thread"), ("-all-threads/", "all threads")] {
        let rows: Vec<&Row> = msm.iter().copied().filter(|row| row.name.contains(suffix)).collect();
        if !rows.is_empty() {
            let caption = format!("{curve}: multi-scalar multiplication, {caption}");
            tables.push(times(&caption, subjects, &rows, duration));
        }
    }
    tables.extend(against_published(curve, rows));
    Study {
        id: format!("pairing-{curve}"),
        title: format!("Summary: {curve}"),
        prose: Vec::new(),
        tables,
        ..Study::default()
    }
}

fn times(
    caption: &str,
    subjects: &Subjects,
    rows: &[&Row],
    cell: impl Fn(f64) -> String,
) -> StudyTable {
    let takes_part = |name: &str| rows.iter().any(|row| figures_of(row, name).is_some());
    let names: Vec<&str> = subjects
        .all
        .iter()
        .map(|subject| subject.name.as_str())
        .filter(|name| takes_part(name))
        .collect();
    let head = [&["operation"][..], &names].concat();
    let line = |row: &&Row| {
        let mut cells = vec![operation(row).to_owned()];
        cells.extend(names.iter().map(|name| {
            let Some(figures) = figures_of(row, name) else { return "-".to_owned() };
            match timing_of(&figures.name) {
                Some(timing) => format!("{}, {timing}", cell(figures.ns_per_op)),
                None => cell(figures.ns_per_op),
            }
        }));
        cells
    };
    table(caption, &head, 1, rows.iter().map(line).collect())
}

/// Published times against the fastest library measured here, by name: only `assay` is ours.
fn against_published(curve: &str, rows: &[&Row]) -> Option<StudyTable> {
    let line = |published: &Published| -> Option<Vec<String>> {
        let row = rows.iter().find(|row| row.name == published.benchmark)?;
        let published_ns = published.ns_per_op?;
        let by_time = |a: &&Figures, b: &&Figures| a.ns_per_op.total_cmp(&b.ns_per_op);
        // A published time with a kind of timing is compared within that kind.
        let kind = TIMINGS.into_iter().find(|timing| published.note.contains(timing));
        let is_of_kind = |figures: &&Figures| kind.is_none() || timing_of(&figures.name) == kind;
        let fastest = row.figures.iter().filter(is_of_kind).min_by(by_time)?;
        Some(vec![
            operation(row).to_owned(),
            published.subject.clone(),
            published.machine.clone(),
            fastest.name.clone(),
            duration(published_ns),
            duration(fastest.ns_per_op),
            format!("{:.2}", published_ns / fastest.ns_per_op.max(f64::MIN_POSITIVE)),
        ])
    };
    let lines: Vec<Vec<String>> = published().iter().filter_map(line).collect();
    let head = [
        "operation",
        "published for",
        "on",
        "fastest library here",
        "published",
        "here",
        "published / here",
    ];
    let caption = format!(
        "{curve}: published times against the fastest library measured here; the machines differ"
    );
    (!lines.is_empty()).then(|| table(caption, &head, 4, lines))
}

/// Name of the benchmark without its curve.
fn operation(row: &Row) -> &str {
    row.name.split_once('/').map_or(row.name.as_str(), |(_, operation)| operation)
}

/// Other builds of the same library against the first.
fn builds(subjects: &Subjects, rows: &[Row]) -> Option<Study> {
    let mut tables = Vec::new();
    let mut prose = Vec::new();
    for (index, first) in subjects.all.iter().enumerate() {
        let is_same = |name: &str| name == first.description.name;
        if subjects.all[..index].iter().any(|other| is_same(&other.description.name)) {
            continue;
        }
        for other in &subjects.all[index + 1..] {
            if !is_same(&other.description.name) {
                continue;
            }
            let ratios: Vec<(&str, Ratio)> = rows
                .iter()
                .filter_map(|row| {
                    let [above, below] =
                        [&other.name, &first.name].map(|name| figures_of(row, name));
                    Some((row.name.as_str(), row.ratio(&above?.name, &below?.name)?))
                })
                .collect();
            let mut medians: Vec<f64> = ratios.iter().map(|(_, ratio)| ratio.median).collect();
            medians.sort_by(f64::total_cmp);
            let Some(middle) = medians.get(medians.len() / 2) else { continue };
            prose.push(format!(
                "- `{}` ({}) against `{}` ({}): the median over {} operations is {middle:.2}; above 1 the second is faster.",
                other.name,
                other.description.compiler,
                first.name,
                first.description.compiler,
                medians.len(),
            ));
            let line = |(name, ratio): &(&str, Ratio)| vec![(*name).to_owned(), interval(ratio)];
            let caption = format!("Time of {} over time of {}", other.name, first.name);
            let lines = ratios.iter().map(line).collect();
            tables.push(table(caption, &["operation", "ratio"], 1, lines));
        }
    }
    (!tables.is_empty()).then(|| Study {
        id: "pairing-builds".to_owned(),
        title: "The same code, compiled otherwise".to_owned(),
        prose,
        tables,
        ..Study::default()
    })
}

/// Called functions of each library, and results without a second implementation to compare with.
fn how(settings: &PairingSettings, subjects: &Subjects, rows: &[Row]) -> Study {
    let alone: Vec<String> = rows
        .iter()
        .filter(|row| row.figures.len() == 1)
        .map(|row| format!("`{}` ({})", row.name, row.figures[0].name))
        .collect();
    let mut prose = Vec::new();
    if !alone.is_empty() {
        prose.push(format!(
            "One subject alone has these, so its answers were compared with nobody's: {}.",
            alone.join(", ")
        ));
    }
    let mut lines: Vec<Vec<String>> = Vec::new();
    for curve in &settings.curves {
        for subject in &subjects.all {
            let Description { operations, traces, .. } = &subject.description;
            for offer in operations.iter().chain(traces).filter(|offer| offer.curve == *curve) {
                lines.push(vec![
                    format!("{curve}/{}", offer.operation),
                    subject.name.clone(),
                    offer.how.clone(),
                ]);
            }
        }
    }
    lines.sort();
    let head = ["operation", "subject", "what it calls"];
    Study {
        id: "pairing-how".to_owned(),
        title: "How each operation is done".to_owned(),
        prose,
        tables: vec![table("What each subject calls", &head, 3, lines)],
        ..Study::default()
    }
}

fn cycles(value: f64) -> String {
    match value {
        value if value >= 1e9 => format!("{} G", three_digits(value / 1e9)),
        value if value >= 1e6 => format!("{} M", three_digits(value / 1e6)),
        value if value >= 1e4 => format!("{} k", three_digits(value / 1e3)),
        value => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::ranking::tests::row;
    use super::*;

    #[test]
    fn units_of_cycles() {
        assert_eq!(cycles(5e4), "50.0 k");
        assert_eq!(cycles(77.0), "77");
    }

    /// Only one library of this report is ours, so the column of the fastest is not called "ours".
    #[test]
    fn the_fastest_library_is_named_and_not_called_ours() {
        let pairing = row("bls12-381/pairing", &[("arkworks", 500_000), ("blst", 400_000)]);
        let table = against_published("bls12-381", &[&pairing]).expect("Constantine published it");
        assert!(!table.head.iter().any(|cell| cell.contains("ours")), "{:?}", table.head);
        let products = row(
            "bls12-381/g1-mul",
            &[("blst (constant time)", 30_000), ("gnark-crypto (variable time)", 40_000)],
        );
        let mixed = against_published("bls12-381", &[&products]).expect("Constantine's");
        assert_eq!(mixed.rows[0][3], "gnark-crypto (variable time)");
        let line = &table.rows[0];
        assert_eq!(line[1..4], ["Constantine, clang", line[2].as_str(), "blst"]);
        assert_eq!(line[4..], ["384 µs", "400 µs", "0.96"]);
    }

    #[test]
    fn a_clock_is_within_reason() {
        let clock = clock(&PairingSettings::default());
        // A debug build or a busy machine lowers the estimate, nothing raises it.
        assert!(clock.ghz > 0.0 && clock.ghz < 10.0, "{}", clock.ghz);
        let told = PairingSettings { clock_ghz: Some(3.5), ..PairingSettings::default() };
        assert!((super::clock(&told).ghz - 3.5).abs() < 1e-9);
    }
}
