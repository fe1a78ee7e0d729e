//! Status line on the terminal during the initial block download.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use assay_engine::{Engine, Gauges, Stage};
use assay_node::{Node, PeerCount};
use assay_report::number;
use indicatif::{DecimalBytes, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shows the line until dropped.
pub(super) struct Status {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Status {
    /// Starts the status line of a node; `None` if standard error is no terminal.
    pub(super) fn of(node: &Node) -> Option<Self> {
        if !std::io::stderr().is_terminal() {
            return None;
        }
        let is_over = Arc::new(AtomicBool::new(false));
        let (engine, peers, ending) =
            (Arc::clone(node.engine()), node.peer_count(), is_over.clone());
        let builder = thread::Builder::new().name("status".to_owned());
        // A failure to start the thread only loses the line.
        let thread = builder.spawn(move || show(&engine, &peers, &ending)).ok();
        Some(Self { is_over, thread })
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn show(engine: &Engine, peers: &PeerCount, is_over: &AtomicBool) {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
    if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
        bar.set_style(style);
    }
    let mut samples = Samples::default();
    let mut is_shown = false;
    while !is_over.load(Ordering::Relaxed) && !engine.is_shutting_down() {
        samples.push(Instant::now(), engine.gauges());
        let line = samples.line(peers.get());
        if line.is_some() || is_shown {
            is_shown = line.is_some();
            bar.set_message(line.unwrap_or_default());
        }
        thread::sleep(LOOK);
    }
    bar.finish_and_clear();
}

/// Samples of the last seconds, latest last.
#[derive(Default)]
struct Samples(Vec<(Instant, Gauges)>);

impl Samples {
    fn push(&mut self, at: Instant, gauges: Gauges) {
        self.0.push((at, gauges));
        // One sample older than the window is kept as the base of the rates.
        let is_old = |(time, _): &(Instant, Gauges)| at.duration_since(*time) > WINDOW;
        let old = self.0.iter().take_while(|sample| is_old(sample)).count();
        self.0.drain(..old.saturating_sub(1));
    }

    /// The line; `None` at the tip.
    fn line(&self, peers: usize) -> Option<String> {
        let ((then, before), (at, now)) = (self.0.first()?, self.0.last()?);
        let (height, best) = (now.tip.height, now.header_height.max(now.tip.height));
        if best == height {
            return None;
        }
        let seconds = at.duration_since(*then).as_secs_f64().max(1e-3);
        let blocks = (now.done.blocks - before.done.blocks) as f64 / seconds;
        let bytes = (now.done.bytes - before.done.bytes) as f64 / seconds;
        let left = f64::from(best - height) / blocks;
        let left = if left.is_finite() && left < LEFT_MAX_S {
            format!("{:#} left", HumanDuration(Duration::from_secs_f64(left)))
        } else {
            "time left unknown".to_owned()
        };
        Some(format!(
            "Syncing {} of {} ({})  {peers} peers  {} blocks/s  {}/s  {left}  {}",
            number::count(u64::from(height)),
            number::count(u64::from(best)),
            number::percent(f64::from(height) / f64::from(best)),
            number::rate(blocks),
            DecimalBytes(bytes as u64),
            stages(before, now, seconds),
        ))
    }
}

/// Share of the connecting thread's time by stage, largest first.
fn stages(before: &Gauges, now: &Gauges, seconds: f64) -> String {
    let mut shares: Vec<_> = Stage::ALL
        .into_iter()
        .enumerate()
        .filter(|(_, stage)| !matches!(stage, Stage::Check | Stage::Archive))
        .map(|(at, stage)| {
            let time = now.done.stages[at].saturating_sub(before.done.stages[at]);
            (stage.name(), time.as_secs_f64() / seconds)
        })
        .collect();
    let busy: f64 = shares.iter().map(|(_, share)| share).sum();
    shares.push(("waiting", (1.0 - busy).max(0.0)));
    shares.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let shown = shares.iter().filter(|(_, share)| *share >= SHARE_MIN).take(SHARES_MAX);
    shown
        .map(|(name, share)| format!("{name} {}", number::whole_percent(*share)))
        .collect::<Vec<_>>()
        .join(" ")
}

const LOOK: Duration = Duration::from_millis(500);
/// Window of the rates.
const WINDOW: Duration = Duration::from_secs(10);
/// Longest remaining time that is shown.
const LEFT_MAX_S: f64 = 365.0 * 86_400.0;
const SHARE_MIN: f64 = 0.05;
const SHARES_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use assay_engine::{ChainParams, Config};

    use super::*;

    fn gauges() -> Gauges {
        let dir = tempfile::tempdir().unwrap();
        let params = Arc::new(ChainParams::by_name("regtest").unwrap());
        Engine::open(Config::new(dir.path(), params)).unwrap().gauges()
    }

    #[test]
    fn the_line_shows_rates_of_the_last_seconds_and_where_time_goes() {
        let (start, empty) = (Instant::now(), gauges());
        let mut samples = Samples::default();
        samples.push(start, empty.clone());
        assert_eq!(samples.line(0), None, "nothing to catch up with");
        let mut state = empty;
        state.header_height = 1000;
        for second in 1..=60_u32 {
            state.tip.height += 10;
            state.done.blocks += 10;
            state.done.bytes += 5_000_000;
            state.done.stages[Stage::Coins as usize] += Duration::from_millis(600);
            state.done.stages[Stage::Scripts as usize] += Duration::from_millis(300);
            state.done.stages[Stage::Check as usize] += Duration::from_millis(900);
            samples.push(start + Duration::from_secs(u64::from(second)), state.clone());
        }
        assert!(samples.0.len() <= 12, "old ones go");
        assert_eq!(
            samples.line(8).unwrap(),
            "Syncing 600 of 1,000 (60.0 %)  8 peers  10.000 blocks/s  5.00 MB/s  40s left  \
             coins 60 % scripts 30 % waiting 10 %"
        );
    }

    #[test]
    fn no_remaining_time_without_progress() {
        let mut samples = Samples::default();
        let mut state = gauges();
        state.header_height = 5;
        samples.push(Instant::now(), state);
        let line = samples.line(1).unwrap();
        assert!(line.contains("time left unknown") && line.ends_with("waiting 100 %"), "{line}");
    }
}
