//! State shared by all clients of a phase.

use std::time::{Duration, Instant};

use super::LoadOptions;
use super::check::{Checker, Heights};
use super::dataset::Dataset;
use super::feeder::FeedLog;
use super::recorder::{Phase, Recorder, enter};
use super::results::FedBlock;

/// Shared by the clients of a pass; owned by one thread.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) dataset: &'a Dataset,
    pub(crate) options: &'a LoadOptions,
    pub(crate) recorder: Recorder,
    pub(crate) checker: Checker<'a>,
    pub(crate) feed: Option<&'a FeedLog>,
    start: Instant,
    pub(crate) phase: Phase,
    /// True once no new requests are sent.
    pub(crate) is_over: bool,
    /// Highest block announced to any client.
    pub(crate) height: u32,
    pub(crate) subscriptions: u64,
    pub(crate) disconnects: u64,
    pub(crate) software: String,
    pub(crate) protocol: String,
    /// Time of the last notification.
    pub(crate) last_notification_ns: u64,
    blocks: Vec<Sighting>,
}

/// A submitted block and its notification times.
#[derive(Debug, Clone, Copy)]
struct Sighting {
    height: u32,
    submitted_ns: u64,
    first_header_ns: Option<u64>,
    last_header_ns: Option<u64>,
    last_script_ns: Option<u64>,
    scripts: u64,
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        dataset: &'a Dataset,
        options: &'a LoadOptions,
        feed: Option<&'a FeedLog>,
        start: Instant,
    ) -> Self {
        Self {
            dataset,
            options,
            recorder: Recorder::new(),
            checker: Checker::new(dataset),
            feed,
            start,
            phase: Phase::Start,
            is_over: false,
            height: 0,
            subscriptions: 0,
            disconnects: 0,
            software: String::new(),
            protocol: String::new(),
            last_notification_ns: 0,
            blocks: Vec::new(),
        }
    }

    /// Nanoseconds since the start of the pass.
    pub(crate) fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Heights that a response may refer to if the last announced height was `low` at the time of the request.
    pub(crate) fn heights(&self, low: u32) -> Heights {
        Heights { low, high: self.feed.map_or(u32::MAX, FeedLog::submitted).max(low) }
    }

    /// Records a header notification.
    pub(crate) fn saw_header(&mut self, height: u32, now_ns: u64) {
        self.height = self.height.max(height);
        self.last_notification_ns = now_ns;
        self.update_blocks();
        let Some(block) = self.blocks.iter_mut().rev().find(|block| block.height == height) else {
            return;
        };
        block.first_header_ns.get_or_insert(now_ns);
        block.last_header_ns = Some(now_ns);
        let latency = now_ns.saturating_sub(block.submitted_ns);
        enter(&mut self.recorder.header_notifications, latency);
    }

    /// Records a script notification and attributes it to the last submitted block.
    pub(crate) fn saw_script(&mut self, now_ns: u64) {
        self.last_notification_ns = now_ns;
        self.update_blocks();
        let Some(block) = self.blocks.last_mut() else { return };
        block.last_script_ns = Some(now_ns);
        block.scripts += 1;
        let latency = now_ns.saturating_sub(block.submitted_ns);
        enter(&mut self.recorder.script_notifications, latency);
    }

    fn update_blocks(&mut self) {
        let Some(feed) = self.feed else { return };
        let known = self.blocks.last().map(|block| block.height);
        if known.is_some_and(|height| height == feed.submitted()) {
            return;
        }
        let fed = feed.entries();
        for entry in &fed[self.blocks.len().min(fed.len())..] {
            self.blocks.push(Sighting {
                height: entry.height,
                submitted_ns: self.ns_of(entry.submitted),
                first_header_ns: None,
                last_header_ns: None,
                last_script_ns: None,
                scripts: 0,
            });
        }
    }

    fn ns_of(&self, moment: Instant) -> u64 {
        moment.saturating_duration_since(self.start).as_nanos() as u64
    }

    /// Submitted blocks with their notification times.
    pub(crate) fn fed_blocks(&mut self) -> Vec<FedBlock> {
        self.update_blocks();
        let Some(feed) = self.feed else { return Vec::new() };
        feed.entries()
            .iter()
            .zip(&self.blocks)
            .map(|(entry, seen)| {
                let since = |ns: Option<u64>| {
                    ns.map(|ns| milliseconds(ns.saturating_sub(seen.submitted_ns)))
                };
                let reply = entry.replied.saturating_duration_since(entry.submitted);
                FedBlock {
                    height: entry.height,
                    txs: entry.txs,
                    reply_ms: milliseconds(reply.as_nanos() as u64),
                    first_header_ms: since(seen.first_header_ns),
                    last_header_ms: since(seen.last_header_ns),
                    last_script_ms: since(seen.last_script_ns),
                    script_notifications: seen.scripts,
                }
            })
            .collect()
    }
}

/// Nanoseconds as milliseconds, to the microsecond.
fn milliseconds(ns: u64) -> f64 {
    Duration::from_nanos(ns).as_micros() as f64 / 1e3
}
