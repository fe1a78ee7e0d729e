//! A link of a given rate and delay in front of a node: a relay of byte streams on loopback. It needs no privileges and no
//! network device, so it behaves the same on every machine. It loses nothing and does not model TCP slow start over a long path.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Properties {
    /// Bytes per second, each way.
    pub(crate) bytes_per_s: f64,
    /// One-way delay.
    pub(crate) delay: Duration,
}

/// A link to a node; dropping it closes its connections.
pub(crate) struct Link {
    /// Address of the near end.
    pub(crate) address: SocketAddr,
    carried: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Link {
    /// Bytes delivered at the near end.
    pub(crate) fn carried_bytes(&self) -> u64 {
        self.carried.load(Ordering::Relaxed)
    }

    /// The `index`-th link to `node`, with its own loopback address if the system has several.
    pub(crate) fn to(node: SocketAddr, index: u8, properties: Properties) -> io::Result<Self> {
        let listener = listen(index)?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let carried = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&carried);
        thread::spawn(move || {
            for near in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                // A failed connection closes at once, as on any network.
                let _ = near.and_then(|near| join(near, node, properties, &count));
            }
        });
        Ok(Self { address, carried, stop })
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        end(&self.stop, self.address);
    }
}

/// A listener on a loopback address that is unique to `index`.
pub(crate) fn listen(index: u8) -> io::Result<TcpListener> {
    let own = Ipv4Addr::new(127, 77, index, 1);
    TcpListener::bind((own, 0)).or_else(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
}

/// Stops a listener's thread, which checks `stop` at each connection.
pub(crate) fn end(stop: &AtomicBool, address: SocketAddr) {
    stop.store(true, Ordering::Relaxed);
    let _ = TcpStream::connect(address);
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
    one_way(near.try_clone()?, far.try_clone()?, properties, Arc::default());
    one_way(far, near, properties, Arc::clone(carried));
    Ok(())
}

fn one_way(from: TcpStream, to: TcpStream, properties: Properties, carried: Arc<AtomicU64>) {
    // More than the bytes in flight, since pieces may be small.
    let on_the_way = properties.bytes_per_s * properties.delay.as_secs_f64();
    let (sender, receiver) = sync_channel((on_the_way / PIECE_BYTES as f64) as usize + 64);
    thread::spawn(move || take_in(from, &sender, properties));
    thread::spawn(move || give_out(to, &receiver, &carried));
}

/// Reads at the link's rate.
fn take_in(
    mut from: TcpStream,
    sender: &SyncSender<(Instant, Vec<u8>)>,
    Properties { bytes_per_s, delay }: Properties,
) {
    let piece = PIECE_BYTES.min((bytes_per_s / 100.0) as usize).max(1);
    let mut buffer = vec![0; piece];
    let mut free_at = Instant::now();
    loop {
        let asked = Instant::now();
        let Ok(count @ 1..) = from.read(&mut buffer) else { return };
        let takes = Duration::from_secs_f64(count as f64 / bytes_per_s);
        let now = Instant::now();
        // While bytes are available the link is busy: oversleeping is compensated up to a limit.
        let slack = if now - asked < AT_ONCE { SLACK } else { Duration::ZERO };
        free_at = free_at.max(now.checked_sub(slack).unwrap_or(now)) + takes;
        thread::sleep(free_at.saturating_duration_since(now));
        if sender.send((free_at + delay, buffer[..count].to_vec())).is_err() {
            let _ = from.shutdown(Shutdown::Both);
            return;
        }
    }
}

fn give_out(mut to: TcpStream, receiver: &Receiver<(Instant, Vec<u8>)>, carried: &AtomicU64) {
    for (due, piece) in receiver {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if to.write_all(&piece).is_err() {
            break;
        }
        carried.fetch_add(piece.len() as u64, Ordering::Relaxed);
    }
    let _ = to.shutdown(Shutdown::Both);
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
        let mut near = TcpStream::connect(link.address).unwrap();
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
