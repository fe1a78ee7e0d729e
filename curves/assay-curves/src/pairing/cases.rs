//! Operations to measure, with their sizes and thread counts.

use assay_bench::plan::PairingSettings;
use assay_bench::suite::Extent;

use super::data::{BUILT_IN, ThreadsOf};
use super::protocol::{Offer, Order};
use super::subjects::{Subject, Subjects};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub name: String,
    /// Name without the size.
    pub series: String,
    pub size: Option<u64>,
    pub unit: &'static str,
    /// Order for the subjects.
    pub order: Order,
}

/// All benchmarks with their subjects: curves in the order of the settings, operations in that of the subjects.
pub(super) fn of<'a>(
    settings: &PairingSettings,
    extent: Extent,
    subjects: &'a Subjects,
) -> Vec<(Case, Vec<&'a Subject>)> {
    let mut cases = Vec::new();
    for curve in &settings.curves {
        let mut offers: Vec<&Offer> = Vec::new();
        let of_curve = |offer: &&'a Offer| offer.curve == *curve;
        for offer in subjects.all.iter().flat_map(|subject| &subject.description.operations) {
            let is_known = |known: &&Offer| known.operation == offer.operation;
            if of_curve(&offer) && !offers.iter().any(is_known) {
                offers.push(offer);
            }
        }
        for offer in offers {
            let takers: Vec<&Subject> = subjects
                .all
                .iter()
                .filter(|subject| subject.how(curve, &offer.operation).is_some())
                .collect();
            for case in of_operation(settings, extent, offer) {
                cases.push((case, takers.clone()));
            }
        }
    }
    cases
}

fn of_operation(settings: &PairingSettings, extent: Extent, offer: &Offer) -> Vec<Case> {
    let Offer { curve, operation, .. } = offer;
    let shape = BUILT_IN.shape(curve, operation);
    let sizes = shape.map_or_else(Vec::new, |shape| shape.sizes(settings, extent));
    let unit = shape.map_or("", |shape| &shape.unit);
    let mut cases = Vec::new();
    for &threads in shape.map_or(ThreadsOf::One, |shape| shape.threads).each() {
        let suffix = match threads {
            Threads::One | Threads::UnnamedAll => "",
            Threads::NamedOne => "-one-thread",
            Threads::All => "-all-threads",
        };
        let series = format!("{curve}/{operation}{suffix}");
        let order = |size: usize| Order {
            curve: curve.clone(),
            operation: operation.clone(),
            size,
            threads: usize::from(matches!(threads, Threads::One | Threads::NamedOne)),
            seed: settings.seed,
            inputs: String::new(),
        };
        if sizes.is_empty() {
            let name = series.clone();
            cases.push(Case { name, series, size: None, unit: "", order: order(0) });
            continue;
        }
        for &size in &sizes {
            cases.push(Case {
                name: format!("{series}/{size}"),
                series: series.clone(),
                size: Some(size as u64),
                unit,
                order: order(size),
            });
        }
    }
    cases
}

/// Number of threads, and its presence in the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Threads {
    One,
    NamedOne,
    All,
    UnnamedAll,
}

impl ThreadsOf {
    const fn each(self) -> &'static [Threads] {
        match self {
            Self::One => &[Threads::One],
            Self::OneAndAll => &[Threads::NamedOne, Threads::All],
            Self::AllUnnamed => &[Threads::UnnamedAll],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(extent: Extent, curve: &str, operation: &str) -> Vec<String> {
        let (curve, operation) = (curve.to_owned(), operation.to_owned());
        let offer = Offer { curve, operation, how: String::new() };
        let cases = of_operation(&PairingSettings::default(), extent, &offer);
        cases.into_iter().map(|case| case.name).collect()
    }

    #[test]
    fn sizes_and_threads() {
        assert_eq!(names(Extent::Full, "bn254", "fp-mul"), ["bn254/fp-mul"]);
        let msm = names(Extent::Full, "bls12-381", "g1-msm");
        assert_eq!(msm.len(), 36);
        assert_eq!(msm[0], "bls12-381/g1-msm-one-thread/2");
        assert_eq!(msm[35], "bls12-381/g1-msm-all-threads/262144");
        let last = |curve, operation| names(Extent::Full, curve, operation).pop();
        assert_eq!(last("bn254", "g1-msm").as_deref(), Some("bn254/g1-msm-all-threads/65536"));
        assert_eq!(last("bls12-381", "g2-msm").as_deref(), Some("bls12-381/g2-msm/4096"));
        let quick = names(Extent::Quick, "bls12-381", "g1-msm");
        assert_eq!(quick.last().map(String::as_str), Some("bls12-381/g1-msm-all-threads/262144"));
        assert!(quick.contains(&"bls12-381/g1-msm-one-thread/4096".to_owned()));
        assert!(!quick.contains(&"bls12-381/g1-msm-one-thread/65536".to_owned()));
        let smoke = names(Extent::Smoke, "kzg", "verify-blob-batch");
        assert_eq!(smoke, ["kzg/verify-blob-batch/1"]);
        let pairs = names(Extent::Quick, "evm", "bn254-pairing");
        assert_eq!(pairs.len(), 5, "{pairs:?}");
    }
}
