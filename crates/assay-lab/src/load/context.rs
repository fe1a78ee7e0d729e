//! State shared by all clients of a phase.

use std::time::Instant;

use super::LoadOptions;
use super::check::{Checker, Heights};
use super::dataset::Dataset;
use super::feeder::FeedLog;
use super::recorder::{Phase, Recorder};

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
    pub(crate) last_notification_ns: u64,
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

    pub(crate) fn saw_header(&mut self, height: u32, now_ns: u64) {
        self.height = self.height.max(height);
        self.last_notification_ns = now_ns;
        let Some(feed) = self.feed else { return };
        let mut blocks = feed.blocks();
        let Some(block) = blocks.iter_mut().rfind(|block| block.height == height) else { return };
        let since_ns = now_ns.saturating_sub(self.ns_of(block.submitted));
        block.first_header_ns.get_or_insert(since_ns);
        block.last_header_ns = Some(since_ns);
        self.recorder.header_notifications.saturating_record(since_ns);
    }

    /// Records a script notification and attributes it to the last submitted block.
    pub(crate) fn saw_script(&mut self, now_ns: u64) {
        self.last_notification_ns = now_ns;
        let Some(feed) = self.feed else { return };
        let mut blocks = feed.blocks();
        let Some(block) = blocks.last_mut() else { return };
        let since_ns = now_ns.saturating_sub(self.ns_of(block.submitted));
        block.last_script_ns = Some(since_ns);
        block.script_notifications += 1;
        self.recorder.script_notifications.saturating_record(since_ns);
    }

    fn ns_of(&self, moment: Instant) -> u64 {
        moment.saturating_duration_since(self.start).as_nanos() as u64
    }
}
