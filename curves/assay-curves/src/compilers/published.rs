//! Published claims with the nearest measured ratios, as data: `plans/claims/compilers.toml`, which documents its keys.

use std::sync::LazyLock;

use assay_bench::harness::Row;
use assay_bench::suite::Study;
use serde::Deserialize;

use super::build::Build;
use super::kernel::{KERNELS, Kernel, Style};
use super::{Programs, tables};
use crate::pairing::{interval, table};

const CLAIMS: &str = include_str!("../../../../plans/claims/compilers.toml");

/// Supported format version.
const FORMAT: u32 = 1;

/// The parsed file, which a test checks.
static PUBLISHED: LazyLock<Ratios> = LazyLock::new(|| {
    let published: Ratios = toml::from_str(CLAIMS).expect("a test reads it");
    assert_eq!(published.format, FORMAT, "format of published claims");
    published
});

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ratios {
    format: u32,
    source: String,
    #[serde(rename = "claim")]
    all: Vec<PublishedRatio>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedRatio {
    claim: String,
    /// Published ratio of times.
    published: String,
    differs: String,
    kernels: Vec<String>,
    slower: Side,
    faster: Side,
}

/// Programs of which the fastest is one side of a ratio.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Side {
    families: Vec<String>,
    styles: Vec<String>,
    mulx: Option<bool>,
}

impl Side {
    fn admits(&self, programs: &Programs, build: &Build, style: Style) -> bool {
        let has = |names: &[String], name: &str| names.iter().any(|one| one == name);
        has(&self.families, programs.compiler(build).family.name())
            && has(&self.styles, style.name())
            && self.mulx.is_none_or(|mulx| mulx == build.flags.mulx)
    }

    fn fastest(&self, programs: &Programs, row: &Row, kernel: Kernel) -> Option<String> {
        let timed = tables::fastest(programs, row, kernel, |build, style| {
            self.admits(programs, build, style)
        })?;
        Some(timed.figures.name.clone())
    }
}

/// Claims against measured ratios; `None` if no claim has both sides.
pub(super) fn study(programs: &Programs, rows: &[Row]) -> Option<Study> {
    let mut lines = Vec::new();
    for claim in &PUBLISHED.all {
        for kernel in
            KERNELS.iter().filter(|kernel| claim.kernels.iter().any(|name| name == kernel.name))
        {
            for row in rows.iter().filter(|row| tables::is_of(row, *kernel)) {
                lines.extend(line(claim, programs, row, *kernel));
            }
        }
    }
    let head = [
        "published",
        "it says",
        "here",
        "slower",
        "faster",
        "slower / faster here",
        "what differs",
    ];
    (!lines.is_empty()).then(|| Study {
        id: "compilers-published".to_owned(),
        title: "Published figures".to_owned(),
        prose: vec![
            format!("Source: {}.", PUBLISHED.source),
            "These are not the same work: the published ratios are those of a library, ours of single routines. On each side stands the \
             fastest program here that fits, whatever its level, so a ratio is one of compilers at their best."
                .to_owned(),
        ],
        tables: vec![table(
            "Ratios of times: published, and the nearest here with its interval",
            &head,
            5,
            lines,
        )],
        ..Study::default()
    })
}

fn line(
    claim: &PublishedRatio,
    programs: &Programs,
    row: &Row,
    kernel: Kernel,
) -> Option<Vec<String>> {
    let slower = claim.slower.fastest(programs, row, kernel)?;
    let faster = claim.faster.fastest(programs, row, kernel)?;
    let ratio = row.ratio(&slower, &faster)?;
    Some(vec![
        claim.claim.clone(),
        claim.published.clone(),
        row.name.clone(),
        slower,
        faster,
        interval(&ratio),
        claim.differs.clone(),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::discover::Family;
    use super::*;

    #[test]
    fn claims_name_existing_kernels() {
        assert_eq!(PUBLISHED.all.len(), 4);
        for claim in &PUBLISHED.all {
            let is_kernel = |name: &String| KERNELS.iter().any(|kernel| kernel.name == name);
            assert!(claim.kernels.iter().all(is_kernel), "{claim:?}");
            for side in [&claim.slower, &claim.faster] {
                let is_family = |name: &String| {
                    [Family::Gcc, Family::Clang, Family::Rustc].iter().any(|one| one.name() == name)
                };
                let is_style = |name: &String| Style::ALL.iter().any(|one| one.name() == name);
                assert!(
                    side.families.iter().all(is_family) && side.styles.iter().all(is_style),
                    "{side:?}"
                );
            }
        }
    }
}
