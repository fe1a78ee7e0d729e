//! Record of an emission.

use std::collections::BTreeMap;

use assay_report::record::{Figure, Outcome, Record, Unit, bytes, count};
use assay_report::stats::median;

use super::{EmitOptions, EmitTarget};
use crate::chain::Chain;
use crate::machine::new_record;
use crate::results::{BlockRecord, SeenAs};

#[derive(Debug, Default)]
pub(super) struct TargetReport {
    name: String,
    /// Delivery method and address.
    address: String,
    /// First sent block.
    pub(super) from_height: u32,
    /// Reason of an early end; the figures are then partial.
    pub(super) fault: Option<String>,
    pub(super) is_interrupted: bool,
    /// Error responses to transactions.
    pub(super) tx_errors: BTreeMap<String, u64>,
    /// Blocks with times in seconds on one clock.
    pub(super) blocks: Vec<BlockRecord>,
}

impl TargetReport {
    pub(super) fn blank(target: &EmitTarget) -> Self {
        Self { name: target.name.clone(), address: target.to_string(), ..Self::default() }
    }

    fn add_to(&self, record: &mut Record, name: &str) {
        let blocks = &self.blocks;
        record.set(name, &self.address);
        let sum = |of: fn(&BlockRecord) -> u64| Some(blocks.iter().map(of).sum::<u64>() as f64);
        let start = blocks.first().map(|block| block.first_tx_at_s.unwrap_or(block.send_at_s));
        let end = blocks.last().map(|block| block.tip_at_s);
        let services: Vec<f64> = blocks.iter().map(|block| block.service_s).collect();
        let seconds = start.zip(end).map_or(0.0, |(start, end)| end - start);
        record.add(
            (name, "", None),
            &[
                count("first block", self.from_height.into()),
                count("blocks", blocks.len() as u64),
                ("size", Unit::Bytes, sum(|block| block.bytes)),
                ("transactions sent", Unit::Count, sum(|block| block.txs_sent)),
                ("  accepted or requested", Unit::Count, sum(|block| block.txs_accepted)),
                ("  in the mempool", Unit::Count, sum(|block| block.txs_in_mempool)),
                ("  before a parent", Unit::Count, sum(|block| block.orphans)),
                (
                    "requested of compact blocks",
                    Unit::Count,
                    sum(|block| block.relay.as_ref().map_or(0, |relay| relay.missing)),
                ),
                ("first send to last tip", Unit::Seconds, Some(seconds)),
                ("announcement to tip, median", Unit::Seconds, Some(median(&services))),
            ],
        );
        for (error, number) in &self.tx_errors {
            let metric = format!("transactions rejected: {error}");
            record.add((name, "", None), &[count(&metric, *number)]);
        }
        for blocks in blocks.chunk_by(|one, next| one.phase == next.phase) {
            let rows: Vec<_> = blocks.iter().map(columns).collect();
            record.add_series((name, &blocks[0].phase, None), &rows);
        }
        let resume = blocks.last().map_or_else(String::new, |last| {
            format!("; sent up to height {}, --resume goes on", last.height)
        });
        let fault = self.fault.as_ref().map(|fault| format!("{fault}{resume}"));
        let outcome = match fault {
            Some(fault) if self.is_interrupted => Outcome::NotRun(fault),
            // The node has the blocks below the first one sent.
            fault => {
                let below = u64::from(self.from_height).saturating_sub(1);
                Outcome::of(below + blocks.len() as u64, fault)
            }
        };
        record.check(&format!("{name} has all blocks"), outcome);
    }
}

pub(super) fn record(options: &EmitOptions, chain: &Chain, targets: &[TargetReport]) -> Record {
    let place = options.out_dir.clone().unwrap_or_else(std::env::temp_dir);
    let mut record = new_record("emit", &options.software, &options.rerun, &place);
    record.set_all("chain", &chain.header);
    record.set("chain.height", chain.tip.height);
    record.set_all("feed", &options.feed);
    for target in targets {
        let is_same = |other: &&TargetReport| other.name == target.name;
        // Nodes of several hosts may have one port, and hence one name.
        let is_unique = targets.iter().filter(is_same).count() == 1;
        target.add_to(&mut record, if is_unique { &target.name } else { &target.address });
    }
    let complete = targets.iter().filter(|target| target.fault.is_none()).count();
    record.headline = format!("{complete} of {} nodes have all blocks.", targets.len());
    record
}

/// Figures of a block; times are seconds on one clock.
fn columns(block: &BlockRecord) -> [Figure<'static>; 29] {
    let time = |name, time| (name, Unit::Seconds, time);
    let relay = block.relay.as_ref();
    let seen = |kind| relay.filter(|relay| relay.seen_as == Some(kind)).and_then(|r| r.seen_at_s);
    [
        count("height", block.height.into()),
        count("txs", block.txs),
        count("inputs", block.inputs),
        count("outputs", block.outputs),
        bytes("bytes", block.bytes),
        count("signatures", block.signatures),
        count("txs_sent", block.txs_sent),
        count("txs_accepted", block.txs_accepted),
        bytes("txs_sent_bytes", block.txs_sent_bytes),
        count("txs_in_mempool", block.txs_in_mempool),
        count("orphans", block.orphans),
        time("first_tx_at", block.first_tx_at_s),
        time("last_tx_at", block.last_tx_at_s),
        time("send_at", Some(block.send_at_s)),
        time("reply_at", Some(block.reply_at_s)),
        time("tip_at", Some(block.tip_at_s)),
        time("service", Some(block.service_s)),
        time("queue", Some(block.queue_s)),
        time("announced_at", relay.map(|relay| relay.announced_at_s)),
        time("asked_at", relay.and_then(|relay| relay.asked_at_s)),
        time("compact_at", relay.and_then(|relay| relay.compact_at_s)),
        time("missing_asked_at", relay.and_then(|relay| relay.missing_asked_at_s)),
        time("missing_sent_at", relay.and_then(|relay| relay.missing_sent_at_s)),
        ("missing", Unit::Count, relay.map(|relay| relay.missing as f64)),
        ("missing_bytes", Unit::Bytes, relay.map(|relay| relay.missing_bytes as f64)),
        time("block_at", relay.and_then(|relay| relay.block_at_s)),
        time("seen_as_compact_at", seen(SeenAs::Compact)),
        time("seen_as_headers_at", seen(SeenAs::Headers)),
        time("seen_as_inv_at", seen(SeenAs::Inv)),
    ]
}
