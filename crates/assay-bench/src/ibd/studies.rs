//! The report's question: which of its optimisations matter, here and there, and what each saves.

use assay_report::stats::ratio::Ratio;
use assay_report::stats::verdict::{COVERAGE, FLOOR_MIN, Verdict};

use super::names::{
    AGAIN, ASSAY, BUFFER, BUFFER_WORDS, BYTES, CACHED, COPY, EIGHTH_BATCH, FIELDS, FIRST,
    FIXED_BATCH, GENERAL, HASH_SET, INLINE_28, INLINE_36, ONE_BATCH, SERIALISE, SET, SET_NOT_ONE,
    SET_NOT_TWO, SINGLE, SIZE_COMPUTER, SLICES, SORTED, SORTED_NULL, SPECIAL, WORDS,
};
use super::published::{ratios_of, syncs};
use super::subjects::{MODERN, REAL};
use super::{IbdSuite, check, flush, inline};
use crate::BenchError;
use crate::harness::Row;
use crate::published::SyncStep;
use crate::suite::{Extent, Study, StudyTable};

/// An optimisation: one benchmark's alternatives before and after it. `*` in the name stands for either block.
struct Pair {
    what: &'static str,
    benchmark: &'static str,
    before: &'static str,
    after: &'static str,
    /// Why it does not pay where it does not.
    reason: &'static str,
}

const fn pair(
    what: &'static str,
    benchmark: &'static str,
    before: &'static str,
    after: &'static str,
    reason: &'static str,
) -> Pair {
    Pair { what, benchmark, before, after, reason }
}

const BATCH_OVERHEAD: &str = "starting a batch costs little compared with the work for each of its coins, and a cache holds few batches";
const LITTLE_XOR: &str = "the bytes are few compared with the system calls and the decoding";
const SAME_CODE: &str =
    "the compiler makes the same of both: a slice of one known byte is stored as a byte";
const NO_LOADS: &str = "four operations on constants run while the txid is loaded; the rounds depend on each other and take the time";
const FEW_INPUTS: &str = "the part of transactions that it concerns is small beside merkle root and signature operations";
const IN_CONTEXT: &str = "parsing, hashing and looking for the coins take microseconds, the check of one or two inputs nanoseconds";
const SMALL_NULL: &str =
    "looking through the inputs for a null one is next to nothing beside sorting them";

/// How many there are.
pub(super) const PAIR_COUNT: usize = 33;

