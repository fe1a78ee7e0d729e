//! Watches the tip over a second connection.
//!
//! `waitforblockheight` is called before the block is sent and returns when the tip changes, so the timestamp does not depend on
//! the return of `submitblock`. The call is repeated every second, so that a watch can be cancelled after a rejected block.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::Deserialize;

use crate::machine::clock::Clock;
use crate::process::rpc::{Client, RpcError, read_result};

/// Time limit of one call, milliseconds.
const QUESTION_MS: u64 = 1000;

/// Result of a watch: time at which the height was reached, and the tip's hash.
pub(super) type Sighting = Result<(f64, String), RpcError>;

/// A thread that waits for heights on its own connection.
#[derive(Debug)]
pub(crate) struct TipWatch {
    heights: Option<Sender<u32>>,
    sightings: Receiver<Sighting>,
    cancelled: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Deserialize)]
struct Tip {
    hash: String,
    height: u32,
}

impl TipWatch {
    pub(crate) fn start(client: Client, clock: Clock) -> Self {
        let (heights, wanted) = mpsc::channel::<u32>();
        let (found, sightings) = mpsc::channel();
        let cancelled = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&cancelled);
        let thread = thread::spawn(move || {
            while let Ok(height) = wanted.recv() {
                let Some(sighting) = watch(&client, clock, height, &flag) else { return };
                if found.send(sighting).is_err() {
                    return;
                }
            }
        });
        Self { heights: Some(heights), sightings, cancelled, thread: Some(thread) }
    }

    /// Starts to wait for `height`, and pauses so that the request reaches the node.
    pub(crate) fn expect(&self, height: u32) {
        if let Some(heights) = &self.heights {
            // A dead thread is noticed by the missing sighting.
            let _ = heights.send(height);
        }
        thread::sleep(Duration::from_millis(1));
    }

    /// Sighting of the last expected height; `None` after the time-out.
    pub(crate) fn sighting(&self, timeout: Duration) -> Option<Sighting> {
        self.sightings.recv_timeout(timeout).ok()
    }
}

impl Drop for TipWatch {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
        self.heights = None;
        if let Some(thread) = self.thread.take() {
            // The thread ends within one call; a panic was already reported.
            let _ = thread.join();
        }
    }
}

/// Calls until the height is reached; `None` when cancelled.
fn watch(client: &Client, clock: Clock, height: u32, cancelled: &AtomicBool) -> Option<Sighting> {
    let method = "waitforblockheight";
    let body = format!(
        r#"{{"jsonrpc":"1.0","id":"assay-lab","method":"{method}","params":[{height},{QUESTION_MS}]}}"#
    );
    while !cancelled.load(Ordering::Relaxed) {
        let reply = match client.post(method, body.as_bytes(), None) {
            Ok(reply) => reply,
            Err(error) => return Some(Err(error)),
        };
        let now_s = clock.now_s();
        match read_result::<Tip>(method, &reply) {
            Ok(tip) if tip.height >= height => return Some(Ok((now_s, tip.hash))),
            Ok(_) => {}
            Err(error) => return Some(Err(error)),
        }
    }
    None
}
