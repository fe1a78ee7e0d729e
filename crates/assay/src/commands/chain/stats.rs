//! `assay chain stats`.

use std::ops::ControlFlow;
use std::time::Instant;

use anyhow::bail;
use assay_forge::{BlockLine, Ledger};
use assay_report::atomic_file;
use assay_stats::{
    BlockRow, BlockSet, Counts, Heights, InvalidBlock, Item, RangeRow, Ranges, ReadOptions, read,
};

use super::rpc::{self, RpcFigures, Speed};
use super::source;
use super::stats_record::{self, Check, PhaseRow, Report};
use super::tables::TablesWriter;
use crate::Outcome;
use crate::bar::Bar;
use crate::cli::StatsArguments;
use crate::commands::threads;
use crate::output;

/// Maximum number of listed damaged blocks and differences.
const NAMED_MAX: usize = 16;

pub(crate) fn run(arguments: &StatsArguments) -> anyhow::Result<Outcome> {
    if let Some(path) = &arguments.plot
        && !path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("html"))
    {
        bail!("--plot {}: name a file that ends in .html", path.display());
    }
    let ledger = source::ledger(&arguments.blocks, arguments.check.as_deref())?;
    let threads = threads(arguments.threads);
    let start = Instant::now();
    let set =
        source::open(&arguments.blocks, arguments.chain.as_deref(), ledger.as_ref(), threads)?;
    let heights = match arguments.heights {
        Some(asked) => asked.within(set.heights()),
        None => Some(set.heights()),
    };
    let Some(heights) = heights else {
        let Heights { first, last } = set.heights();
        bail!("--heights: the files have heights {first} to {last}");
    };
    let counted = count(arguments, &set, heights, ledger.as_ref(), threads)?;
    let seconds = start.elapsed().as_secs_f64();
    source::report_damage(&counted.damage, counted.damage_count);
    let total = counted.ranges.total().clone();
    let speed = Speed::new(threads, seconds, total.bytes, total.blocks);
    output::complain(&format!(
        "counted {:.1} MB in {:.3} s: {:.1} MB/s, {:.0} blocks/s on {threads} threads",
        total.bytes as f64 / 1e6,
        speed.seconds,
        speed.mb_per_s,
        speed.blocks_per_s
    ));
    let rpc = match (arguments.against_rpc, &arguments.cookie) {
        (Some(address), Some(cookie)) => {
            Some(rpc::measure(address, cookie, arguments.rpc_blocks, &set, &speed)?)
        }
        _ => None,
    };
    let report = report(arguments, &set, counted, (total, speed), rpc);
    print(arguments, &report)?;
    let is_whole = report.damaged_blocks == 0;
    let agrees = report.ledger.as_ref().is_none_or(|check| check.equal)
        && report.rpc.as_ref().is_none_or(|rpc| rpc.equal);
    Ok(if is_whole && agrees { Outcome::Good } else { Outcome::Negative })
}

fn report(
    arguments: &StatsArguments,
    set: &BlockSet,
    counted: Counted,
    (total, speed): (Counts, Speed),
    rpc: Option<RpcFigures>,
) -> Report {
    let (heights, found, (files, file_bytes)) = (set.heights(), set.found(), set.files());
    let heights = arguments.heights.and_then(|asked| asked.within(heights)).unwrap_or(heights);
    Report {
        schema: 1,
        chain: set.params().name,
        first_height: heights.first,
        last_height: heights.last,
        chain_last_height: set.heights().last,
        tip_hash: set.tip().to_string(),
        files,
        file_bytes,
        is_obfuscated: set.is_obfuscated(),
        stale_blocks: found.stale,
        duplicates: found.duplicates,
        unconnected: found.unconnected,
        stray_places: found.stray_count,
        many_inputs: arguments.many,
        total,
        phases: counted.phases,
        ranges: counted.ranges.rows().to_vec(),
        damaged_blocks: counted.damage_count,
        ledger: counted.check,
        speed,
        rpc,
    }
}

fn print(arguments: &StatsArguments, report: &Report) -> anyhow::Result<()> {
    let record = stats_record::record(report);
    if let Some(path) = &arguments.plot {
        atomic_file::write(path, record.page().html().as_bytes())?;
        output::complain(&format!("page: {}", path.display()));
    }
    if arguments.csv {
        output::print(&stats_record::csv(report))?;
    } else if arguments.markdown {
        output::print(&record.page().markdown())?;
    } else {
        output::print_as(arguments.json, report, || record.text())?;
    }
    if let Some(check) = report.ledger.as_ref().filter(|check| !check.equal) {
        for difference in &check.differences {
            output::complain(&format!("ledger: {difference}"));
        }
    }
    Ok(())
}

struct Counted {
    ranges: Ranges,
    phases: Vec<PhaseRow>,
    check: Option<Check>,
    damage: Vec<InvalidBlock>,
    damage_count: u64,
}

