//! Text, tables and a chart of the atlas.

use assay_bench::suite::{Study, StudyChart, StudyTable};
use assay_report::number::count;
use assay_report::stats::ratio::Summary;

use super::block::BLOCK_WEIGHT;
use super::cell::Cell;
use super::classes::CLASSES;
use super::{Measured, outside};
use crate::kernels::Kernel;
use crate::{interval, table};

/// Reference class: BIP340 checks with distinct signatures.
const REFERENCE: &str = "tapscript-checks";

/// Reference class of a typical block.
const ORDINARY: &str = "ordinary";

pub(super) fn studies(measured: &Measured, kernels: &[Kernel]) -> Vec<Study> {
    let cells = &measured.cells;
    let mut studies = vec![
        Study {
            id: "atlas".to_owned(),
            title: "The worst block of each rule set".to_owned(),
            lead: lead(cells),
            charts: vec![chart(cells)],
            prose: prose(cells, kernels),
            tables: vec![by_rules(cells), cells_table(cells)],
            ..Study::default()
        },
        Study {
            id: "against-core".to_owned(),
            title: "Bitcoin Core's kernel on the same blocks".to_owned(),
            prose: vec![against_prose(cells)],
            tables: vec![against_table(cells)],
            ..Study::default()
        },
        Study {
            id: "check-weights".to_owned(),
            title: "What a signature check has to weigh".to_owned(),
            prose: vec![weights_prose()],
            tables: weights_table(cells).into_iter().collect(),
            ..Study::default()
        },
        Study {
            id: "classes".to_owned(),
            title: "Classes and scripts".to_owned(),
            prose: CLASSES
                .iter()
                .map(|class| format!("- `{}`: {}", class.name, class.summary))
                .collect(),
            tables: vec![work_table(cells)],
            ..Study::default()
        },
    ];
    if !measured.outside.is_empty() {
        studies.insert(
            2,
            Study {
                id: "outside".to_owned(),
                title: "Full nodes over RPC".to_owned(),
                prose: vec![outside::prose()],
                tables: vec![outside::table(&measured.outside)],
                ..Study::default()
            },
        );
    }
    studies
}

fn rule_sets(cells: &[Cell]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for cell in cells {
        if !names.contains(&cell.rules) {
            names.push(cell.rules.clone());
        }
    }
    names
}

fn of_rules<'c>(cells: &'c [Cell], rules: &str) -> impl Iterator<Item = &'c Cell> {
    cells.iter().filter(move |cell| cell.rules == rules)
}

/// Each block once, under the first rule set that has it.
fn measured(cells: &[Cell]) -> impl Iterator<Item = &Cell> {
    cells.iter().filter(|cell| !cell.is_known)
}

fn worst<'c>(cells: impl Iterator<Item = &'c Cell>) -> Option<&'c Cell> {
    cells.max_by(|left, right| left.full_s().total_cmp(&right.full_s()))
}

/// Formatted seconds, with `about` for extrapolated ones.
fn seconds(cell: &Cell) -> String {
    let full = cell.full_s();
    let digits = if full < 10.0 { 2 } else { 0 };
    format!("{}{full:.digits$}", if cell.is_full { "" } else { "about " })
}

fn lead(cells: &[Cell]) -> Option<String> {
    let threads = rayon::current_num_threads();
    // Rule sets with the same worst block share a sentence.
    let mut parts: Vec<(String, Vec<String>)> = Vec::new();
    for rules in rule_sets(cells) {
        let cell = worst(of_rules(cells, &rules))?;
        let what = format!("{} s ({})", seconds(cell), cell.class.name);
        match parts.iter_mut().find(|part| part.0 == what) {
            Some(part) => part.1.push(rules),
            None => parts.push((what, vec![rules])),
        }
    }
    let parts: Vec<String> = parts
        .into_iter()
        .map(|(what, rules)| format!("{what} under {}", rules.join(", ")))
        .collect();
    Some(format!(
        "The worst block of those tried takes our engine, on {threads} threads: {}.",
        parts.join("; ")
    ))
}

/// For each rule set the worst class of outputs from before `SegWit`, and the worst class bounded by the weight of the block.
fn chart(cells: &[Cell]) -> StudyChart {
    let groups = rule_sets(cells);
    let is_earlier = |cell: &&Cell| cell.preparation > 0.5;
    let bar = |rules: &String, wanted: bool| {
        let of_kind = of_rules(cells, rules).filter(|cell| is_earlier(cell) == wanted);
        worst(of_kind).map(Cell::full_s)
    };
    let bars = |wanted: bool| groups.iter().map(|rules| bar(rules, wanted)).collect();
    let reference = |rules: &String| {
        let cell = of_rules(cells, rules).find(|cell| cell.class.name == REFERENCE);
        cell.map(Cell::full_s)
    };
    StudyChart {
        title: "Seconds of the worst block that was found, by rule set".to_owned(),
        y_label: format!("s, {} threads", rayon::current_num_threads()),
        bars: vec![
            ("with scripts in earlier blocks".to_owned(), bars(true)),
            ("all scripts in the block".to_owned(), bars(false)),
            (
                "BIP340 checks, each of another signature".to_owned(),
                groups.iter().map(reference).collect(),
            ),
        ],
        groups,
    }
}

