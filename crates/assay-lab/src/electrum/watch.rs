//! Watches the tip of an index over its own connection.
//!
//! `blockchain.headers.subscribe` announces new tips. Some servers announce only the last of several blocks, so the subscription
//! request is also repeated: its response is the server's current tip. A server that indexes several blocks at once shows only
//! the last; the others share its time.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::{Client, ElectrumError, HeaderTip, Notification, ServerName};
use crate::machine::clock::Clock;
use crate::machine::disk::{self, DiskUse};

/// Interval of requests without announcements; bounds the delay at which a silent server's tip is seen.
const ASK_PERIOD: Duration = Duration::from_millis(10);
/// Longest wait for a response; the wait for announcements is unlimited.
const TIMEOUT: Duration = Duration::from_mins(2);

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Reached {
    pub(crate) at_s: f64,
    /// Disk usage of the index process until then, if it is separate.
    pub(crate) disk: Option<DiskUse>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Announcements higher than all before, with heights.
    announcements: Vec<(Reached, u32)>,
    /// The last one, at any height.
    last: Option<HeaderTip>,
    fault: Option<ElectrumError>,
}

#[derive(Debug, Default)]
struct Shared {
    seen: Mutex<Seen>,
    changed: Condvar,
    cancelled: AtomicBool,
    /// Process of the index, if it is separate.
    own_pid: Option<u32>,
}

/// A thread that timestamps announcements on its own connection.
#[derive(Debug)]
pub(crate) struct IndexWatch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    pub(crate) server: ServerName,
}

#[derive(Debug)]
pub(crate) enum Wait {
    Reached,
    NotYet,
    Failed(ElectrumError),
}

impl IndexWatch {
    /// Connects, subscribes and starts the thread; `own_pid` is the process of the index, if it is separate.
    pub(crate) fn start(
        address: SocketAddr,
        clock: Clock,
        own_pid: Option<u32>,
    ) -> Result<Self, ElectrumError> {
        let mut client = Client::connect(address, TIMEOUT)?;
        let server = client.hello()?;
        let tip = client.subscribe_headers()?;
        let shared = Arc::new(Shared { own_pid, ..Shared::default() });
        shared.take(clock.now_s(), tip);
        let of_thread = Arc::clone(&shared);
        let thread = thread::spawn(move || of_thread.watch(&mut client, clock));
        Ok(Self { shared, thread: Some(thread), server })
    }

    /// Waits until the index reaches `height`, at most `timeout`.
    pub(crate) fn wait(&self, height: u32, timeout: Duration) -> Wait {
        let is_there = |seen: &Seen| seen.announcements.last().is_some_and(|(_, at)| *at >= height);
        let seen = self.shared.lock();
        let waited = self
            .shared
            .changed
            .wait_timeout_while(seen, timeout, |seen| seen.fault.is_none() && !is_there(seen));
        let Ok((mut seen, _)) = waited else { return Wait::NotYet };
        if is_there(&seen) {
            return Wait::Reached;
        }
        seen.fault.take().map_or(Wait::NotYet, Wait::Failed)
    }

    /// Time and disk usage for each reached height from 1.
    pub(crate) fn reached(&self) -> Vec<Reached> {
        let seen = self.shared.lock();
        let mut all: Vec<Reached> = Vec::new();
        for (reached, height) in &seen.announcements {
            if *height as usize > all.len() {
                all.resize(*height as usize, *reached);
            }
        }
        all
    }

    /// Disk usage of the index process at the time of subscription.
    pub(crate) fn disk_at_start(&self) -> Option<DiskUse> {
        self.shared.lock().announcements.first().and_then(|(reached, _)| reached.disk)
    }

    pub(crate) fn tip(&self) -> Option<HeaderTip> {
        self.shared.lock().last.clone()
    }
}

