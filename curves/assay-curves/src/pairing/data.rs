//! Programs and sizes as data: `plans/studies/pairing-curves.toml`, which documents its keys.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use assay_bench::plan::PairingSettings;
use assay_bench::suite::Extent;
use assay_lab::companion::Companion;
use serde::Deserialize;

const DATA: &str = include_str!("../../../../plans/studies/pairing-curves.toml");

/// Supported format version.
const FORMAT: u32 = 1;

/// The parsed file, which a test checks.
pub(super) static BUILT_IN: LazyLock<Data> = LazyLock::new(|| {
    let data: Data = toml::from_str(DATA).expect("a test reads it");
    assert_eq!(data.format, FORMAT, "format of programs and sizes");
    data
});

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Data {
    format: u32,
    pub(super) programs: Vec<Program>,
    shapes: Vec<Shape>,
}

/// A program of this repository.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Program {
    pub(super) names: Vec<String>,
    /// Environment variable with the path; this and the next two are the fields of a [`Companion`].
    variable: String,
    folder: String,
    file: String,
    pub(super) build: String,
}

/// Sizes and thread counts of operations.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Shape {
    curve: Option<String>,
    operations: Vec<String>,
    sizes: Sizes,
    pub(super) unit: String,
    pub(super) threads: ThreadsOf,
    default_max: Option<usize>,
    quick_max: Option<usize>,
    quick_every_other: bool,
    quick_keeps_largest: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Sizes {
    Listed(Vec<usize>),
    Setting(Setting),
}

impl Default for Sizes {
    fn default() -> Self {
        Self::Listed(Vec::new())
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Setting {
    MsmPoints,
    Signatures,
    Blobs,
    Pairs,
}

/// Numbers of threads, and their presence in names of benchmarks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ThreadsOf {
    #[default]
    One,
    OneAndAll,
    AllUnnamed,
}

impl Program {
    /// Path of the program; the most likely one if it does not exist.
    pub(super) fn path(&self, named: Option<&Path>) -> PathBuf {
        let Self { variable, folder, file, .. } = self;
        let places = Companion { variable, folder, file }.places(named);
        let found = places.iter().find(|path| path.is_file()).or(places.last());
        found.cloned().unwrap_or_else(|| PathBuf::from(file))
    }
}

impl Data {
    pub(super) fn shape(&self, curve: &str, operation: &str) -> Option<&Shape> {
        self.shapes.iter().find(|shape| {
            shape.curve.as_ref().is_none_or(|of| of == curve)
                && (shape.operations.is_empty()
                    || shape.operations.iter().any(|of| of == operation))
        })
    }
}

impl Shape {
    pub(super) fn sizes(&self, settings: &PairingSettings, extent: Extent) -> Vec<usize> {
        let all = match &self.sizes {
            Sizes::Listed(sizes) => sizes,
            Sizes::Setting(Setting::MsmPoints) => &settings.msm_points,
            Sizes::Setting(Setting::Signatures) => &settings.signatures,
            Sizes::Setting(Setting::Blobs) => &settings.blobs,
            Sizes::Setting(Setting::Pairs) => &settings.pairs,
        };
        // Sizes set in the plan are all measured.
        let is_default = settings.msm_points == PairingSettings::default().msm_points;
        let max = self.default_max.filter(|_| is_default).unwrap_or(usize::MAX);
        match extent {
            Extent::Full => all.iter().copied().filter(|size| *size <= max).collect(),
            Extent::Smoke => all.first().copied().into_iter().collect(),
            Extent::Quick => self.quick(all),
        }
    }

    fn quick(&self, all: &[usize]) -> Vec<usize> {
        let max = self.quick_max.unwrap_or(usize::MAX);
        let mut kept: Vec<usize> = all.iter().copied().filter(|size| *size <= max).collect();
        if self.quick_every_other {
            let last = kept.len().saturating_sub(1);
            let chosen = |&(index, _): &(usize, usize)| index % 2 == 0 || index == last;
            kept = kept.into_iter().enumerate().filter(chosen).map(|(_, size)| size).collect();
        }
        let largest = all.last().filter(|size| self.quick_keeps_largest && **size > max);
        kept.extend(largest);
        kept
    }
}
