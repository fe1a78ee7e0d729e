//! A well-behaved client: sends requests, checks every response, and follows its subscriptions.

use std::collections::{HashMap, VecDeque};
use std::io;

use assay_report::stats::random::SplitMix64;
use mio::{Interest, Registry, Token};
use serde_json::value::RawValue;

use super::context::Context;
use super::mix::{self, Mix, Step};
use super::protocol::{Ask, Line, SUBSCRIBE_BATCH, error_kind, parse_line, write_batch};
use super::recorder::Phase;
use crate::electrum::{HeaderTip, Message};
use crate::swarm::link::Link;
use crate::swarm::{Server, source};

/// Requests in flight while a client subscribes to many scripts.
const START_DEPTH: usize = 64;
/// Delay before a client reconnects.
const RETRY_NS: u64 = 1_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Disconnected; reconnects at this time.
    Away(u64),
    Connecting,
    /// Waits for the server's version.
    Greeting,
    Starting,
    Ready,
}

/// A request in flight.
#[derive(Debug, Clone, Copy)]
struct Pending {
    ask: Ask,
    /// Start of its latency.
    due_ns: u64,
    sent_ns: u64,
    phase: Phase,
    /// Last announced height at the time of sending.
    height: u32,
    /// True if more of the same batch follows.
    is_continued: bool,
}

impl Pending {
    fn answered(
        self,
        method: &'static str,
        message: &Message<'_>,
        now_ns: u64,
        cx: &mut Context<'_>,
    ) {
        let since_due_ns = now_ns.saturating_sub(self.due_ns);
        let since_sent_ns = now_ns.saturating_sub(self.sent_ns);
        let is_error = message.error.is_some();
        cx.recorder.answer(self.phase, method, since_due_ns, since_sent_ns, is_error);
    }
}

#[derive(Debug)]
pub(crate) struct Client {
    link: Option<Link>,
    stage: Stage,
    pending: VecDeque<Option<Pending>>,
    /// Id of the first request in `pending`.
    first_id: u64,
    steps_out: usize,
    plan: VecDeque<Step>,
    rng: SplitMix64,
    /// Scripts of a client of the mix `subscribe`.
    own: Vec<u32>,
    /// Subscriptions with the last status as JSON text.
    statuses: HashMap<u32, String>,
    counted: (u64, u64),
}

