//! One pass: all clients connect, then send requests without and with blocks.

use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use clap::ValueEnum as _;
use mio::{Events, Poll, Token, Waker};

use super::check::Heights;
use super::client::Client;
use super::context::Context;
use super::dataset::Dataset;
use super::feeder::{FeedLog, feed};
use super::hostile::{Attack, HostileClients};
use super::recorder::{Phase, Place};
use super::report::Ended;
use super::{LoadOptions, SYSTEM, memory, run_first, run_last};
use crate::chain::Chain;
use crate::process::sample;
use crate::progress::Interrupted;
use crate::swarm::{AttackReport, Server, Swarm};

/// Concurrent connection attempts: more would overflow the server's queue and wait for TCP retries.
const CONNECTING_MAX: usize = 32;
/// Longest wait for all clients to be ready, plus a millisecond per subscription.
const READY_TIMEOUT: Duration = Duration::from_mins(1);
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Time without notifications after the last block that ends the wait.
const QUIET: Duration = Duration::from_millis(1500);
/// Longest wait for that.
const QUIET_TIMEOUT: Duration = Duration::from_mins(2);
/// Time that hostile clients run before a measurement starts.
const HOSTILE_LEAD: Duration = Duration::from_secs(2);
const POLL_MAX: Duration = Duration::from_millis(10);
/// Minimum time between wake-ups by the timer thread.
const TICK_MIN: Duration = Duration::from_micros(200);
const EVENTS: usize = 1024;

#[derive(Debug)]
pub(crate) struct Pass<'a> {
    pub(crate) place: Place<'a>,
    pub(crate) options: &'a LoadOptions,
    pub(crate) dataset: &'a Dataset,
    pub(crate) chain: Option<&'a Chain>,
    pub(crate) server: &'a Server,
    pub(crate) honest: usize,
    pub(crate) hostile: usize,
    /// Submitted blocks, if there are any.
    pub(crate) log: Option<FeedLog>,
    pub(crate) stop: &'a AtomicBool,
}

impl Pass<'_> {
    pub(crate) fn run(&self) -> anyhow::Result<Ended<'_>> {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let guard = StopOnDrop(&over);
            let memory = scope.spawn(|| memory::watch(self.options, &over));
            let hostile = if self.hostile > 0 {
                let clients = HostileClients::new(self.dataset, self.options.seed);
                let attacks = match self.options.attacks.as_slice() {
                    [] => Attack::value_variants(),
                    some => some,
                };
                let swarm = Swarm::new(clients, self.server.clone(), self.hostile, attacks);
                Some(scope.spawn(|| {
                    run_last();
                    swarm.run(&over)
                }))
            } else {
                None
            };
            let mut driver = Driver::new(self)?;
            driver.start()?;
            if hostile.is_some() {
                driver.run_for(HOSTILE_LEAD)?;
            }
            driver.measure(Phase::Idle)?;
            if let (Some(feed_options), Some(log), Some(chain)) =
                (&self.options.feed, &self.log, self.chain)
            {
                let stop_feeding = AtomicBool::new(false);
                thread::scope(|inner| {
                    let _stop = StopOnDrop(&stop_feeding);
                    let feeder = inner.spawn(|| feed(feed_options, chain, log, &stop_feeding));
                    let measured = driver.measure(Phase::Blocks);
                    stop_feeding.store(true, Ordering::Relaxed);
                    // The last block may take long: later requests would belong to no phase.
                    driver.cx.is_over = true;
                    while !feeder.is_finished() && measured.is_ok() {
                        driver.turn()?;
                    }
                    let fed = feeder.join().map_err(|_| panicked())?;
                    measured.and(fed)
                })?;
            }
            driver.drain()?;
            drop(guard);
            let attacks = match hostile {
                Some(thread) => thread.join().map_err(|_| panicked())?,
                None => Vec::new(),
            };
            Ok(driver.end(attacks, memory.join().unwrap_or_default()))
        })
    }
}

fn panicked() -> anyhow::Error {
    anyhow!("a thread of the generator panicked")
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The event loop of all honest clients.
struct Driver<'a> {
    pass: &'a Pass<'a>,
    cx: Context<'a>,
    clients: Vec<Client>,
    poll: Poll,
    events: Events,
    waker: Arc<Waker>,
    /// Subscriptions made while the clients connected, and the seconds that it took.
    start: (u64, f64),
    /// True if the requesting thread had real-time priority.
    is_first: bool,
}

