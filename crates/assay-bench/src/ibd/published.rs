//! What the report (pull request 32043 of Bitcoin Core) says about the same operations.

use super::subjects::REAL;
use crate::suite::Published;

const CLANG: &str = "AppleClang 16 or 17, machine not named";
const GCC: &str = "GNU 13.3.0, machine not named";
const SYNC: &str = "Intel i9-9900K, 64 GB, NVMe";

/// Times before and after of a commit message's tables.
struct Table {
    benchmark: &'static str,
    clang: Option<(f64, f64)>,
    gcc: Option<(f64, f64)>,
    note: &'static str,
}

const TABLES: [Table; 10] = [
    Table {
        benchmark: "xor/1048576",
        clang: Some((731_927.62, 14_730.40)),
        gcc: Some((941_015.26, 51_187.17)),
        note: "XorObfuscationBench, 5d5f3d06dd to c5e866b190",
    },
    Table {
        benchmark: "read-block/413567",
        clang: Some((2_202_618.49, 1_912_308.06)),
        gcc: None,
        note: "ReadBlockBench in c5e866b190: the obfuscation alone, buffered on both sides",
    },
    Table {
        benchmark: "read-raw-block/413567",
        clang: Some((734_444.92, 49_092.93)),
        gcc: None,
        note: "ReadRawBlockBench in c5e866b190",
    },
    Table {
        benchmark: "serialise-block/413567",
        clang: Some((195_610.62, 174_569.19)),
        gcc: Some((867_857.55, 615_000.56)),
        note: "SerializeBlock, 3d7c8ae9fb to 6269067bc3",
    },
    Table {
        benchmark: "size/413567",
        clang: Some((12_061.83, 10_241.16)),
        gcc: Some((30_928.27, 25_676.76)),
        note: "SizeComputerBlock, 3d7c8ae9fb to 6269067bc3; full serialisation took 195,611 and 867,858 ns",
    },
    Table {
        benchmark: "check-block/413567",
        clang: Some((372_743.63, 179_971.00)),
        gcc: Some((1_096_261.84, 834_855.94)),
        note: "CheckBlockBench, bf580d7b4e to f07c79f034",
    },
    Table {
        benchmark: "duplicate-inputs/24290",
        clang: Some((3_304_694.54, 963_177.98)),
        gcc: Some((8_366_309.48, 4_261_492.75)),
        note: "DuplicateInputs, bf580d7b4e to f07c79f034: a block with such a transaction",
    },
    Table {
        benchmark: "process-transaction/413567",
        clang: Some((9_585.10, 9_410.90)),
        gcc: Some((56_199.57, 55_819.53)),
        note: "ProcessTransactionBench, a300325c5b to f07c79f034",
    },
    Table {
        benchmark: "siphash/2-4",
        clang: Some((11.97, 11.24)),
        gcc: Some((23.82, 23.67)),
        note: "SaltedOutpointHasherBench_hash, c497ca6e91 to 73cfebb08b",
    },
    Table {
        benchmark: "coin-set/create",
        clang: Some((58.60, 57.27)),
        gcc: Some((136.76, 135.38)),
        note: "SaltedOutpointHasherBench_create_set, c497ca6e91 to 73cfebb08b",
    },
];

const LOOKUPS: [Table; 2] = [
    Table {
        benchmark: "coin-set/match",
        clang: Some((14.50, 13.91)),
        gcc: Some((60.42, 58.95)),
        note: "SaltedOutpointHasherBench_match, c497ca6e91 to 73cfebb08b",
    },
    Table {
        benchmark: "coin-set/mismatch",
        clang: Some((13.90, 13.29)),
        gcc: Some((78.66, 76.98)),
        note: "SaltedOutpointHasherBench_mismatch, c497ca6e91 to 73cfebb08b",
    },
];

/// What the description of the report says of whole synchronisations: optimisation, commit, seconds before and after it.
pub(super) const SYNCS: [(&str, &str, f64, f64); 6] = [
    ("buffered block and undo serialisation", "6a8ce46e32", 30_932.610, 28_501.588),
    ("obfuscation by 8 bytes", "c5cc54d101", 28_501.588, 27_394.210),
    ("flush batches that grow with the cache", "9b4be912d2", 27_394.210, 27_019.086),
    ("sizes and single bytes in serialisation", "817d7ac076", 27_019.086, 26_711.460),
    ("CheckBlock: inputs and coinbase", "182745cec4", 26_711.460, 26_326.867),
    ("SipHash with cached state", "47d377bd0b", 26_326.867, 26_084.429),
];

/// Whole synchronisations beside the pair that comes nearest.
const SYNC_PAIRS: [(&str, usize); 3] =
    [("write-block/413567", 0), ("read-block/413567", 0), ("flush-batch/400000", 2)];

/// All of them; those of the real block only where it is measured.
pub(super) fn all(has_real: bool) -> Vec<Published> {
    let tables = TABLES.iter().chain(&LOOKUPS).flat_map(|table| {
        [("bitcoin core, clang", CLANG, table.clang), ("bitcoin core, gcc", GCC, table.gcc)]
            .into_iter()
            .filter_map(move |(subject, machine, times)| {
                let (before, after) = times?;
                Some(Published {
                    benchmark: table.benchmark.to_owned(),
                    subject: subject.to_owned(),
                    machine: machine.to_owned(),
                    ns_per_op: Some(after),
                    instructions_per_op: None,
                    ratio: Some(before / after),
                    note: format!("{}; {before} ns before", table.note),
                })
            })
    });
    let syncs = SYNC_PAIRS.iter().map(|(benchmark, index)| {
        let (what, commit, before, after) = SYNCS[*index];
        Published {
            benchmark: (*benchmark).to_owned(),
            subject: "bitcoin core, whole synchronisation to block 886,000".to_owned(),
            machine: SYNC.to_owned(),
            ns_per_op: None,
            instructions_per_op: None,
            ratio: Some(before / after),
            note: format!("{what}, {commit}: {before} s before, {after} s after"),
        }
    });
    let inline = Published {
        benchmark: super::inline::name_of(super::inline::SHARE_TODAY),
        subject: "bitcoin core, AssumeUTXO load and flush with a large cache".to_owned(),
        machine: SYNC.to_owned(),
        ns_per_op: None,
        instructions_per_op: None,
        ratio: Some(1.065),
        note: "b6b4235c14: 6 to 7 % faster; about 1 % slower with a cache of 450 MB, 3 % faster \
               synchronisation with larger ones"
            .to_owned(),
    };
    let all = tables.chain(syncs).chain([inline]);
    all.filter(|published| has_real || !published.benchmark.ends_with(&format!("/{REAL}")))
        .collect()
}

/// The published ratios of a benchmark, in a few words; those of whole synchronisations say so.
pub(super) fn ratios_of(benchmark: &str) -> String {
    let said: Vec<String> = all(true)
        .iter()
        .filter(|published| published.benchmark == benchmark)
        .filter_map(|published| {
            let who = published.subject.trim_start_matches("bitcoin core, ");
            let who = if who.starts_with("whole") { "whole sync" } else { who };
            let who = if who.starts_with("AssumeUTXO") { "load and flush" } else { who };
            Some(format!("{:.3} ({who})", published.ratio?))
        })
        .collect();
    if said.is_empty() { "-".to_owned() } else { said.join(", ") }
}