fn prose(cells: &[Cell], kernels: &[Kernel]) -> Vec<String> {
    let mut prose = vec![
        "Each cell is a block that was made and verified as a whole by every rule that needs no more of a chain, outputs in memory. Blocks of growing \
         weight are made until the next one would take longer than the plan allows; \"about\" is the time of the heaviest one extended to 4 million \
         weight units by the growth from the one before, and the table has its own weight and time."
            .to_owned(),
        "Scripts of outputs before SegWit do not count in the block that spends them: the column \"earlier blocks\" says how many blocks of outputs an \
         attacker has to make first, by their weight or by their signature operations. Anybody may spend them meanwhile, unless their scripts ask for more."
            .to_owned(),
        "This is the worst that was tried, not a bound: a search over shapes of hashing scripts, and classes that were published (BIP54; Delving Bitcoin \
         710 and 2367)."
            .to_owned(),
    ];
    if kernels.is_empty() {
        prose.push(
            "Bitcoin Core's kernel was not measured: its program was not found. `cd peers/kernel && cargo build --release` builds it.".to_owned(),
        );
    }
    prose.extend(ordinary(cells));
    prose.extend(bip54(cells));
    prose
}

/// Sentence on the typical block, the reference of the table.
fn ordinary(cells: &[Cell]) -> Option<String> {
    let cell = cells.iter().find(|cell| cell.class.name == ORDINARY)?;
    Some(format!(
        "For comparison: `{ORDINARY}`, a block of {} payments of P2WPKH with two inputs each, all of one key, takes {} s. It stands for the blocks of every day, \
         which also have other outputs, data and fewer signatures.",
        count(cell.inputs as u64 / 2),
        seconds(cell),
    ))
}

/// Sentence on signature checks as the remaining cost under BIP54.
fn bip54(cells: &[Cell]) -> Option<String> {
    let today = worst(of_rules(cells, "today"))?;
    let after = worst(of_rules(cells, "bip54"))?;
    Some(format!(
        "BIP54 bounds legacy signature operations of a transaction, not of a block: its worst block here is `{}` with {} checks, {:.1} times faster than \
         today's worst (`{}`); BIP54's text says 40 times.",
        after.class.name,
        count(after.checks * u64::from(BLOCK_WEIGHT) / after.weight.max(1)),
        today.full_s() / after.full_s(),
        today.class.name,
    ))
}

fn by_rules(cells: &[Cell]) -> StudyTable {
    let sets = rule_sets(cells);
    let mut head = vec!["class".to_owned()];
    head.extend(sets.iter().cloned());
    let mut rows = Vec::new();
    for class in CLASSES {
        let cell =
            |rules: &String| of_rules(cells, rules).find(|cell| cell.class.name == class.name);
        if sets.iter().all(|rules| cell(rules).is_none()) {
            continue;
        }
        let text = |rules: &String| cell(rules).map_or_else(none, seconds);
        let mut row = vec![class.name.to_owned()];
        row.extend(sets.iter().map(text));
        rows.push(row);
    }
    let caption = format!(
        "Seconds of a block of 4 million weight units, our engine, {} threads",
        rayon::current_num_threads()
    );
    StudyTable { caption, head, word_columns: 1, rows }
}

fn cells_table(cells: &[Cell]) -> StudyTable {
    let times = |cell: &Cell, class: &str| {
        let other = of_rules(cells, &cell.rules).find(|other| other.class.name == class);
        let times = other.map(|other| format!("{:.2}", cell.full_s() / other.full_s()));
        times.unwrap_or_else(none)
    };
    let seconds = |cell: &&Cell| {
        let Summary { median, min, max, .. } = cell.seconds;
        format!("{median:.3} ({min:.3} to {max:.3})")
    };
    table(
        "Blocks that were made and verified as a whole, each under the first rule set that has it",
        2,
        measured(cells),
        &[
            ("class", &|cell| cell.class.name.to_owned()),
            ("rules", &|cell| cell.rules.clone()),
            ("weight", &|cell| cell.weight.to_string()),
            ("s, all threads", &seconds),
            ("s, one thread", &|cell| format!("{:.3}", cell.seconds_alone)),
            ("times tapscript-checks", &|cell| times(cell, REFERENCE)),
            ("times ordinary", &|cell| times(cell, ORDINARY)),
            ("earlier blocks", &|cell| format!("{:.1}", cell.preparation)),
            ("peak heap, MiB", &|cell| format!("{:.1}", cell.peak_bytes as f64 / 1_048_576.0)),
        ],
    )
}

