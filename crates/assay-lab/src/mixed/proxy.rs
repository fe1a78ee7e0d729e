//! A link between two nodes that reads the traffic, and can be cut and restored.
//!
//! It forwards whole messages of the v1 transport. A cut either holds messages back until the link is restored, as on a network
//! that loses packets for a while, or closes the connection and accepts no new one.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::message::Content;
use super::record::Record;
use crate::network::link::{Properties, end, listen};
use crate::wire;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinkState {
    Open,
    /// Messages wait.
    Held,
    /// No connection.
    Broken,
}

/// A connection closed by one of its nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Disconnect {
    /// Node that closed it.
    pub(super) by: usize,
    /// Node at the other end.
    pub(super) from: usize,
    pub(super) at: Instant,
}

struct State {
    link: LinkState,
    /// Incremented per connection; threads of earlier ones exit.
    generation: u64,
    /// Both ends of the connection, if open.
    ends: Option<[TcpStream; 2]>,
    disconnects: Vec<Disconnect>,
}

struct Shared {
    /// The connecting node and the listening node.
    nodes: [usize; 2],
    properties: Properties,
    record: Arc<Record>,
    state: Mutex<State>,
    changed: Condvar,
}

/// A link; dropping it closes its connection.
pub(super) struct Proxy {
    /// Address for the connecting node.
    pub(super) address: SocketAddr,
    stop: Arc<std::sync::atomic::AtomicBool>,
    shared: Arc<Shared>,
}