/// The report's optimisations in its order, then what ours does beyond.
const PAIRS: [Pair; PAIR_COUNT] = [
    pair("1 buffered writing of blocks", "write-block/*", FIELDS, BUFFER, LITTLE_XOR),
    pair("1 buffered reading of blocks", "read-block/*", FIELDS, BUFFER, LITTLE_XOR),
    pair("1 buffered writing of undo data", "write-undo/*", FIELDS, BUFFER, LITTLE_XOR),
    pair("1 buffered reading of undo data", "read-undo/*", FIELDS, BUFFER, LITTLE_XOR),
    pair("2 obfuscation by 8 bytes", "xor/*", BYTES, WORDS, LITTLE_XOR),
    pair("2 the same, unaligned", "xor-unaligned/*", BYTES, WORDS, LITTLE_XOR),
    pair("2 in reading raw blocks", "read-raw-block/*", BUFFER, BUFFER_WORDS, LITTLE_XOR),
    pair("2 in reading blocks", "read-block/*", BUFFER, BUFFER_WORDS, LITTLE_XOR),
    pair("2 in writing blocks", "write-block/*", BUFFER, BUFFER_WORDS, LITTLE_XOR),
    pair("2 in writing undo data", "write-undo/*", BUFFER, BUFFER_WORDS, LITTLE_XOR),
    pair("2 in reading undo data", "read-undo/*", BUFFER, BUFFER_WORDS, LITTLE_XOR),
    pair(
        "3 flush batches that grow with the cache",
        "flush-batch/*",
        FIXED_BATCH,
        ONE_BATCH,
        BATCH_OVERHEAD,
    ),
    pair(
        "3 half of the way: an eighth of the cache",
        "flush-batch/*",
        FIXED_BATCH,
        EIGHTH_BATCH,
        BATCH_OVERHEAD,
    ),
    pair("4 sizes without serialising", "size/*", SERIALISE, SIZE_COMPUTER, SAME_CODE),
    pair("4 sizes from offsets", "size/*", SIZE_COMPUTER, ASSAY, SAME_CODE),
    pair("4 single byte writes", "serialise-block/*", SLICES, SINGLE, SAME_CODE),
    pair("5 no set for one input", "check-block/*", SET, SET_NOT_ONE, FEW_INPUTS),
    pair("5 no set for two inputs", "check-block/*", SET_NOT_ONE, SET_NOT_TWO, FEW_INPUTS),
    pair("5 sorted vector", "check-block/*", SET_NOT_TWO, SORTED, FEW_INPUTS),
    pair("5 null sought among the sorted", "check-block/*", SORTED, SORTED_NULL, SMALL_NULL),
    pair("5 all of these", "check-block/*", SET, SORTED_NULL, FEW_INPUTS),
    pair("5 sorted vector, inputs alone", "duplicate-inputs/*", SET, SORTED_NULL, FEW_INPUTS),
    pair("5 hash set, inputs alone", "duplicate-inputs/*", SET, HASH_SET, FEW_INPUTS),
    pair("5 null sought, inputs alone", "duplicate-inputs/*", SORTED, SORTED_NULL, SMALL_NULL),
    pair(
        "5 in context: offered transactions",
        "process-transaction/*",
        SET,
        SORTED_NULL,
        IN_CONTEXT,
    ),
    pair("6 specialised SipHash-2-4", "siphash/2-4", GENERAL, SPECIAL, NO_LOADS),
    pair("6 cached state, SipHash-2-4", "siphash/2-4", SPECIAL, CACHED, NO_LOADS),
    pair("6 cached state, SipHash-1-3", "siphash/1-3", SPECIAL, CACHED, NO_LOADS),
    pair("6 in sets: create", "coin-set/create", SPECIAL, CACHED, NO_LOADS),
    pair("6 in sets: match", "coin-set/match", SPECIAL, CACHED, NO_LOADS),
    pair("6 in sets: mismatch", "coin-set/mismatch", SPECIAL, CACHED, NO_LOADS),
    pair(
        "7 scripts of 36 bytes inline",
        "inline-script/*",
        INLINE_28,
        INLINE_36,
        "no coin is spared an allocation, and every coin takes eight bytes more",
    ),
    pair(
        "8 scripts looked at once",
        "accept-transaction/*",
        FIRST,
        AGAIN,
        "verdicts are not remembered",
    ),
];

pub(super) fn all(
    suite: &IbdSuite,
    extent: Extent,
    rows: &[Row],
) -> Result<Vec<Study>, BenchError> {
    let mut studies = vec![pairs(suite, rows), sum(rows), ours(rows), commits()];
    studies.push(Study {
        id: "inline-memory".to_owned(),
        title: "Inline scripts: allocations and bytes".to_owned(),
        prose: vec![
            "Counted by the allocator, not timed: bytes that are asked of it; what it adds to each for itself is not in them. \
             An entry of the map is outpoint, amount, height, flags and script, and the map is filled to its limit of seven \
             eighths. Our cache takes its memory from the system in large pieces instead of the heap (mapped; by its own \
             account, since no allocator sees it): records of 52 bytes and the script, rounded up to 8, and a table of one word \
             for each."
                .to_owned(),
        ],
        tables: vec![inline::memory(extent)?],
    });
    Ok(studies)
}

/// The rows that a pair's name stands for.
fn rows_of<'r>(pair: &Pair, rows: &'r [Row]) -> Vec<&'r Row> {
    let (prefix, is_open) = match pair.benchmark.strip_suffix('*') {
        Some(prefix) => (prefix, true),
        None => (pair.benchmark, false),
    };
    rows.iter()
        .filter(|row| if is_open { row.name.starts_with(prefix) } else { row.name == prefix })
        .collect()
}