fn count(
    arguments: &StatsArguments,
    set: &BlockSet,
    heights: Heights,
    ledger: Option<&Ledger>,
    threads: usize,
) -> anyhow::Result<Counted> {
    let txs = arguments.tables.is_some();
    let options = ReadOptions { threads, many_inputs: arguments.many, txs };
    let mut writer = arguments.tables.as_deref().map(TablesWriter::create).transpose()?;
    let (bar, bytes) = (
        Bar::new("counting [{bar:25}] {bytes}/{total_bytes}  {bytes_per_sec}  ETA {eta}"),
        set.bytes(heights),
    );
    let mut counted = Counted {
        ranges: Ranges::new(heights, arguments.range),
        phases: Vec::new(),
        check: None,
        damage: Vec::new(),
        damage_count: 0,
    };
    let mut checker = ledger.map(Checker::new);
    let mut failed = None;
    read(set, heights, &options, &mut |item| {
        let written = match item {
            Item::Txs(rows) => writer.as_mut().map_or(Ok(()), |writer| writer.txs(&rows)),
            Item::Block(row) => {
                counted.ranges.add(&row);
                bar.set(counted.ranges.total().bytes, bytes);
                if let Some(checker) = &mut checker {
                    checker.block(&row, &mut counted.phases);
                }
                writer.as_mut().map_or(Ok(()), |writer| writer.block(&row))
            }
            Item::Damage(damage) => {
                counted.damage_count += 1;
                if counted.damage.len() < NAMED_MAX {
                    counted.damage.push(*damage);
                }
                Ok(())
            }
        };
        match written {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    drop(bar);
    if let Some(error) = failed {
        return Err(error.into());
    }
    if let (Some(writer), Some(dir)) = (writer, &arguments.tables) {
        let bytes = writer.finish()?;
        output::complain(&format!("tables: {}, {:.1} MB", dir.display(), bytes as f64 / 1e6));
    }
    let is_whole = arguments.heights.is_none();
    counted.check = checker.map(|checker| checker.end(counted.ranges.total(), is_whole));
    Ok(counted)
}

/// Compares blocks with the lines of a ledger.
struct Checker<'l> {
    ledger: &'l Ledger,
    check: Check,
    /// Sums of the blocks below the ledger's first block, that is, of genesis.
    before: Counts,
}

impl<'l> Checker<'l> {
    fn new(ledger: &'l Ledger) -> Self {
        Self { ledger, check: Check::default(), before: Counts::default() }
    }

    fn block(&mut self, row: &BlockRow, phases: &mut Vec<PhaseRow>) {
        if row.height == 0 {
            self.before.add(&row.counts);
            return;
        }
        let Some(line) = self.ledger.blocks.get(row.height as usize - 1) else {
            self.differ(format!("has no block at height {}", row.height));
            return;
        };
        self.check.blocks += 1;
        self.compare(row, line);
        let name = line.phase.to_string();
        if let Some(phase) = phases.last_mut().filter(|phase| phase.phase == name) {
            phase.range.last = row.height;
            phase.range.counts.add(&row.counts);
        } else {
            let (first, last, counts) = (row.height, row.height, row.counts.clone());
            phases.push(PhaseRow { phase: name, range: RangeRow { first, last, counts } });
        }
    }

    fn compare(&mut self, row: &BlockRow, line: &BlockLine) {
        let counts = &row.counts;
        if row.hash.to_string() != line.hash {
            self.differ(format!("height {}: block {}, not {}", row.height, line.hash, row.hash));
            return;
        }
        for (what, ours, theirs) in [
            ("height", u64::from(row.height), u64::from(line.height)),
            ("time", u64::from(row.time), u64::from(line.time)),
            ("bytes", counts.bytes, line.bytes),
            ("weight", counts.weight, line.weight),
            ("transactions", counts.txs, line.txs),
            ("inputs", counts.inputs, line.inputs),
            ("outputs", counts.outputs, line.outputs),
        ] {
            if ours != theirs {
                self.differ(format!("height {}: {theirs} {what}, not {ours}", row.height));
            }
        }
    }

    fn differ(&mut self, difference: String) {
        self.check.difference_count += 1;
        if self.check.differences.len() < NAMED_MAX {
            self.check.differences.push(difference);
        }
    }

    /// Compares the sums too if the whole chain was read, and checks that no block is missing.
    fn end(mut self, total: &Counts, is_whole: bool) -> Check {
        if !is_whole {
            self.check.equal = self.check.difference_count == 0;
            return self.check;
        }
        let (tip, before) = (&self.ledger.tip, &self.before);
        let sums = [
            ("blocks", total.blocks - before.blocks, self.ledger.blocks.len() as u64),
            ("transactions", total.txs - before.txs, tip.txs),
            ("inputs", total.inputs - before.inputs, tip.inputs),
            ("outputs", total.outputs - before.outputs, tip.outputs),
            ("bytes", total.bytes - before.bytes, tip.bytes),
        ];
        for (what, ours, theirs) in sums {
            if ours != theirs {
                self.differ(format!("in all {theirs} {what}, not {ours}"));
            }
        }
        self.check.equal = self.check.difference_count == 0;
        self.check
    }
}
