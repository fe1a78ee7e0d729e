//! PUB socket: accepts subscribers and sends them the messages of their topics.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use assay_electrum::places::Places;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::address::Address;
use super::message::Message;
use super::session::{self, Subscriber};

type Subscribers = Arc<Mutex<Vec<Arc<Subscriber>>>>;

pub(super) struct Socket {
    subscribers: Subscribers,
    accepting: JoinHandle<()>,
    path: Option<PathBuf>,
}

impl Socket {
    /// Listens on an address.
    ///
    /// # Errors
    /// The bind fails.
    pub(super) fn bind(
        address: &Address,
        high_water_mark: usize,
        runtime: &Handle,
    ) -> io::Result<Self> {
        let high_water_mark = match high_water_mark {
            0 => QUEUE_MAX,
            count => count.min(QUEUE_MAX),
        };
        let subscribers = Subscribers::default();
        let places = Places::new(SUBSCRIBERS_MAX);
        let shared = Shared { subscribers: Arc::clone(&subscribers), places, high_water_mark };
        let _context = runtime.enter();
        let (accepting, path) = match address {
            Address::Tcp(address) => {
                let listener = runtime.block_on(TcpListener::bind(address))?;
                (runtime.spawn(shared.accept_tcp(listener)), None)
            }
            Address::Ipc(path) => {
                remove_stale(path)?;
                let listener = UnixListener::bind(path)?;
                (runtime.spawn(shared.accept_ipc(listener)), Some(path.clone()))
            }
        };
        Ok(Self { subscribers, accepting, path })
    }

    /// Queues a message for its subscribers without blocking.
    pub(super) fn send(&self, message: &Arc<Message>) {
        let subscribers = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        for one in subscribers.iter().filter(|one| one.wants(message.topic())) {
            one.offer(message);
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.accepting.abort();
        if let Some(path) = &self.path {
            // It may have been removed already.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Removes a socket file of an earlier process.
fn remove_stale(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(known) if known.file_type().is_socket() => std::fs::remove_file(path),
        _ => Ok(()),
    }
}

#[derive(Clone)]
struct Shared {
    subscribers: Subscribers,
    places: Arc<Places>,
    high_water_mark: usize,
}

impl Shared {
    async fn accept_tcp(self, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let _ = stream.set_nodelay(true);
                    self.serve(stream, peer.ip());
                }
                Err(_) => sleep(ACCEPT_RETRY).await,
            }
        }
    }

    async fn accept_ipc(self, listener: UnixListener) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => self.serve(stream, Ipv4Addr::LOCALHOST.into()),
                Err(_) => sleep(ACCEPT_RETRY).await,
            }
        }
    }

    fn serve(&self, stream: impl AsyncRead + AsyncWrite + Send + 'static, peer: IpAddr) {
        let Some(place) = self.places.take(peer) else {
            tracing::warn!("Too many ZeroMQ subscribers; one is turned away");
            return;
        };
        let (queue, messages) = mpsc::channel(self.high_water_mark);
        let subscriber = Arc::new(Subscriber::new(queue));
        let all = || self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        all().push(Arc::clone(&subscriber));
        let subscribers = Arc::clone(&self.subscribers);
        tokio::spawn(async move {
            if let Err(error) = session::run(stream, &subscriber, messages).await {
                tracing::debug!(target: "zmq", "A subscriber is gone: {error}");
            }
            let mut all = subscribers.lock().unwrap_or_else(PoisonError::into_inner);
            all.retain(|one| !Arc::ptr_eq(one, &subscriber));
            drop(place);
        });
    }
}

/// Maximum number of connections per address.
const SUBSCRIBERS_MAX: usize = 256;
/// Queue limit when none is configured.
const QUEUE_MAX: usize = 1 << 20;
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
