//! Watches the tip from a second connection.
//!
//! `waitforblockheight` is asked before the block is sent and answers when the tip has changed, so
//! the stamp does not depend on when `submitblock` returns. The node is asked again every second,
//! so that a watcher whose block was refused can be called off.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::Deserialize;

use crate::machine::clock::Clock;
use crate::process::rpc::{Client, RpcError, read_result};

/// How long the node may hold one question.
const QUESTION_MS: u64 = 1000;

/// What one watch ended with: when the height was reached, and the tip's hash.
pub(super) type Sighting = Result<(f64, String), RpcError>;

/// A thread with its own connection that waits for heights.
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

    /// Begins to wait for `height`, and gives the question a moment to reach the node.
    pub(crate) fn expect(&self, height: u32) {
        if let Some(heights) = &self.heights {
            // A thread that is gone is noticed when the sighting is missing.
            let _ = heights.send(height);
        }
        thread::sleep(Duration::from_millis(1));
    }

    /// The sighting of the height last expected; `None` when it does not come in time.
    pub(crate) fn sighting(&self, timeout: Duration) -> Option<Sighting> {
        self.sightings.recv_timeout(timeout).ok()
    }
}

impl Drop for TipWatch {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
        self.heights = None;
        if let Some(thread) = self.thread.take() {
            // The thread ends within one question; its panic would have been reported already.
            let _ = thread.join();
        }
    }
}

/// Asks until the height is reached; `None` when called off.
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
