//! The report's findings, evaluated on our measurements.

use assay_bench::harness::Row;
use assay_bench::suite::{Study, StudyTable};
use assay_report::stats::ratio::Ratio;

use super::ASSAY;
use super::published;
use crate::interval;
use crate::kernels::{KERNEL, KERNEL_8000};

struct Series<'r> {
    rows: &'r [Row],
    name: &'static str,
}

impl Series<'_> {
    fn row(&self, size: usize) -> Option<&Row> {
        let name = format!("{}/{size}", self.name);
        self.rows.iter().find(|row| row.name == name)
    }

    fn ns(&self, size: usize, by: &str) -> Option<f64> {
        Some(self.row(size)?.of(by)?.ns_per_op)
    }

    /// The kernel's time over ours; the kernel is unmodified Bitcoin Core if the script passes there, else with the report's limit.
    fn ratio(&self, size: usize) -> Option<Ratio> {
        let row = self.row(size)?;
        row.ratio(KERNEL, ASSAY).or_else(|| row.ratio(KERNEL_8000, ASSAY))
    }
}

/// The report's observations, computed from the measured rows.
pub(super) fn study(rows: &[Row]) -> Study {
    let plain = Series { rows, name: published::PLAIN };
    let dup = Series { rows, name: published::DUP };
    let mut prose = Vec::new();
    prose.extend(scaling(&plain));
    prose.push(
        "- What the report puts down to data movement between 1 and 64 bytes (8,736 to 11,107 instructions) is a block of SHA-256: 9 bytes of \
         padding do not fit behind 64 bytes of data, so that 1 byte takes one block of 64 bytes and 64, 65 and 100 bytes take two."
            .to_owned(),
    );
    prose.extend(dup_cost(&plain, &dup));
    prose.extend(libraries(rows));
    Study {
        id: "element-size".to_owned(),
        title: "How time grows with the element".to_owned(),
        prose,
        tables: vec![table(&plain, &dup)],
        ..Study::default()
    }
}

/// Time of 8,000 bytes against that of 520.
fn scaling(plain: &Series<'_>) -> Vec<String> {
    let grows = |short: f64, long: f64| {
        let (size, time) = (8000.0 / 520.0, long / short);
        let per_byte = (long - short) / (8000.0 - 520.0);
        (time, time.ln() / f64::ln(size), per_byte, short - 520.0 * per_byte)
    };
    let times = published::times();
    let published_ns = |wanted| times.iter().find(|(size, ..)| *size == wanted).map(|one| one.1);
    let published =
        published_ns(520).zip(published_ns(8000)).map(|(short, long)| grows(short, long));
    let mut prose = Vec::new();
    if let (Some(short), Some(long)) = (plain.ns(520, ASSAY), plain.ns(8000, ASSAY))
        && let Some(published) = published
    {
        let (time, exponent, per_byte, fixed) = grows(short, long);
        prose.push(format!(
            "- From 520 to 8,000 bytes, 15.4 times as many, the time of an input grows {time:.1} times here (exponent {exponent:.2}), published \
             {:.1} times (exponent {:.2}); the text of the report says 9.8, which is not the quotient of its table. It is less than linear only \
             because {fixed:.0} ns of every input do not depend on the data (published: {:.0} ns). What comes on top is linear: {per_byte:.3} ns \
             for each byte, {:.2} GB/s (published: {:.3} ns, {:.2} GB/s).",
            published.0,
            published.1,
            published.3,
            1.0 / per_byte,
            published.2,
            1.0 / published.2,
        ));
    }
    let ratios = |by: &str| -> Vec<String> {
        let ratio = |size| Some(plain.row(size)?.ratio(by, ASSAY)?.median);
        let sizes = times.iter().map(|&(size, ..)| size);
        sizes.filter_map(|size| Some(format!("{:.2} at {size}", ratio(size)?))).collect()
    };
    let (ordinary, raised) = (ratios(KERNEL), ratios(KERNEL_8000));
    if ordinary.is_empty() {
        prose.push(
            "- Bitcoin Core's kernel was not measured against our engine: its program was not found. `cd peers/kernel && cargo build --release` builds it."
                .to_owned(),
        );
    } else {
        prose.push(format!(
            "- Bitcoin Core's kernel takes longer than our engine by these factors, interleaved on this machine: {}.",
            ordinary.join(", ")
        ));
    }
    prose.push(if raised.is_empty() {
        "- Bitcoin Core's kernel with a limit of 8,000 bytes was not measured: its program was not found. peers/kernel/README.md has the command that \
         builds it."
            .to_owned()
    } else {
        format!(
            "- Built with the report's limit of 8,000 bytes (`{KERNEL_8000}`), it takes longer by: {}.",
            raised.join(", ")
        )
    });
    prose
}