impl Client {
    pub(crate) fn new(number: usize, cx: &Context<'_>) -> Self {
        let mut rng = SplitMix64::new(cx.options.seed ^ (number as u64 + 1) << 20);
        let dataset = cx.dataset;
        let mut own = Vec::new();
        if cx.options.mix == Mix::Subscribe {
            // Every second script is unused, as most of a wallet's are.
            own.extend((0..cx.options.subscriptions).map(|index| {
                let from = if index % 2 == 0 || dataset.used.is_empty() {
                    &dataset.unused
                } else {
                    &dataset.used
                };
                mix::pick(from, &mut rng)
            }));
            own.sort_unstable();
            own.dedup();
        }
        Self {
            link: None,
            stage: Stage::Away(0),
            pending: VecDeque::new(),
            first_id: 0,
            steps_out: 0,
            plan: VecDeque::new(),
            rng,
            own,
            statuses: HashMap::new(),
            counted: (0, 0),
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.stage == Stage::Ready
    }

    pub(crate) fn wants_connection(&self, now_ns: u64) -> bool {
        matches!(self.stage, Stage::Away(at) if at <= now_ns)
    }

    pub(crate) fn is_connecting(&self) -> bool {
        self.stage == Stage::Connecting
    }

    /// True if responses are due.
    pub(crate) fn is_waiting(&self) -> bool {
        self.steps_out > 0
    }

    /// Starts to connect; events of the socket have the token `number`.
    pub(crate) fn connect(
        &mut self,
        server: &Server,
        registry: &Registry,
        number: usize,
    ) -> io::Result<()> {
        let mut link = server.link(source::honest(number))?;
        registry.register(&mut link.tcp, Token(number), Interest::READABLE | Interest::WRITABLE)?;
        self.link = Some(link);
        self.stage = Stage::Connecting;
        Ok(())
    }

    pub(crate) fn on_event(&mut self, is_readable: bool, cx: &mut Context<'_>) {
        let outcome = self.work(is_readable, cx);
        self.count_bytes(cx);
        if let Err(error) = outcome {
            self.lose(&error, cx);
        }
    }

    fn work(&mut self, is_readable: bool, cx: &mut Context<'_>) -> io::Result<()> {
        let Some(link) = &mut self.link else { return Ok(()) };
        if self.stage == Stage::Connecting {
            if !link.is_open()? {
                return Ok(());
            }
            self.stage = Stage::Greeting;
            self.send(Step::One(Ask::Version), cx.now_ns(), cx);
        }
        let mut is_open = true;
        if is_readable {
            if let Some(link) = &mut self.link {
                is_open = link.fill()?;
            }
            self.read_lines(cx);
        }
        self.pump(cx);
        self.flush()?;
        if is_open { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.link {
            Some(link) if link.wants_flush() => link.flush(),
            _ => Ok(()),
        }
    }

    /// Sends a request that is due at a fixed rate; `false` without a connection.
    pub(crate) fn ask_due(&mut self, due_ns: u64, cx: &mut Context<'_>) -> bool {
        if self.stage != Stage::Ready {
            return false;
        }
        let ask = mix::draw(cx.options.mix, cx.dataset, &mut self.rng, cx.height, &self.own);
        self.send(Step::One(ask), due_ns, cx);
        self.flush_or_lose(cx);
        true
    }

    pub(crate) fn pump_and_flush(&mut self, cx: &mut Context<'_>) {
        self.pump(cx);
        self.flush_or_lose(cx);
    }

    fn flush_or_lose(&mut self, cx: &mut Context<'_>) {
        if let Err(error) = self.flush() {
            self.lose(&error, cx);
        }
    }

    fn pump(&mut self, cx: &mut Context<'_>) {
        loop {
            let depth = match self.stage {
                Stage::Starting => START_DEPTH,
                Stage::Ready => cx.options.depth,
                _ => return,
            };
            if cx.is_over {
                self.plan.clear();
                return;
            }
            if self.steps_out >= depth {
                return;
            }
            if self.plan.is_empty() {
                if self.stage == Stage::Starting {
                    if self.steps_out == 0 {
                        self.stage = Stage::Ready;
                        continue;
                    }
                    return;
                }
                self.refill(cx);
            }
            let Some(step) = self.plan.pop_front() else { return };
            self.send(step, cx.now_ns(), cx);
        }
    }

    /// Without a rate, plans the next request after all responses.
    fn refill(&mut self, cx: &Context<'_>) {
        if cx.options.rate.is_some() || cx.phase == Phase::Start {
            return;
        }
        if cx.options.mix == Mix::Wallet {
            if self.steps_out == 0 {
                let former: Vec<Ask> =
                    self.statuses.keys().map(|script| Ask::Unsubscribe(*script)).collect();
                if !former.is_empty() {
                    self.plan.push_back(Step::Batch(former));
                }
                mix::session(cx.dataset, &mut self.rng, cx.height, &mut self.plan);
            }
        } else {
            let ask = mix::draw(cx.options.mix, cx.dataset, &mut self.rng, cx.height, &self.own);
            self.plan.push_back(Step::One(ask));
        }
    }

    fn send(&mut self, step: Step, due_ns: u64, cx: &Context<'_>) {
        let Some(link) = &mut self.link else { return };
        let id = self.first_id + self.pending.len() as u64;
        let (phase, height, sent_ns) = (cx.phase, cx.height, cx.now_ns());
        let pending =
            |ask, is_continued| Some(Pending { ask, due_ns, sent_ns, phase, height, is_continued });
        match step {
            Step::One(ask) => {
                link.compose(|out| ask.write_line(id, cx.dataset, out));
                self.pending.push_back(pending(ask, false));
            }
            Step::Batch(asks) => {
                let write = |index: u64, out: &mut Vec<u8>| {
                    asks[index as usize].write(id + index, cx.dataset, out);
                };
                link.compose(|out| write_batch(asks.len() as u64, out, write));
                let last = asks.len() - 1;
                let all = asks.into_iter().enumerate();
                self.pending.extend(all.map(|(index, ask)| pending(ask, index < last)));
            }
        }
        self.steps_out += 1;
    }

    fn read_lines(&mut self, cx: &mut Context<'_>) {
        // Moved out meanwhile: lines borrow from it while the rest of the client changes.
        let Some(mut link) = self.link.take() else { return };
        let now_ns = cx.now_ns();
        while let Some(place) = link.next_line() {
            match parse_line(link.line(place)) {
                Ok(Line::One(message)) if message.method.is_some() => {
                    self.notified(&message, now_ns, cx);
                }
                Ok(Line::One(message)) => self.answered(&message, now_ns, cx),
                Ok(Line::Batch(messages)) => self.batch_answered(&messages, now_ns, cx),
                Err(_) => cx.recorder.error(cx.phase, "a line that is no message".to_owned()),
            }
        }
        self.link = Some(link);
    }

    fn answered(&mut self, message: &Message<'_>, now_ns: u64, cx: &mut Context<'_>) {
        let Some(pending) = message.id.and_then(|id| self.take(id)) else {
            let kind = error_kind(message).unwrap_or_else(|| "a result".to_owned());
            cx.recorder.error(cx.phase, format!("not asked for: {kind}"));
            // A batch rejected as a whole has no id.
            if message.error.is_some() {
                self.give_up_batch(now_ns, cx);
            }
            return;
        };
        pending.answered(pending.ask.method(), message, now_ns, cx);
        self.judge(pending, message, cx);
    }

    fn batch_answered(&mut self, messages: &[Message<'_>], now_ns: u64, cx: &mut Context<'_>) {
        let mut is_first = true;
        for message in messages {
            let Some(pending) = message.id.and_then(|id| self.take(id)) else {
                cx.recorder.error(cx.phase, "not asked for: part of a batch".to_owned());
                continue;
            };
            if is_first {
                let method = match pending.ask {
                    Ask::Subscribe(_) => SUBSCRIBE_BATCH,
                    other => other.method(),
                };
                pending.answered(method, message, now_ns, cx);
                is_first = false;
            }
            self.judge(pending, message, cx);
        }
    }

    /// Removes a request from those in flight.
    fn take(&mut self, id: u64) -> Option<Pending> {
        let index = id.checked_sub(self.first_id)? as usize;
        let pending = self.pending.get_mut(index)?.take()?;
        while let Some(None) = self.pending.front() {
            self.pending.pop_front();
            self.first_id += 1;
        }
        if !pending.is_continued {
            self.steps_out -= 1;
        }
        Some(pending)
    }

    fn give_up_batch(&mut self, now_ns: u64, cx: &mut Context<'_>) {
        let is_batch = |slot: &Option<Pending>| slot.is_some_and(|pending| pending.is_continued);
        let Some(start) = self.pending.iter().position(is_batch) else { return };
        let mut id = self.first_id + start as u64;
        while let Some(pending) = self.take(id) {
            id += 1;
            if !pending.is_continued {
                cx.recorder.unanswered(pending.phase, now_ns.saturating_sub(pending.due_ns));
                return;
            }
        }
    }

    /// Checks a response and handles its consequences.
    fn judge(&mut self, pending: Pending, message: &Message<'_>, cx: &mut Context<'_>) {
        if let Some(kind) = error_kind(message) {
            let method = pending.ask.method();
            cx.recorder.error(pending.phase, format!("{method}: {kind}"));
            if self.stage == Stage::Greeting {
                self.start(cx);
            }
            return;
        }
        let result = message.result_text();
        let heights = cx.heights(pending.height);
        cx.checker.check(pending.ask, result, heights);
        match pending.ask {
            Ask::Version => {
                if let Ok((software, protocol)) = serde_json::from_str(result) {
                    (cx.software, cx.protocol) = (software, protocol);
                }
                self.start(cx);
            }
            Ask::Tip => {
                if let Ok(tip) = serde_json::from_str::<HeaderTip>(result) {
                    cx.height = cx.height.max(tip.height);
                }
            }
            Ask::Subscribe(script) => {
                cx.subscriptions += 1;
                self.statuses.insert(script, result.to_owned());
                if cx.options.mix == Mix::Wallet && result != "null" {
                    mix::follow_up(script, &mut self.plan);
                }
            }
            Ask::Unsubscribe(script) => {
                self.statuses.remove(&script);
            }
            Ask::History(script) if cx.options.mix == Mix::Wallet && cx.options.rate.is_none() => {
                mix::after_history(cx.dataset, script, cx.height, &mut self.plan);
            }
            _ => {}
        }
    }

    /// First requests after the server's version.
    fn start(&mut self, cx: &Context<'_>) {
        self.stage = Stage::Starting;
        if cx.options.mix == Mix::Wallet {
            mix::session(cx.dataset, &mut self.rng, cx.height, &mut self.plan);
        } else {
            self.plan.push_back(Step::One(Ask::Tip));
        }
        self.plan.extend(self.own.iter().map(|script| Step::One(Ask::Subscribe(*script))));
    }

    fn notified(&mut self, message: &Message<'_>, now_ns: u64, cx: &mut Context<'_>) {
        let params = message.params.map_or("null", RawValue::get);
        match message.method.as_deref() {
            Some("blockchain.headers.subscribe") => {
                if let Ok([tip]) = serde_json::from_str::<[HeaderTip; 1]>(params) {
                    cx.saw_header(tip.height, now_ns);
                }
            }
            Some("blockchain.scripthash.subscribe") => {
                let Ok((hash, status)) = serde_json::from_str::<(&str, &RawValue)>(params) else {
                    cx.recorder.error(cx.phase, "a notification of another form".to_owned());
                    return;
                };
                let Some(script) = cx.dataset.script(hash) else {
                    cx.recorder.error(cx.phase, "a notification of another script".to_owned());
                    return;
                };
                cx.saw_script(now_ns);
                // It may lag behind headers announced to others, so any height may be correct.
                let heights = cx.heights(0);
                cx.checker.check_status(script, status.get(), heights);
                if let Some(known) = self.statuses.get_mut(&script) {
                    status.get().clone_into(known);
                    if cx.options.mix == Mix::Wallet {
                        mix::follow_up(script, &mut self.plan);
                    }
                }
            }
            _ => {}
        }
    }

    fn count_bytes(&mut self, cx: &mut Context<'_>) {
        let Some(link) = &self.link else { return };
        let (bytes_in, bytes_out) = self.counted;
        cx.recorder.bytes(cx.phase, link.bytes_in - bytes_in, link.bytes_out - bytes_out);
        self.counted = (link.bytes_in, link.bytes_out);
    }

    /// Handles a lost connection and schedules the next one.
    pub(crate) fn lose(&mut self, error: &io::Error, cx: &mut Context<'_>) {
        self.link = None;
        self.counted = (0, 0);
        let now_ns = cx.now_ns();
        if !cx.is_over {
            cx.disconnects += 1;
            cx.recorder.error(cx.phase, format!("connection lost: {}", error.kind()));
        }
        self.count_unanswered(cx);
        self.first_id += self.pending.len() as u64;
        self.pending.clear();
        self.plan.clear();
        self.statuses.clear();
        self.steps_out = 0;
        self.stage = Stage::Away(now_ns + RETRY_NS);
    }

    pub(crate) fn count_unanswered(&mut self, cx: &mut Context<'_>) {
        let now_ns = cx.now_ns();
        for pending in self.pending.iter().flatten().filter(|pending| !pending.is_continued) {
            cx.recorder.unanswered(pending.phase, now_ns.saturating_sub(pending.due_ns));
        }
    }

    /// Subscribed scripts with the last status as JSON text.
    pub(crate) const fn statuses(&self) -> &HashMap<u32, String> {
        &self.statuses
    }
}
