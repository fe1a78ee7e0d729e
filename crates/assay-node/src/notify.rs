//! Shell commands on events, and the height to stop at (Core `init.cpp`).
//!
//! Each command runs on its own thread and never blocks the node. At most 64 run at once; further ones are skipped
//! with a warning.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use assay_engine::{Engine, Tip};
use tokio::sync::watch;

use crate::config::{NodeConfig, Notify};

pub(crate) fn started(notify: &Notify) {
    if let Some(command) = &notify.startup {
        run_detached(command.clone());
    }
}

/// Runs the shutdown commands in parallel and waits for them.
pub(crate) fn stopping(notify: &Notify) {
    let run = |command: &String| start(command.clone(), || ());
    let running: Vec<_> = notify.shutdown.iter().filter_map(run).collect();
    for thread in running {
        // A panic has ended the process.
        let _ = thread.join();
    }
}

/// Runs the alert command for every new warning, if configured, until the engine closes.
pub(crate) fn watch_alerts(
    config: &NodeConfig,
    engine: &Arc<Engine>,
) -> std::io::Result<Option<JoinHandle<()>>> {
    let Some(command) = config.notify.alert.clone() else { return Ok(None) };
    let engine = Arc::clone(engine);
    let run = move || {
        while let Some(alert) = engine.next_alert() {
            run_detached(command.replace("%s", &quoted(&alert)));
        }
    };
    thread::Builder::new().name("alerts".to_owned()).spawn(run).map(Some)
}

/// Quotes a text for the shell; drops unsafe characters (Core `node/kernel_notifications.cpp`).
fn quoted(text: &str) -> String {
    let is_safe = |byte: &char| byte.is_ascii_alphanumeric() || " .,;-_/:?@()".contains(*byte);
    let safe: String = text.chars().filter(is_safe).collect();
    format!("'{safe}'")
}

/// Stops the node after a fatal engine error.
pub(crate) fn watch_failure(
    engine: &Arc<Engine>,
    stop: watch::Sender<bool>,
) -> std::io::Result<JoinHandle<()>> {
    let engine = Arc::clone(engine);
    let run = move || {
        if let Some(cause) = engine.wait_for_failure() {
            tracing::error!("A fatal internal error occurred: {cause}");
            stop.send_replace(true);
        }
    };
    thread::Builder::new().name("failure".to_owned()).spawn(run)
}

/// Follows the tip, if anything uses it, until the engine closes.
pub(crate) fn watch_tip(
    config: &NodeConfig,
    engine: &Arc<Engine>,
    stop: watch::Sender<bool>,
) -> std::io::Result<Option<JoinHandle<()>>> {
    let watch = Watch {
        engine: Arc::clone(engine),
        command: config.notify.block.clone(),
        stop_at: config.stop_at_height,
        stop,
    };
    if watch.command.is_none() && watch.stop_at.is_none() {
        return Ok(None);
    }
    thread::Builder::new().name("notify".to_owned()).spawn(move || watch.run()).map(Some)
}

struct Watch {
    engine: Arc<Engine>,
    command: Option<String>,
    stop_at: Option<u32>,
    stop: watch::Sender<bool>,
}

impl Watch {
    fn run(&self) {
        let mut seen = self.engine.chain().tip();
        loop {
            if self.stop_at.is_some_and(|height| seen.height >= height) {
                tracing::info!("Stopping at height {}, as -stopatheight asks for", seen.height);
                self.stop.send_replace(true);
                return;
            }
            let tip = self.engine.chain().wait_for_tip_change(seen.hash, None);
            if self.engine.is_shutting_down() {
                return;
            }
            self.tell(&seen, &tip);
            seen = tip;
        }
    }

    /// Runs the command for the new tip and before it for the skipped blocks on the active chain.
    fn tell(&self, before: &Tip, tip: &Tip) {
        let Some(command) = &self.command else { return };
        if self.engine.chain().is_initial_block_download() {
            return;
        }
        let is_above = self.engine.chain().hash_at(before.height) == Some(before.hash);
        let first = if is_above { before.height + 1 } else { tip.height };
        let first = first.max(tip.height.saturating_sub(BETWEEN_MAX));
        let between = (first..tip.height).filter_map(|height| self.engine.chain().hash_at(height));
        for hash in between.chain([tip.hash]) {
            run_detached(command.replace("%s", &hash.to_string()));
        }
    }
}

/// Runs a command on its own thread unless too many are running.
fn run_detached(command: String) {
    static RUNNING: AtomicUsize = AtomicUsize::new(0);
    if RUNNING.fetch_add(1, Ordering::Relaxed) >= RUNNING_MAX {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
        tracing::warn!("not run, since {RUNNING_MAX} commands have not ended: {command}");
        return;
    }
    let end = || {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    };
    if start(command, end).is_none() {
        end();
    }
}

fn start(command: String, end: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    let named = thread::Builder::new().name("command".to_owned());
    let thread = named.spawn(move || {
        run(&command);
        end();
    });
    thread.inspect_err(|error| tracing::warn!("cannot start a thread: {error}")).ok()
}

fn run(command: &str) {
    match Command::new("/bin/sh").arg("-c").arg(command).status() {
        Ok(status) if status.success() => {}
        Ok(status) => tracing::warn!("runCommand error: system({command}) returned {status}"),
        Err(error) => tracing::warn!("cannot run {command}: {error}"),
    }
}

const RUNNING_MAX: usize = 64;
/// Maximum number of skipped blocks for which the command runs.
const BETWEEN_MAX: u32 = 32;

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn quoted_text_is_one_safe_word() {
        assert_eq!(quoted("Unknown (versionbit 3): a-b"), "'Unknown (versionbit 3): a-b'");
        assert_eq!(quoted("a'; rm -rf $HOME `x` \"\n&|é"), "'a; rm -rf HOME x '");
    }
}