impl<'a> Driver<'a> {
    fn new(pass: &'a Pass<'a>) -> anyhow::Result<Self> {
        let poll = Poll::new().context(SYSTEM)?;
        let waker = Waker::new(poll.registry(), Token(usize::MAX)).context(SYSTEM)?;
        let cx = Context::new(pass.dataset, pass.options, pass.log.as_ref(), Instant::now());
        let clients = (0..pass.honest).map(|number| Client::new(number, &cx)).collect();
        Ok(Self {
            pass,
            cx,
            clients,
            poll,
            events: Events::with_capacity(EVENTS),
            waker: Arc::new(waker),
            start: (0, 0.0),
            is_first: false,
        })
    }

    fn start(&mut self) -> anyhow::Result<()> {
        let begin = Instant::now();
        let subscriptions = self.clients.len() * self.pass.options.subscriptions;
        let timeout = READY_TIMEOUT + Duration::from_millis(subscriptions as u64);
        loop {
            self.turn()?;
            let ready = self.clients.iter().filter(|client| client.is_ready()).count();
            if ready == self.clients.len() {
                break;
            }
            if begin.elapsed() > timeout || (ready == 0 && self.cx.disconnects > 64) {
                let errors = self.cx.recorder.errors(Phase::Start).keys().take(4);
                let errors = errors.map(String::as_str).collect::<Vec<_>>().join("; ");
                let (of, seconds) = (self.clients.len(), begin.elapsed().as_secs());
                bail!(
                    "{ready} of {of} clients were ready after {seconds} s; among the errors: {errors}"
                );
            }
        }
        let seconds = begin.elapsed().as_secs_f64();
        self.cx.recorder.end(Phase::Start, seconds, None, None);
        self.start = (self.cx.subscriptions, seconds);
        Ok(())
    }

    fn run_for(&mut self, duration: Duration) -> anyhow::Result<()> {
        let end = Instant::now() + duration;
        while Instant::now() < end {
            self.turn()?;
        }
        Ok(())
    }

    fn measure(&mut self, phase: Phase) -> anyhow::Result<()> {
        let options = self.pass.options;
        self.cx.phase = phase;
        let server_before = options.server_pid.and_then(sample::cpu_s);
        let own_before = sample::cpu_s(std::process::id());
        let begin = Instant::now();
        // On its own thread: other work must not have priority over the server.
        self.is_first = thread::scope(|scope| {
            let asking = scope.spawn(|| {
                // Without a rate it would take a core from the server.
                let is_first = self.pass.options.rate.is_some() && run_first();
                self.ask_all(begin).map(|()| is_first)
            });
            asking.join().map_err(|_| panicked())?
        })?;
        let spent = |before: Option<f64>, now: Option<f64>| Some(now? - before?);
        let server = spent(server_before, options.server_pid.and_then(sample::cpu_s));
        let own = spent(own_before, sample::cpu_s(std::process::id()));
        self.cx.recorder.end(phase, begin.elapsed().as_secs_f64(), server, own);
        Ok(())
    }

    /// Sends requests for the configured duration.
    fn ask_all(&mut self, begin: Instant) -> anyhow::Result<()> {
        let options = self.pass.options;
        if let Some(rate) = options.rate {
            return self.ask_at_rate(rate, begin);
        }
        for client in &mut self.clients {
            client.pump_and_flush(&mut self.cx);
        }
        self.run_for(options.seconds)
    }

