//! Published figures: Constantine's, which report 5 is about, and those of other libraries on other machines.

use crate::suite::Published;

/// Times of one source.
struct Source {
    subject: &'static str,
    machine: &'static str,
    note: &'static str,
    /// Benchmark and nanoseconds.
    times: &'static [(&'static str, f64)],
    /// Series of benchmarks, with size and nanoseconds.
    series: &'static [(&'static str, &'static [(u64, f64)])],
}

const US: f64 = 1e3;
const MS: f64 = 1e6;

const RYZEN: &str = "AMD Ryzen 7 7840U (Zen 4 laptop, 8 cores, 16 threads)";
const ULTRA: &str = "Intel Core Ultra 7 265K";

/// All of them.
pub(super) fn all() -> Vec<Published> {
    SOURCES.iter().flat_map(rows).collect()
}

fn rows(source: &Source) -> impl Iterator<Item = Published> {
    let one = |benchmark: String, ns: f64| Published {
        benchmark,
        subject: source.subject.to_owned(),
        machine: source.machine.to_owned(),
        ns_per_op: Some(ns),
        instructions_per_op: None,
        ratio: None,
        note: source.note.to_owned(),
    };
    let times = source.times.iter().map(move |(name, ns)| one((*name).to_owned(), *ns));
    let series = source.series.iter().flat_map(move |(name, sizes)| {
        sizes.iter().map(move |(size, ns)| one(format!("{name}/{size}"), *ns))
    });
    times.chain(series)
}

const SOURCES: [Source; 4] = [
    Source {
        subject: "Constantine, clang",
        machine: RYZEN,
        note: "from the images of its performance page",
        times: CONSTANTINE,
        series: CONSTANTINE_SERIES,
    },
    Source {
        subject: "Constantine",
        machine: "Intel Core i9-9980XE, overclocked to 4.1 GHz (18 cores, 36 threads)",
        note: "from the images of its performance page",
        times: &[],
        series: &[
            ("bn254/g1-msm-one-thread", &[(65536, 246.5 * MS)]),
            ("bn254/g1-msm-all-threads", &[(65536, 19.2 * MS)]),
        ],
    },
    Source {
        subject: "Constantine, 2026",
        machine: ULTRA,
        note: "its pull request 619, May 2026, one thread",
        times: &[
            ("kzg/commit", 19.556 * MS),
            ("kzg/proof", 20.235 * MS),
            ("kzg/blob-proof", 19.858 * MS),
            ("kzg/verify-proof", 0.568 * MS),
            ("kzg/verify-blob", 0.955 * MS),
        ],
        series: &[("kzg/verify-blob-batch", &[(1, 1.044 * MS), (2, 1.608 * MS), (4, 2.760 * MS)])],
    },
    Source {
        subject: "c-kzg",
        machine: ULTRA,
        note: "Constantine's pull request 619, May 2026, one thread",
        times: &[
            ("kzg/commit", 29.857 * MS),
            ("kzg/proof", 31.482 * MS),
            ("kzg/blob-proof", 31.691 * MS),
            ("kzg/verify-proof", 0.802 * MS),
            ("kzg/verify-blob", 1.196 * MS),
        ],
        series: &[("kzg/verify-blob-batch", &[(1, 1.203 * MS), (2, 2.017 * MS), (4, 3.600 * MS)])],
    },
];

