//! Which operations to measure, at which sizes, on how many threads.

use super::PairingSettings;
use super::subjects::{Offer, Order, Subject, Subjects};
use crate::suite::Extent;

/// One benchmark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Case {
    /// Its name.
    pub name: String,
    /// Its name without the size.
    pub series: String,
    /// Its size, where it has one.
    pub size: Option<u64>,
    /// What the size counts.
    pub unit: &'static str,
    /// What subjects are told.
    pub order: Order,
}

/// All of them, each with who has it: curves in the order of the settings, operations in the order in which the subjects
/// name them.
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
    let Shape { sizes, unit, threads } = shape(settings, extent, curve, operation);
    let mut cases = Vec::new();
    for threads in threads {
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

/// On how many threads, and whether the name tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Threads {
    One,
    NamedOne,
    All,
    UnnamedAll,
}

struct Shape {
    sizes: Vec<usize>,
    unit: &'static str,
    threads: Vec<Threads>,
}

/// Largest multi-scalar multiplications and batches where not everything is wanted.
const QUICK_POINTS_MAX: usize = 1 << 12;
const QUICK_G2_POINTS_MAX: usize = 1 << 8;
const QUICK_BLOBS_MAX: usize = 16;

fn shape(settings: &PairingSettings, extent: Extent, curve: &str, operation: &str) -> Shape {
    let one = vec![Threads::One];
    let both = vec![Threads::NamedOne, Threads::All];
    let some = |sizes: &[usize], most: usize| -> Vec<usize> {
        match extent {
            Extent::Full => sizes.to_vec(),
            Extent::Quick => sizes.iter().copied().filter(|size| *size <= most).collect(),
            Extent::Smoke => sizes.first().copied().into_iter().collect(),
        }
    };
    let every_other = |sizes: &[usize]| -> Vec<usize> {
        match extent {
            Extent::Quick => {
                let last = sizes.len().saturating_sub(1);
                let chosen = |&(index, _): &(usize, &usize)| index % 2 == 0 || index == last;
                sizes.iter().enumerate().filter(chosen).map(|(_, size)| *size).collect()
            }
            _ => some(sizes, usize::MAX),
        }
    };
    let (sizes, unit, threads) = match (curve, operation) {
        ("pool", _) => (Vec::new(), "", vec![Threads::UnnamedAll]),
        ("evm", "bn254-pairing" | "bls12-381-pairing") => {
            (every_other(&settings.pairs), "pairs", one)
        }
        ("evm", "bls12-381-g1msm" | "bls12-381-g2msm") => {
            (every_other(&[2, 4, 8, 16, 32, 64, 128]), "points", one)
        }
        ("evm", "modexp") => (some(&[32, 64, 128, 256, 512], 256), "bytes", one),
        ("evm", "sha256" | "ripemd160") => (some(&[32, 64, 128, 256], 256), "bytes", one),
        (_, "g1-msm") => {
            let mut sizes = every_other(&some(&settings.msm_points, QUICK_POINTS_MAX));
            if extent == Extent::Quick {
                // The largest is what a user of such curves waits for.
                sizes.extend(settings.msm_points.last().filter(|most| **most > QUICK_POINTS_MAX));
            }
            (sizes, "points", both)
        }
        (_, "g2-msm") => (some(&settings.msm_points, QUICK_G2_POINTS_MAX), "points", one),
        ("bls-signatures", "batch-verify") => {
            (every_other(&settings.signatures), "signatures", both)
        }
        ("bls-signatures", "aggregate" | "fast-aggregate-verify") => {
            (every_other(&settings.signatures), "signatures", one)
        }
        ("secp256k1", "ecdsa-verify" | "schnorr-verify") => {
            (some(&[16, 256, 4096], 4096), "signatures", one)
        }
        ("kzg", "verify-blob-batch") => (some(&settings.blobs, QUICK_BLOBS_MAX), "blobs", one),
        _ => (Vec::new(), "", one),
    };
    Shape { sizes, unit, threads }
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