fn dup_cost(plain: &Series<'_>, dup: &Series<'_>) -> Vec<String> {
    let costs: Vec<String> = published::times()
        .into_iter()
        .filter_map(|(size, published, published_dup)| {
            let (without, with) = (plain.ns(size, ASSAY)?, dup.ns(size, ASSAY)?);
            let percent = |with: f64, without: f64| 100.0 * (with / without - 1.0);
            Some(format!(
                "{size}: {:+.1} % (published {:+.1} %)",
                percent(with, without),
                percent(published_dup, published)
            ))
        })
        .collect();
    if costs.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "- `OP_DUP` adds, by bytes: {}. Here it copies no data, at any size; the `OP_NIP` that makes the script valid is in these figures. The \
         published differences at 1 to 100 bytes are one more vector on the stack, and at 8,000 bytes they are below the error.",
        costs.join("; ")
    )]
}

fn libraries(rows: &[Row]) -> Option<String> {
    let row = rows.iter().find(|row| row.name == "hash/sha256/8000")?;
    let ours = row.of(ASSAY)?;
    let mut others: Vec<_> = row.figures.iter().filter(|figures| figures.name != ASSAY).collect();
    let compared: Vec<&str> = others.iter().map(|figures| figures.name.as_str()).collect();
    others.sort_by(|left, right| left.ns_per_op.total_cmp(&right.ns_per_op));
    let fastest = *others.first()?;
    let ratio = row.ratio(ASSAY, &fastest.name)?;
    Some(format!(
        "- SHA-256 of 8,000 bytes alone takes {:.0} ns, and {:.0} ns in the faster of {} ({}): ratio {:.3}, between {:.3} and {:.3}.",
        ours.ns_per_op,
        fastest.ns_per_op,
        compared.join(" and "),
        fastest.name,
        ratio.median,
        ratio.low,
        ratio.high
    ))
}

fn table(plain: &Series<'_>, dup: &Series<'_>) -> StudyTable {
    let number = |value: Option<f64>| value.map_or_else(none, |value| format!("{value:.1}"));
    crate::table(
        "Inputs of P2WSH; published: Intel Core i7-8665U, branch p2qrh of Bitcoin Core",
        0,
        published::times(),
        &[
            ("bytes", &|(size, ..)| size.to_string()),
            ("blocks of SHA-256", &|(size, ..)| (size + 9).div_ceil(64).to_string()),
            ("ours, ns", &|(size, ..)| number(plain.ns(*size, ASSAY))),
            ("kernel, ns", &|(size, ..)| number(plain.ns(*size, KERNEL))),
            ("kernel-8000, ns", &|(size, ..)| number(plain.ns(*size, KERNEL_8000))),
            ("kernel / ours", &|(size, ..)| {
                plain.ratio(*size).map_or_else(none, |ratio| format!("{:.2}", ratio.median))
            }),
            ("interval", &|(size, ..)| plain.ratio(*size).as_ref().map_or_else(none, interval)),
            ("published, ns", &|(_, published, _)| number(Some(*published))),
            ("with OP_DUP: ours, ns", &|(size, ..)| number(dup.ns(*size, ASSAY))),
            ("published, ns", &|(_, _, with_dup)| number(Some(*with_dup))),
        ],
    )
}

fn none() -> String {
    "-".to_owned()
}