fn interval(ratio: &Ratio) -> String {
    format!("{:.3} [{:.3}, {:.3}]", ratio.median, ratio.low, ratio.high)
}

/// The same rule as for every other comparison of the bench.
fn verdict(ratio: &Ratio) -> Verdict {
    Verdict::of(ratio, FLOOR_MIN)
}

fn verdict_text(ratio: &Ratio, reason: &str) -> String {
    match verdict(ratio) {
        Verdict::Faster => "pays".to_owned(),
        Verdict::Slower => format!("costs: {reason}"),
        Verdict::NotShown | Verdict::Equivalent => format!("does not pay here: {reason}"),
    }
}

fn time(ns: f64) -> String {
    match ns {
        0.0..1e3 => format!("{ns:.1} ns"),
        1e3..1e6 => format!("{:.2} µs", ns / 1e3),
        _ => format!("{:.3} ms", ns / 1e6),
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Pair by pair: whether it pays.
fn pairs(suite: &IbdSuite, rows: &[Row]) -> Study {
    let mut cells = Vec::new();
    let mut paying = 0;
    for pair in &PAIRS {
        for row in rows_of(pair, rows) {
            let Some(ratio) = row.ratio_covered(pair.before, pair.after, COVERAGE) else {
                continue;
            };
            let ns = |name: &str| row.of(name).map_or(0.0, |figures| figures.ns_per_op);
            paying += usize::from(verdict(&ratio) == Verdict::Faster);
            let ours = row
                .ratio_covered(pair.before, ASSAY, COVERAGE)
                .map_or("-".to_owned(), |r| interval(&r));
            cells.push(vec![
                pair.what.to_owned(),
                row.name.clone(),
                format!("{} → {}", pair.before, pair.after),
                verdict_text(&ratio, pair.reason),
                ratios_of(&row.name),
                time(ns(pair.before)),
                time(ns(pair.after)),
                interval(&ratio),
                ours,
            ]);
        }
    }
    let mut prose = vec![
        format!(
            "Of {} pairs {paying} show a ratio (time before over time after) above 1 with a 99 % interval that excludes 1, \
             by more than the 1 % that the place of code in memory makes. A pair that does not says why.",
            cells.len()
        ),
        "Before and after are the report's steps written in Rust, with Core's calls to the system and Core's layout in \
         memory: they isolate the optimisation, they are not Core. An ordered set is the standard library's B-tree, which is \
         faster than the red-black tree of C++; the file stream has a buffer of 4 KiB, as the C library's. The published \
         ratio is that of the whole series of commits on a benchmark, from its first to its last step."
            .to_owned(),
    ];
    prose.push(
        "`process-transaction` is the engine's whole path of a transaction whose inputs are not there. Its own check is timed \
         alone and taken off, and the step's check is put in its place, so that every side checks once."
            .to_owned(),
    );
    if suite.has_real() {
        prose.push(
            "The real block's inputs are not at hand: its undo data is made up, of the kinds of script of 2016.".to_owned(),
        );
    } else {
        prose.push(format!(
            "Skipped: real block {REAL} was not found (`ASSAY_TEST_DATA`, `../shared/data`); only the modern block was measured."
        ));
    }
    let head = [
        "optimisation",
        "benchmark",
        "step",
        "verdict",
        "published",
        "before",
        "after",
        "ratio",
        "before / ours",
    ];
    Study {
        id: "pairs".to_owned(),
        title: "Each optimisation before and after".to_owned(),
        prose,
        tables: vec![StudyTable {
            caption:
                "Ratios with 99 % intervals; `before / ours` compares with what the engine does"
                    .to_owned(),
            head: words(&head),
            word_columns: 5,
            rows: cells,
        }],
    }
}

/// What an optimisation is measured on: benchmark (`*` is the block), before, after.
type Saving = (&'static str, &'static str, &'static str);

/// The optimisations in the order of the report, then inline scripts: of what one unit the saving is, and what adds up to it.
const SAVINGS: [(&str, &str, &[Saving]); 7] = [
    (
        "buffered block and undo serialisation",
        BLOCK,
        &[("write-block/*", FIELDS, BUFFER), ("write-undo/*", FIELDS, BUFFER)],
    ),
    (
        "obfuscation by 8 bytes",
        BLOCK,
        &[("write-block/*", BUFFER, BUFFER_WORDS), ("write-undo/*", BUFFER, BUFFER_WORDS)],
    ),
    (
        "flush batches that grow with the cache",
        "coin written to disk",
        &[("flush-batch/400000", FIXED_BATCH, ONE_BATCH)],
    ),
    ("sizes and single bytes in serialisation", BLOCK, &[("serialise-block/*", SLICES, SINGLE)]),
    ("CheckBlock: inputs and coinbase", BLOCK, &[("check-block/*", SET, SORTED_NULL)]),
    ("SipHash with cached state", "outpoint hashed", &[("siphash/2-4", SPECIAL, CACHED)]),
    ("36 bytes inline", "coin added and spent", &[("inline-script/40", INLINE_28, INLINE_36)]),
];

/// The unit of what is done once per block.
const BLOCK: &str = "block";

/// Nanoseconds saved in one unit.
fn saved_ns(rows: &[Row], block: &str, savings: &[Saving]) -> Option<f64> {
    savings
        .iter()
        .map(|(benchmark, before, after)| {
            let name = benchmark.replace('*', block);
            let row = rows.iter().find(|row| row.name == name)?;
            Some(row.of(before)?.ns_per_op - row.of(after)?.ns_per_op)
        })
        .sum()
}

/// A line for each optimisation of these units that was measured.
fn saved(rows: &[Row], block: &str, wanted: impl Fn(&str) -> bool) -> Vec<Vec<String>> {
    let line = |(what, unit, savings): &(&str, &str, &[Saving])| {
        let ns = saved_ns(rows, block, savings).filter(|_| wanted(unit))?;
        let saved = if ns < 0.0 { format!("-{}", time(-ns)) } else { time(ns) };
        Some(vec![(*what).to_owned(), (*unit).to_owned(), saved])
    };
    SAVINGS.iter().filter_map(line).collect()
}

/// What each saves of its own unit, and what the report has for a whole synchronisation.
fn sum(rows: &[Row]) -> Study {
    let mut tables = Vec::new();
    let mut table = |caption: String, rows: Vec<Vec<String>>| {
        if !rows.is_empty() {
            let head = words(&["optimisation", "of each", "saved"]);
            tables.push(StudyTable { caption, head, word_columns: 2, rows });
        }
    };
    for block in [REAL, MODERN] {
        let of_block = saved(rows, block, |unit| unit == BLOCK);
        table(
            format!("What is saved in one block, written and checked once: block {block}"),
            of_block,
        );
    }
    table("What is saved per coin or hash".to_owned(), saved(rows, REAL, |unit| unit != BLOCK));
    tables.push(published_syncs());
    Study {
        id: "sum".to_owned(),
        title: "What each of them saves".to_owned(),
        prose: vec![
            "The report: 8.59 hours become 7.25, 18 %, of which buffered serialisation gives nearly half and obfuscation a \
             quarter; each of the others gives about one percent. Inline scripts have no time of their own in it (about 3 % \
             with a large cache)."
                .to_owned(),
            "Here each is measured on its own unit of work: a block that is written and checked once, a coin, a hash. How often a \
             synchronisation hashes an outpoint or writes a coin to disk depends on its cache and was not measured, so what is \
             saved per coin or hash is not added to what is saved per block, and no shares follow. Scripts and reading of \
             coins, which take most of a synchronisation, are the same before and after."
                .to_owned(),
        ],
        tables,
    }
}

/// The report's whole synchronisations, step by step.
fn published_syncs() -> StudyTable {
    let syncs = syncs();
    let first = syncs.steps.first().map_or(f64::NAN, |step| step.before_s);
    let last = syncs.steps.last().map_or(f64::NAN, |step| step.after_s);
    let mut published: Vec<Vec<String>> = syncs
        .steps
        .iter()
        .map(|SyncStep { optimisation, commit, before_s: before, after_s: after, .. }| {
            vec![
                optimisation.clone(),
                commit.clone(),
                format!("{before:.0} s"),
                format!("{after:.0} s"),
                format!("{:.3}", before / after),
                format!("{:.0} %", (before - after) * 100.0 / (first - last)),
            ]
        })
        .collect();
    published.push(vec![
        "all".to_owned(),
        String::new(),
        format!("{first:.0} s"),
        format!("{last:.0} s"),
        format!("{:.3}", first / last),
        "100 %".to_owned(),
    ]);
    StudyTable {
        caption: format!(
            "Published: synchronisation to block 886,000 after each step ({}, 5 GiB of cache)",
            syncs.machine
        ),
        head: words(&[
            "optimisation",
            "commit",
            "before",
            "after",
            "ratio",
            "share of what is saved",
        ]),
        word_columns: 2,
        rows: published,
    }
}

/// The figures that were promised of ours: throughput of the obfuscation beside a copy, duplicates beside a set.
fn ours(rows: &[Row]) -> Study {
    let gigabytes = |row: &Row, name: &str| {
        let size: f64 =
            row.name.rsplit('/').next().and_then(|size| size.parse().ok()).unwrap_or(0.0);
        row.of(name).map_or(0.0, |figures| size / figures.ns_per_op.max(1e-3))
    };
    let xor = rows.iter().filter(|row| row.name.starts_with("xor")).map(|row| {
        let mut line = vec![row.name.clone()];
        line.extend([BYTES, WORDS, ASSAY, COPY].map(|name| format!("{:.1}", gigabytes(row, name))));
        line.push(
            row.ratio_covered(COPY, ASSAY, COVERAGE)
                .map_or("-".to_owned(), |ratio| interval(&ratio)),
        );
        line
    });
    let prefix = format!("{}/", check::DUPLICATES);
    let duplicates = rows.iter().filter(|row| row.name.starts_with(check::DUPLICATES)).map(|row| {
        let ns = |name: &str| time(row.of(name).map_or(0.0, |figures| figures.ns_per_op));
        let mut line = vec![row.name.trim_start_matches(&prefix).to_owned()];
        line.extend([SET, SORTED_NULL, HASH_SET, ASSAY].map(ns));
        line.extend([SET, SORTED_NULL, HASH_SET].map(|name| {
            row.ratio_covered(name, ASSAY, COVERAGE)
                .map_or("-".to_owned(), |ratio| interval(&ratio))
        }));
        line
    });
    let flush = rows.iter().filter(|row| row.name.starts_with(flush::SERIES)).map(|row| {
        let mut line = vec![row.name.clone()];
        line.extend(
            [FIXED_BATCH, EIGHTH_BATCH, ONE_BATCH, ASSAY]
                .map(|name| time(row.of(name).map_or(0.0, |figures| figures.ns_per_op))),
        );
        line
    });
    let tables = vec![
        StudyTable {
            caption: "Obfuscation, GB/s; the ratio is the time of a plain copy over ours"
                .to_owned(),
            head: words(&["bytes", BYTES, WORDS, ASSAY, COPY, "copy / ours"]),
            word_columns: 1,
            rows: xor.collect(),
        },
        StudyTable {
            caption: "Inputs that spend the same; ratios are the time of the other over ours"
                .to_owned(),
            head: words(&["inputs", SET, SORTED_NULL, HASH_SET, ASSAY, "set", "sorted", "hash"]),
            word_columns: 1,
            rows: duplicates.collect(),
        },
        StudyTable {
            caption: "Flush: time for each coin, by size of the cache in coins; write batches against our sorted tables".to_owned(),
            head: words(&["cache", FIXED_BATCH, EIGHTH_BATCH, ONE_BATCH, ASSAY]),
            word_columns: 1,
            rows: flush.collect(),
        },
    ];
    Study {
        id: "ours".to_owned(),
        title: "What the engine does instead".to_owned(),
        prose: vec![
            "- Obfuscation: only other programs' files have it. It is taken off by vectors of the widest kind the machine has; \
             a copy reads and writes as much, so its speed is the limit while the bytes are cached."
                .to_owned(),
            "- Duplicate inputs: 64-bit digests of the outpoints, compared pairwise or sorted; only where two agree are whole \
             outpoints looked at. Whoever grinds txids until digests agree makes it one exact sort (`-colliding`), so there is \
             no quadratic case and no key to keep."
                .to_owned(),
            "- Flush: write batches go through journal and memtable of the same database, unsorted and synced once at the end, as \
             Core writes to LevelDB; only a single batch is atomic. Ours sorts all changes and writes them as tables that enter \
             the tree at once, whatever the size of the cache. Every column ends with coins that survive a power cut, but after \
             write batches they still have to be written from the memtable as tables, which is not in the time: where ours is \
             slower, part of the difference is that."
                .to_owned(),
        ],
        tables,
    }
}

/// Every commit of the report, and the rows that cover it.
const COMMITS: [(&str, &str, &str); 24] = [
    ("3d203c2acf", "test: obfuscation against a simple form", "asserted in every `xor` row"),
    ("5d5f3d06dd", "bench: obfuscation of large pieces", "`xor`, `xor-unaligned`"),
    ("8e6e0acd36", "refactor: key in the database wrapper", "nothing to time"),
    ("e50732d25f", "refactor: key in the mempool file", "nothing to time"),
    (
        "c5e866b190",
        "optimisation: key as one word of 64 bits",
        "`xor`, `read-raw-block`, `read-block`, `write-block`, `*-undo`",
    ),
    ("c497ca6e91", "bench: salted hash of outpoints", "`siphash`, `coin-set`"),
    ("ae87260d29", "test: names of keys", "nothing to time"),
    ("155ba7c349", "refactor: constants of SipHash", "nothing to time"),
    ("73cfebb08b", "optimisation: cached state of SipHash", "`siphash`, `coin-set`"),
    ("3d7c8ae9fb", "bench: serialisation and size", "`serialise-block`, `size`"),
    ("9f15d4da35", "cleanup: 16-bit big endian", "nothing to time"),
    ("5559eb68a9", "refactor: fewer templates", "`serialise-block`: the same code in Rust"),
    ("8f71de5f8f", "refactor: spans of fixed extent", "`serialise-block`: the same code in Rust"),
    ("2bf6c56cab", "optimisation: size computer", "`size`"),
    ("6269067bc3", "optimisation: single byte writes", "`serialise-block`"),
    (
        "c15d130752",
        "test: duplicates by several methods",
        "asserted in every `duplicate-inputs` row",
    ),
    (
        "bf580d7b4e",
        "bench: CheckBlock without deserialisation",
        "`check-block`, `deserialise-block`",
    ),
    ("a300325c5b", "bench: ProcessTransaction", "`process-transaction`, `accept-transaction`"),
    (
        "7b576a440d",
        "optimisation: duplicates outside the coinbase branch",
        "`check-block`, `duplicate-inputs`: no set for one input",
    ),
    (
        "765b71b90b",
        "optimisation: trivial inputs",
        "`check-block`, `duplicate-inputs`: no set for two inputs",
    ),
    (
        "cb8c012b87",
        "optimisation: sorted vector",
        "`check-block`, `duplicate-inputs`: sorted vector",
    ),
    (
        "f07c79f034",
        "optimisation: null among the sorted",
        "`check-block`, `duplicate-inputs`, `process-transaction`: null sought in it",
    ),
    ("b5dc42874d", "test: what is allocated", "counted in the study of inline scripts"),
    ("b6b4235c14", "optimisation: 36 bytes inline", "`inline-script`"),
];

fn commits() -> Study {
    let rows = COMMITS.iter().map(|(hash, what, covered)| words(&[hash, what, covered])).collect();
    Study {
        id: "commits".to_owned(),
        title: "The report's commits".to_owned(),
        prose: vec![
            "Buffered serialisation and flush batches are in the report's measurements of whole synchronisations and were \
             merged before these commits: `write-block`, `read-block`, `write-undo`, `read-undo` and `flush-batch` cover them."
                .to_owned(),
        ],
        tables: vec![StudyTable {
            caption: "Each commit, and the rows that cover it".to_owned(),
            head: words(&["commit", "what", "covered by"]),
            word_columns: 3,
            rows,
        }],
    }
}