fn work_table(cells: &[Cell]) -> StudyTable {
    table(
        "What the blocks are full of",
        3,
        measured(cells),
        &[
            ("class", &|cell| cell.class.name.to_owned()),
            ("rules", &|cell| cell.rules.clone()),
            ("script", &|cell| cell.shape.clone()),
            ("inputs", &|cell| cell.inputs.to_string()),
            ("checks", &|cell| cell.checks.to_string()),
            ("hashed, MB", &|cell| format!("{:.1}", cell.hashed_bytes as f64 / 1e6)),
            ("copied, MB", &|cell| format!("{:.1}", cell.copied_bytes as f64 / 1e6)),
        ],
    )
}

fn against_prose(cells: &[Cell]) -> String {
    let mut ratios: Vec<(f64, &Cell)> = Vec::new();
    for cell in measured(cells) {
        if let Some(against) = &cell.against {
            ratios.push((against.kernel_s / against.ours_s, cell));
        }
    }
    ratios.sort_by(|left, right| left.0.total_cmp(&right.0));
    let (Some(least), Some(most)) = (ratios.first(), ratios.last()) else {
        return "No block went to the kernel.".to_owned();
    };
    format!(
        "The scripts of the same block, one thread each, interleaved, on the heaviest block that the kernel does in the time that the plan allows. It takes \
         {:.2} (`{}`) to {:.2} times (`{}`) as long as our engine. A kernel has the rules that it was built with, and judges blocks that are valid under \
         them: `kernel` today's, `kernel-8000` the report's experiment. Its interface copies the outputs that a transaction spends for each input, if \
         one of them is a taproot output; Bitcoin Core's own validation does not, so ratios of transactions with many such inputs are too high.",
        least.0, least.1.class.name, most.0, most.1.class.name
    )
}

fn against_table(cells: &[Cell]) -> StudyTable {
    let compared = measured(cells).filter_map(|cell| Some((cell, cell.against.as_ref()?)));
    table(
        "Scripts of a block, one thread: the kernel's time over ours",
        3,
        compared,
        &[
            ("class", &|(cell, _)| cell.class.name.to_owned()),
            ("rules", &|(cell, _)| cell.rules.clone()),
            ("kernel", &|(_, against)| against.kernel.to_owned()),
            ("weight", &|(_, against)| against.weight.to_string()),
            ("kernel, s", &|(_, against)| format!("{:.3}", against.kernel_s)),
            ("ours, s", &|(_, against)| format!("{:.3}", against.ours_s)),
            ("ratio", &|(_, against)| format!("{:.2}", against.kernel_s / against.ours_s)),
            ("interval", &|(_, against)| against.ratio.as_ref().map_or_else(none, interval)),
        ],
    )
}

fn none() -> String {
    "-".to_owned()
}

/// Weight charged by BIP342 for a check.
const BIP342_WEIGHT: f64 = 50.0;

fn weights_prose() -> String {
    format!(
        "BIP342 charges {BIP342_WEIGHT} weight units for a check of BIP340. A check of another kind that is charged by its time makes no worse block than those: the \
         weight that this takes is given against BIP340 in our engine (`{REFERENCE}`), and against BIP340 in Bitcoin Core's kernel where it was measured. A block's whole \
         time on one thread is shared out over its checks. Signatures by `{}`, hashes by `{}`.",
        assay_engine::backend_name(),
        assay_hash::Backend::detect().name(),
    )
}

/// Microseconds per check: the time of the whole block over its checks.
fn check_us(cell: &Cell) -> Option<f64> {
    (cell.checks > 0).then(|| cell.seconds_alone * 1e6 / cell.checks as f64)
}

/// The same of the kernel, possibly on a lighter block.
fn kernel_check_us(cell: &Cell) -> Option<f64> {
    let against = cell.against.as_ref()?;
    let checks = cell.checks as f64 * against.weight as f64 / cell.weight as f64;
    (checks > 0.0).then(|| against.kernel_s * 1e6 / checks)
}

/// `None` if BIP340 itself was not measured.
fn weights_table(cells: &[Cell]) -> Option<StudyTable> {
    let reference = measured(cells).find(|cell| cell.class.name == REFERENCE)?;
    let here = check_us(reference)?;
    let core = kernel_check_us(reference);
    let weight = |us: f64, of: f64| format!("{:.0}", BIP342_WEIGHT * us / of);
    Some(table(
        "Checks of signatures, one thread",
        2,
        measured(cells).filter_map(|cell| Some((cell, check_us(cell)?))),
        &[
            ("class", &|(cell, _)| cell.class.name.to_owned()),
            ("rules", &|(cell, _)| cell.rules.clone()),
            ("us a check", &|(_, us)| format!("{us:.2}")),
            ("weight in its block", &|(cell, _)| {
                format!("{:.1}", cell.weight as f64 / cell.checks as f64)
            }),
            ("weight against BIP340 here", &|(_, us)| weight(*us, here)),
            ("against BIP340 in Core", &|(_, us)| core.map_or_else(none, |core| weight(*us, core))),
        ],
    ))
}