impl Proxy {
    /// A link from the first of `nodes` to the second, which listens at `far`.
    pub(super) fn start(
        nodes: [usize; 2],
        far: SocketAddr,
        index: u8,
        properties: Properties,
        record: &Arc<Record>,
    ) -> io::Result<Self> {
        let listener = listen(index)?;
        let address = listener.local_addr()?;
        let state =
            State { link: LinkState::Open, generation: 0, ends: None, disconnects: Vec::new() };
        let shared = Arc::new(Shared {
            nodes,
            properties,
            record: Arc::clone(record),
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let (stopped, of_thread) = (Arc::clone(&stop), Arc::clone(&shared));
        thread::spawn(move || {
            for near in listener.incoming() {
                if stopped.load(std::sync::atomic::Ordering::Relaxed) {
                    return;
                }
                // A failed connection closes at once, as on any network.
                let _ = near.and_then(|near| Shared::join(&of_thread, near, far));
            }
        });
        Ok(Self { address, stop, shared })
    }

    /// Its two nodes, the connecting one first.
    pub(super) fn nodes(&self) -> [usize; 2] {
        self.shared.nodes
    }

    pub(super) fn is_connected(&self) -> bool {
        self.shared.lock().ends.is_some()
    }

    pub(super) fn link_state(&self) -> LinkState {
        self.shared.lock().link
    }

    /// Cuts or restores it.
    pub(super) fn set(&self, link_state: LinkState) {
        let mut state = self.shared.lock();
        state.link = link_state;
        if link_state == LinkState::Broken {
            state.leave();
        }
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Connections closed by a node since the last call.
    pub(super) fn disconnects(&self) -> Vec<Disconnect> {
        std::mem::take(&mut self.shared.lock().disconnects)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.set(LinkState::Broken);
        end(&self.stop, self.address);
    }
}

impl State {
    fn leave(&mut self) {
        self.generation += 1;
        for end in self.ends.take().into_iter().flatten() {
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(this: &Arc<Self>, near: TcpStream, far: SocketAddr) -> io::Result<()> {
        let mut state = this.lock();
        if state.link == LinkState::Broken || state.ends.is_some() {
            return Ok(());
        }
        let far = TcpStream::connect(far)?;
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        let [a, b] = this.nodes;
        let directions = [
            (near.try_clone()?, far.try_clone()?, [a, b]),
            (far.try_clone()?, near.try_clone()?, [b, a]),
        ];
        state.generation += 1;
        state.ends = Some([near, far]);
        let generation = state.generation;
        drop(state);
        for (from, to, nodes) in directions {
            let (sender, receiver) = sync_channel(QUEUE);
            let (reader, writer) = (Arc::clone(this), Arc::clone(this));
            thread::spawn(move || {
                // An error ends the connection as well.
                let _ = reader.take_in(from, &sender, nodes[0]);
                reader.disconnected(generation, nodes);
            });
            thread::spawn(move || {
                let _ = writer.give_out(to, &receiver, generation, nodes[1]);
            });
        }
        Ok(())
    }

    /// Handles the end of the node's side of a connection, closed here or by the node.
    fn disconnected(&self, generation: u64, [by, from]: [usize; 2]) {
        let mut state = self.lock();
        if state.generation == generation && state.ends.is_some() {
            state.leave();
            state.disconnects.push(Disconnect { by, from, at: Instant::now() });
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Reads messages at the link's rate.
    fn take_in(
        &self,
        mut from: TcpStream,
        sender: &SyncSender<Due>,
        node: usize,
    ) -> io::Result<()> {
        let Properties { bytes_per_s, delay } = self.properties;
        let mut free_at = Instant::now();
        loop {
            let mut head = [0; wire::HEAD_BYTES];
            from.read_exact(&mut head)?;
            let (command, length) = wire::read_head(&head).ok_or(io::ErrorKind::InvalidData)?;
            let mut message = Vec::with_capacity(wire::HEAD_BYTES + length);
            message.extend_from_slice(&head);
            (&mut from).take(length as u64).read_to_end(&mut message)?;
            if message.len() < wire::HEAD_BYTES + length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let content = Content::of(&command, &message[wire::HEAD_BYTES..]);
            self.record.sent(node, &command, message.len(), &content);
            let takes = Duration::from_secs_f64(message.len() as f64 / bytes_per_s);
            free_at = free_at.max(Instant::now()) + takes;
            let due = Due { at: free_at + delay, command, message, content };
            sender.send(due).map_err(|_| io::ErrorKind::BrokenPipe)?;
        }
    }

    fn give_out(
        &self,
        mut to: TcpStream,
        receiver: &Receiver<Due>,
        generation: u64,
        node: usize,
    ) -> io::Result<()> {
        for due in receiver {
            thread::sleep(due.at.saturating_duration_since(Instant::now()));
            let mut state = self.lock();
            while state.link == LinkState::Held && state.generation == generation {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            drop(state);
            to.write_all(&due.message)?;
            self.record.delivered(node, &due.command, due.message.len(), &due.content);
        }
        Ok(())
    }
}

/// A message in flight.
struct Due {
    at: Instant,
    command: String,
    message: Vec<u8>,
    content: Content,
}

/// Messages in flight per direction; beyond that the sender waits.
const QUEUE: usize = 1_000;

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    const PROPERTIES: Properties = Properties { bytes_per_s: 1e9, delay: Duration::from_millis(1) };

    fn message(command: &str) -> Vec<u8> {
        let mut out = Vec::new();
        wire::put(&mut out, command, &[7; 8]);
        out
    }

    fn read(stream: &mut TcpStream) -> String {
        let mut bytes = [0; wire::HEAD_BYTES + 8];
        stream.read_exact(&mut bytes).unwrap();
        wire::read_head(bytes.first_chunk().unwrap()).unwrap().0
    }

    /// Waits for a condition set by other threads.
    fn until(is_so: impl Fn() -> bool) {
        while !is_so() {
            thread::yield_now();
        }
    }

    #[test]
    fn a_cut_link_holds_messages_or_ends() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let record = Arc::new(Record::new(2));
        let far = server.local_addr().unwrap();
        let proxy = Proxy::start([0, 1], far, 210, PROPERTIES, &record).unwrap();
        let mut near = TcpStream::connect(proxy.address).unwrap();
        let mut far = server.accept().unwrap().0;
        near.write_all(&message("ping")).unwrap();
        assert_eq!(read(&mut far), "ping");
        proxy.set(LinkState::Held);
        near.write_all(&message("pong")).unwrap();
        far.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        assert!(far.read_exact(&mut [0; 1]).is_err(), "it is held back");
        far.set_read_timeout(None).unwrap();
        proxy.set(LinkState::Open);
        assert_eq!(read(&mut far), "pong");
        proxy.set(LinkState::Broken);
        assert_eq!(far.read(&mut [0; 1]).unwrap(), 0);
        assert!(!proxy.is_connected() && proxy.disconnects().is_empty(), "it was cut by us");
        let mut again = TcpStream::connect(proxy.address).unwrap();
        assert!(again.read_exact(&mut [0; 1]).is_err(), "nobody is let in");
    }

    #[test]
    fn reports_the_end_that_disconnected() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let record = Arc::new(Record::new(2));
        let far = server.local_addr().unwrap();
        let proxy = Proxy::start([0, 1], far, 211, PROPERTIES, &record).unwrap();
        let _near = TcpStream::connect(proxy.address).unwrap();
        drop(server.accept().unwrap());
        until(|| !proxy.is_connected() && proxy.shared.lock().generation == 2);
        let disconnects = proxy.disconnects();
        assert_eq!(disconnects.len(), 1);
        assert_eq!((disconnects[0].by, disconnects[0].from), (1, 0));
    }
}
