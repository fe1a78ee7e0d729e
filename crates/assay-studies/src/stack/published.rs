//! Figures of the report.

use assay_bench::published::PublishedFile;
use assay_bench::suite::Published;

const FIGURES: &str = include_str!("../../../../plans/published/stack-element-size.toml");

pub(super) fn rows() -> Vec<Published> {
    PublishedFile::built_in(FIGURES).figures()
}

/// Bytes, then nanoseconds per operation without and with `OP_DUP`.
pub(super) fn times() -> Vec<(usize, f64, f64)> {
    let rows = rows();
    let ns = |series: &str, size: usize| {
        let name = format!("{series}/{size}");
        rows.iter().find(|row| row.benchmark == name)?.ns_per_op
    };
    let sizes = rows.iter().filter_map(|row| row.benchmark.strip_prefix(PLAIN)?[1..].parse().ok());
    sizes.filter_map(|size| Some((size, ns(PLAIN, size)?, ns(DUP, size)?))).collect()
}

/// Series of `<data> OP_SHA256 OP_DROP OP_1`.
pub(super) const PLAIN: &str = "script/p2wsh/sha256";
pub(super) const DUP: &str = "script/p2wsh/dup-sha256";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_report() {
        let times = times();
        let sizes: Vec<usize> = times.iter().map(|(size, ..)| *size).collect();
        assert_eq!(sizes, [1, 64, 65, 100, 520, 8000]);
        assert_eq!(times[4], (520, 1_946.67, 2_036.64));
        assert_eq!(rows()[5].instructions_per_op, Some(304_137.02));
        assert_eq!(rows().len(), 12);
    }
}
