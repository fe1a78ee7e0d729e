//! A link of a given rate and delay in front of a node: a relay of byte streams on loopback. It needs no privileges and no
//! network device, so it behaves the same on every machine. It loses nothing and does not model TCP slow start over a long path.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Properties {
    /// Bytes per second, each way.
    pub(crate) bytes_per_s: f64,
    /// One-way delay.
    pub(crate) delay: Duration,
}

/// A listener on loopback with a thread of its own; dropping it ends the thread.
pub(crate) struct Listener {
    pub(crate) address: SocketAddr,
    /// Set when it is dropped.
    pub(crate) stop: Arc<AtomicBool>,
}

impl Listener {
    /// Listens on an address that is unique to `index` if the system has several; `accept` takes each connection.
    pub(crate) fn start(
        index: u8,
        mut accept: impl FnMut(TcpStream, &Arc<AtomicBool>) + Send + 'static,
    ) -> io::Result<Self> {
        let own = Ipv4Addr::new(127, 77, index, 1);
        let listener =
            TcpListener::bind((own, 0)).or_else(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                if let Ok(stream) = stream {
                    accept(stream, &stopped);
                }
            }
        });
        Ok(Self { address, stop })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // The thread checks at its next connection.
        let _ = TcpStream::connect(self.address);
    }
}

/// A link to a node; dropping it accepts no more connections.
pub(crate) struct Link {
    listener: Listener,
    carried: Arc<AtomicU64>,
}

impl Link {
    /// Address of the near end.
    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.address
    }

    /// Bytes delivered at the near end.
    pub(crate) fn carried_bytes(&self) -> u64 {
        self.carried.load(Ordering::Relaxed)
    }

    /// The `index`-th link to `node`.
    pub(crate) fn to(node: SocketAddr, index: u8, properties: Properties) -> io::Result<Self> {
        let carried = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&carried);
        let listener = Listener::start(index, move |near, _| {
            // A failed connection closes at once, as on any network.
            let _ = join(near, node, properties, &count);
        })?;
        Ok(Self { listener, carried })
    }
}

fn join(
    near: TcpStream,
    node: SocketAddr,
    properties: Properties,
    carried: &Arc<AtomicU64>,
) -> io::Result<()> {
    let far = TcpStream::connect(node)?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let ends = [near.try_clone()?, far.try_clone()?];
    for (ends, carried) in [(ends, Arc::default()), ([far, near], Arc::clone(carried))] {
        // More than the bytes in flight, since pieces may be small.
        let on_the_way = properties.bytes_per_s * properties.delay.as_secs_f64();
        let queue = (on_the_way / PIECE_BYTES as f64) as usize + 64;
        let piece_bytes = PIECE_BYTES.min((properties.bytes_per_s / 100.0) as usize).max(1);
        let mut buffer = vec![0; piece_bytes];
        let take = move |from: &mut TcpStream| -> io::Result<_> {
            match from.read(&mut buffer)? {
                0 => Err(ErrorKind::UnexpectedEof.into()),
                count => Ok((count, buffer[..count].to_vec())),
            }
        };
        let deliver = move |to: &mut TcpStream, piece: Vec<u8>| -> io::Result<()> {
            to.write_all(&piece)?;
            carried.fetch_add(piece.len() as u64, Ordering::Relaxed);
            Ok(())
        };
        carry(ends, properties, queue, take, deliver);
    }
    Ok(())
}

/// Forwards one direction of a connection on two threads, until one of them fails. `take` reads a piece and counts its bytes,
/// `deliver` writes it when it is due; at most `queue` pieces are in flight.
pub(crate) fn carry<T: Send + 'static>(
    [mut from, mut to]: [TcpStream; 2],
    Properties { bytes_per_s, delay }: Properties,
    queue: usize,
    mut take: impl FnMut(&mut TcpStream) -> io::Result<(usize, T)> + Send + 'static,
    mut deliver: impl FnMut(&mut TcpStream, T) -> io::Result<()> + Send + 'static,
) {
    let (sender, receiver) = sync_channel::<(Instant, T)>(queue);
    thread::spawn(move || {
        let mut free_at = Instant::now();
        loop {
            let asked = Instant::now();
            let Ok((count, piece)) = take(&mut from) else { return };
            let takes = Duration::from_secs_f64(count as f64 / bytes_per_s);
            let now = Instant::now();
            // While bytes are available the link is busy: oversleeping is compensated up to a limit.
            let slack = if now - asked < AT_ONCE { SLACK } else { Duration::ZERO };
            free_at = free_at.max(now.checked_sub(slack).unwrap_or(now)) + takes;
            thread::sleep(free_at.saturating_duration_since(now));
            if sender.send((free_at + delay, piece)).is_err() {
                let _ = from.shutdown(Shutdown::Both);
                return;
            }
        }
    });
    thread::spawn(move || {
        for (due, piece) in receiver {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if deliver(&mut to, piece).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}

/// Large pieces reduce the CPU time of links, which the nodes need.
const PIECE_BYTES: usize = 64 << 10;
/// Longest assumed scheduling delay of a thread.
const SLACK: Duration = Duration::from_millis(50);
/// A read that blocks longer means that the link was idle.
const AT_ONCE: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delivers_all_bytes_at_the_rate() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let properties = Properties { bytes_per_s: 1e6, delay: Duration::from_millis(30) };
        let link = Link::to(server.local_addr().unwrap(), 200, properties).unwrap();
        let mut near = TcpStream::connect(link.address()).unwrap();
        let (mut far, _) = server.accept().unwrap();
        let sent: Vec<u8> = (0..100_000_u32).map(|index| index as u8).collect();
        let started = Instant::now();
        far.write_all(&sent).unwrap();
        let mut received = vec![0; sent.len()];
        near.read_exact(&mut received).unwrap();
        assert_eq!(received, sent);
        assert!(started.elapsed() >= Duration::from_millis(125), "{:?}", started.elapsed());
    }
}