impl Drop for IndexWatch {
    fn drop(&mut self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread ends within one wait; a panic was already reported.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        // No holder of the lock can panic in the middle of a change.
        self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn take(&self, now_s: f64, tip: HeaderTip) {
        let mut seen = self.lock();
        if seen.announcements.last().is_none_or(|(_, height)| tip.height > *height) {
            let disk = self.own_pid.and_then(disk::of_process);
            seen.announcements.push((Reached { at_s: now_s, disk }, tip.height));
        }
        seen.last = Some(tip);
        drop(seen);
        self.changed.notify_all();
    }

    fn watch(&self, client: &mut Client, clock: Clock) {
        while !self.cancelled.load(Ordering::Relaxed) {
            if let Err(error) = self.listen(client, clock) {
                self.lock().fault = Some(error);
                self.changed.notify_all();
                return;
            }
        }
    }

    /// Waits for an announcement and requests the tip if none arrives.
    fn listen(&self, client: &mut Client, clock: Clock) -> Result<(), ElectrumError> {
        let mut tips = Vec::new();
        if let Some(said) = client.notification(ASK_PERIOD)? {
            tips.extend(tip_of(&said));
        } else {
            let answer = client.subscribe_headers();
            // Announcements received before the response are older than it.
            while let Some(said) = client.notification(Duration::ZERO)? {
                tips.extend(tip_of(&said));
            }
            match answer {
                Ok(tip) => tips.push(tip),
                // It may be in a reorg.
                Err(ElectrumError::Refused { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let now_s = clock.now_s();
        for tip in tips {
            self.take(now_s, tip);
        }
        Ok(())
    }
}

/// The announced tip; `None` for other notifications.
fn tip_of(said: &Notification) -> Option<HeaderTip> {
    let is_header = said.method == "blockchain.headers.subscribe";
    let tip = is_header.then(|| serde_json::from_str::<[HeaderTip; 1]>(said.params.get()))?;
    tip.ok().map(|[tip]| tip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    fn announce(height: u32) -> String {
        format!(
            r#"{{"method":"blockchain.headers.subscribe","params":[{{"hex":"{height:02x}","height":{height}}}]}}"#
        ) + "\n"
    }

    #[test]
    fn blocks_announced_together_are_stamped_together() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut lines = BufReader::new(stream.try_clone().expect("a socket")).lines();
            lines.next();
            stream.write_all(b"{\"id\":1,\"result\":[\"S\",\"1.4\"]}\n").expect("open");
            lines.next();
            stream
                .write_all(b"{\"id\":2,\"result\":{\"hex\":\"00\",\"height\":0}}\n")
                .expect("open");
            for height in [1, 4] {
                stream.write_all(announce(height).as_bytes()).expect("open");
                thread::sleep(Duration::from_millis(2));
            }
            // It is silent from here on, so the watch polls.
            for height in [4, 5, 3] {
                let line = lines.next().expect("a question").expect("readable");
                let request: serde_json::Value = serde_json::from_str(&line).expect("JSON");
                assert_eq!(request["method"], "blockchain.headers.subscribe");
                let tip = format!(r#"{{"hex":"{height:02x}","height":{height}}}"#);
                let reply = format!("{{\"id\":{},\"result\":{tip}}}\n", request["id"]);
                stream.write_all(reply.as_bytes()).expect("open");
            }
        });
        let watch = IndexWatch::start(address, Clock::start(), None).expect("it answers");
        assert_eq!(watch.server.software, "S");
        assert!(matches!(watch.wait(5, Duration::from_secs(5)), Wait::Reached));
        let moments: Vec<f64> = watch.reached().iter().map(|reached| reached.at_s).collect();
        assert!(watch.disk_at_start().is_none(), "it has no process here");
        assert_eq!(moments.len(), 5);
        assert!(moments[0] <= moments[1], "{moments:?}");
        assert!(moments[1].to_bits() == moments[3].to_bits(), "{moments:?}");
        assert!(moments[3] <= moments[4], "{moments:?}");
        server.join().expect("no panic");
        // A lost server is reported at once, without a wait.
        assert!(matches!(watch.wait(6, Duration::from_secs(5)), Wait::Failed(_)));
        assert_eq!(watch.tip().map(|tip| tip.height), Some(3));
    }
}