const CONSTANTINE: &[(&str, f64)] = &[
    ("bls12-381/fr-mul", 10.0),
    ("bls12-381/fp-mul", 20.0),
    ("bls12-381/fp-sqr", 20.0),
    ("bls12-381/fp-inv", 1844.0),
    ("bls12-381/fp-sqrt", 10393.0),
    ("bls12-381/fp2-mul", 76.0),
    ("bls12-381/fp2-sqr", 53.0),
    ("bls12-381/fp12-mul", 1360.0),
    ("bls12-381/fp12-sqr", 984.0),
    ("bls12-381/fp12-inv", 5536.0),
    ("bls12-381/g1-add", 178.0),
    ("bls12-381/g1-add-mixed", 175.0),
    ("bls12-381/g1-double", 217.0),
    ("bls12-381/g1-mul", 45.7 * US),
    ("bls12-381/g1-subgroup", 31.0 * US),
    ("bls12-381/g1-hash", 40.9 * US),
    ("bls12-381/g2-add", 433.0),
    ("bls12-381/g2-double", 481.0),
    ("bls12-381/g2-mul", 87.7 * US),
    ("bls12-381/g2-subgroup", 35.9 * US),
    ("bls12-381/g2-hash", 124.0 * US),
    ("bls12-381/miller-loop", 178.6 * US),
    ("bls12-381/final-exponentiation", 211.8 * US),
    ("bls12-381/pairing", 384.4 * US),
    ("bn254/fr-mul", 11.0),
    ("bn254/fp-mul", 11.0),
    ("bn254/fp-inv", 1104.0),
    ("bn254/fp-sqrt", 4143.0),
    ("bn254/fp2-mul", 42.0),
    ("bn254/fp2-sqr", 34.0),
    ("bn254/fp12-mul", 1036.0),
    ("bn254/fp12-sqr", 834.0),
    ("bn254/fp12-inv", 4133.0),
    ("bn254/g1-add", 103.0),
    ("bn254/g1-add-mixed", 100.0),
    ("bn254/g1-double", 137.0),
    ("bn254/g1-mul", 28.2 * US),
    ("bn254/g1-hash", 18.0 * US),
    ("bn254/g2-add", 250.0),
    ("bn254/g2-double", 286.0),
    ("bn254/g2-mul", 50.3 * US),
    ("bn254/g2-subgroup", 64.3 * US),
    ("bn254/g2-hash", 61.8 * US),
    ("bn254/miller-loop", 144.8 * US),
    ("bn254/final-exponentiation", 154.3 * US),
    ("bn254/pairing", 297.3 * US),
    ("bls-signatures/sign", 234.0 * US),
    ("bls-signatures/verify", 630.0 * US),
    ("bls-signatures/decode-public-key", 45.1 * US),
    ("bls-signatures/decode-signature", 59.3 * US),
    ("kzg/commit", 23.3 * MS),
    ("kzg/blob-proof", 23.9 * MS),
    ("kzg/verify-proof", 0.770 * MS),
    ("kzg/verify-blob", 1.254 * MS),
    ("evm/bn254-add", 1617.0),
    ("evm/bn254-mul", 24.5 * US),
    ("evm/bls12-381-g1add", 2951.0),
    ("evm/bls12-381-g2add", 3945.0),
    ("evm/bls12-381-map-fp-to-g1", 34.0 * US),
    ("evm/bls12-381-map-fp2-to-g2", 105.7 * US),
];

const CONSTANTINE_SERIES: &[(&str, &[(u64, f64)])] = &[
    (
        "bls12-381/g1-msm-one-thread",
        &[
            (256, 3.24 * MS),
            (1024, 8.45 * MS),
            (4096, 25.8 * MS),
            (8192, 46.6 * MS),
            (16384, 84.1 * MS),
            (32768, 149.0 * MS),
            (65536, 273.7 * MS),
            (131_072, 529.0 * MS),
            (262_144, 967.0 * MS),
        ],
    ),
    (
        "bls12-381/g1-msm-all-threads",
        &[
            (256, 0.737 * MS),
            (1024, 1.66 * MS),
            (4096, 4.54 * MS),
            (8192, 7.98 * MS),
            (16384, 14.7 * MS),
            (32768, 25.0 * MS),
            (65536, 51.3 * MS),
            (131_072, 88.7 * MS),
            (262_144, 162.0 * MS),
        ],
    ),
    ("bls-signatures/fast-aggregate-verify", &[(128, 703.0 * US)]),
    ("bls-signatures/batch-verify-one-thread", &[(60, 19.4 * MS), (180, 56.7 * MS)]),
    ("bls-signatures/batch-verify-all-threads", &[(60, 3.60 * MS), (180, 9.16 * MS)]),
    ("kzg/verify-blob-batch", &[(64, 42.7 * MS)]),
    (
        "evm/bn254-pairing",
        &[
            (1, 387.0 * US),
            (2, 548.0 * US),
            (3, 713.0 * US),
            (4, 875.0 * US),
            (5, 1042.0 * US),
            (6, 1387.0 * US),
            (7, 1376.0 * US),
            (8, 1540.0 * US),
        ],
    ),
    (
        "evm/bls12-381-pairing",
        &[
            (1, 458.0 * US),
            (2, 625.0 * US),
            (3, 807.0 * US),
            (4, 982.0 * US),
            (5, 1162.0 * US),
            (6, 1582.0 * US),
            (7, 1643.0 * US),
            (8, 1832.0 * US),
        ],
    ),
    (
        "evm/bls12-381-g1msm",
        &[
            (2, 172.0 * US),
            (4, 305.0 * US),
            (8, 537.0 * US),
            (16, 962.0 * US),
            (32, 1772.0 * US),
            (64, 3564.0 * US),
            (128, 6358.0 * US),
        ],
    ),
    ("evm/bls12-381-g2msm", &[(128, 9.76 * MS)]),
    ("evm/sha256", &[(32, 34.0), (256, 125.0)]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_of_the_size_of_their_operation() {
        let all = all();
        assert!(all.len() > 110, "{}", all.len());
        let ns = |subject: &str, benchmark: &str| {
            let found = all.iter().find(|one| one.subject == subject && one.benchmark == benchmark);
            found.and_then(|one| one.ns_per_op)
        };
        assert_eq!(ns("Constantine, clang", "bls12-381/pairing"), Some(384_400.0));
        assert_eq!(ns("Constantine, clang", "bls12-381/g1-msm-one-thread/65536"), Some(273.7e6));
        assert_eq!(ns("c-kzg", "kzg/commit"), Some(29.857e6));
    }
}