    /// Request number *n* is due *n* periods after the start, independent of earlier responses.
    fn ask_at_rate(&mut self, rate: f64, begin: Instant) -> anyhow::Result<()> {
        let period = Duration::from_secs_f64(1.0 / rate);
        let begin_ns = self.cx.now_ns().saturating_sub(begin.elapsed().as_nanos() as u64);
        let period_ns = 1e9 / rate;
        let total = (self.pass.options.seconds.as_secs_f64() * rate) as u64;
        let is_over = AtomicBool::new(false);
        let waker = Arc::clone(&self.waker);
        thread::scope(|scope| {
            let _stop = StopOnDrop(&is_over);
            let is_over = &is_over;
            scope.spawn(move || {
                let pause = period.max(TICK_MIN);
                let mut due = begin;
                while !is_over.load(Ordering::Relaxed) {
                    // Missed wake-ups are skipped; the next one is in step again.
                    let missed = Instant::now().saturating_duration_since(due).as_nanos();
                    due += pause * (missed / pause.as_nanos() + 1) as u32;
                    thread::sleep(due.saturating_duration_since(Instant::now()));
                    // On failure the loop's own time-out follows later.
                    let _ = waker.wake();
                }
            });
            let mut number = 0_u64;
            while number < total {
                let now_ns = self.cx.now_ns();
                let mut due_ns = begin_ns + (number as f64 * period_ns) as u64;
                while due_ns <= now_ns && number < total {
                    self.cx.recorder.lag.saturating_record(now_ns - due_ns);
                    self.ask(number, due_ns);
                    number += 1;
                    due_ns = begin_ns + (number as f64 * period_ns) as u64;
                }
                self.turn()?;
            }
            Ok(())
        })
    }

    fn ask(&mut self, number: u64, due_ns: u64) {
        let index = (number % self.clients.len() as u64) as usize;
        if !self.clients[index].ask_due(due_ns, &mut self.cx) {
            let phase = self.cx.phase;
            self.cx.recorder.error(phase, "no connection to ask on".to_owned());
            self.cx.recorder.unanswered(phase, 0);
        }
    }

    /// Waits for requests in flight and the last notifications.
    fn drain(&mut self) -> anyhow::Result<()> {
        self.cx.is_over = true;
        let begin = Instant::now();
        while begin.elapsed() < DRAIN_TIMEOUT && self.clients.iter().any(Client::is_waiting) {
            self.turn()?;
        }
        if self.cx.feed.is_some_and(|feed| !feed.blocks().is_empty()) {
            let begin = Instant::now();
            let begin_ns = self.cx.now_ns();
            while begin.elapsed() < QUIET_TIMEOUT {
                let last_ns = self.cx.last_notification_ns.max(begin_ns);
                if self.cx.now_ns() - last_ns > QUIET.as_nanos() as u64 {
                    break;
                }
                self.turn()?;
            }
        }
        for client in &mut self.clients {
            client.count_unanswered(&mut self.cx);
        }
        Ok(())
    }

    /// One iteration: due connections, then socket events.
    fn turn(&mut self) -> anyhow::Result<()> {
        if self.pass.stop.load(Ordering::Relaxed) {
            return Err(Interrupted.into());
        }
        self.make_connections();
        match self.poll.poll(&mut self.events, Some(POLL_MAX)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            other => other.context(SYSTEM)?,
        }
        for event in &self.events {
            if let Some(client) = self.clients.get_mut(event.token().0) {
                client.on_event(event.is_readable() || event.is_error(), &mut self.cx);
            }
        }
        Ok(())
    }

    fn make_connections(&mut self) {
        let now_ns = self.cx.now_ns();
        let connecting = self.clients.iter().filter(|client| client.is_connecting()).count();
        let places = CONNECTING_MAX.saturating_sub(connecting);
        let due = self.clients.iter_mut().enumerate();
        for (index, client) in
            due.filter(|(_, client)| client.wants_connection(now_ns)).take(places)
        {
            if let Err(error) = client.connect(self.pass.server, self.poll.registry(), index) {
                client.lose(&error, &mut self.cx);
            }
        }
    }

    /// Checks the last status of each subscription against the last block.
    fn end(mut self, attacks: Vec<AttackReport>, memory_bytes: [Option<u64>; 2]) -> Ended<'a> {
        let cx = &mut self.cx;
        let height = cx.feed.map_or(cx.height, FeedLog::submitted);
        let answers = mem::take(&mut cx.checker.counts);
        for (script, status) in self.clients.iter().flat_map(Client::statuses) {
            cx.checker.check_status(*script, status, Heights { low: height, high: height });
        }
        let subscriptions = mem::replace(&mut cx.checker.counts, answers);
        Ended {
            place: self.pass.place,
            clients: [self.pass.honest, self.pass.hostile],
            cx: self.cx,
            start: self.start,
            subscriptions,
            height,
            is_first: self.is_first,
            attacks,
            memory_bytes,
        }
    }
}
