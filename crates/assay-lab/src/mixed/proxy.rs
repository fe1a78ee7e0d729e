//! A link between two nodes that reads the traffic, and can be cut and restored.
//!
//! It forwards whole messages of the v1 transport. A cut either holds messages back until the link is restored, as on a network
//! that loses packets for a while, or closes the connection and accepts no new one.

use std::io::{self, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use assay_wire::p2p::{FrameHeader, MESSAGE_BYTES_MAX, Message};

use super::message::Content;
use super::record::Record;
use crate::network::link::{Listener, Properties, carry};
use crate::p2p::{self, REGTEST};

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
    listener: Listener,
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
        let state =
            State { link: LinkState::Open, generation: 0, ends: None, disconnects: Vec::new() };
        let shared = Arc::new(Shared {
            nodes,
            properties,
            record: Arc::clone(record),
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let of_thread = Arc::clone(&shared);
        let listener = Listener::start(index, move |near, _| {
            // A failed connection closes at once, as on any network.
            let _ = Shared::join(&of_thread, near, far);
        })?;
        Ok(Self { listener, shared })
    }

    /// Address for the connecting node.
    pub(super) fn address(&self) -> SocketAddr {
        self.listener.address
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
            ([near.try_clone()?, far.try_clone()?], [a, b]),
            ([far.try_clone()?, near.try_clone()?], [b, a]),
        ];
        state.generation += 1;
        state.ends = Some([near, far]);
        let generation = state.generation;
        drop(state);
        for (ends, nodes) in directions {
            let (reader, writer) = (Arc::clone(this), Arc::clone(this));
            let take = move |from: &mut TcpStream| {
                let message = reader.take_in(from, nodes[0]);
                // An error ends the connection as well.
                message.inspect_err(|_| reader.disconnected(generation, nodes))
            };
            let deliver = move |to: &mut TcpStream, message: Passing| {
                writer.give_out(to, &message, generation, nodes[1])
            };
            carry(ends, this.properties, QUEUE, take, deliver);
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

    /// Reads a message; returns its length, too.
    fn take_in(&self, from: &mut TcpStream, node: usize) -> io::Result<(usize, Passing)> {
        let mut payload = Vec::new();
        let header = p2p::read(from, REGTEST, MESSAGE_BYTES_MAX, &mut payload)?;
        let content = Message::parse(header.command, &payload)
            .map_or(Content::Other, |message| Content::of(&message));
        let bytes = FrameHeader::SIZE + payload.len();
        self.record.sent(node, header.command.as_str(), bytes, &content);
        Ok((bytes, Passing { header, payload, content }))
    }

    fn give_out(
        &self,
        to: &mut TcpStream,
        Passing { header, payload, content }: &Passing,
        generation: u64,
        node: usize,
    ) -> io::Result<()> {
        let mut state = self.lock();
        while state.link == LinkState::Held && state.generation == generation {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        let message = [&header.to_bytes()[..], payload].concat();
        to.write_all(&message)?;
        self.record.delivered(node, header.command.as_str(), message.len(), content);
        Ok(())
    }
}

/// A message in flight.
struct Passing {
    header: FrameHeader,
    payload: Vec<u8>,
    content: Content,
}

/// Messages in flight per direction; beyond that the sender waits.
const QUEUE: usize = 1_000;

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;
    use std::thread;
    use std::time::Duration;

    use super::*;

    const PROPERTIES: Properties = Properties { bytes_per_s: 1e9, delay: Duration::from_millis(1) };

    fn read(stream: &mut TcpStream) -> String {
        p2p::read(stream, REGTEST, MESSAGE_BYTES_MAX, &mut Vec::new()).unwrap().command.to_string()
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
        let mut near = TcpStream::connect(proxy.address()).unwrap();
        let mut far = server.accept().unwrap().0;
        near.write_all(&Message::Ping(7).to_bytes(REGTEST)).unwrap();
        assert_eq!(read(&mut far), "ping");
        proxy.set(LinkState::Held);
        near.write_all(&Message::Pong(7).to_bytes(REGTEST)).unwrap();
        far.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        assert!(far.read_exact(&mut [0; 1]).is_err(), "it is held back");
        far.set_read_timeout(None).unwrap();
        proxy.set(LinkState::Open);
        assert_eq!(read(&mut far), "pong");
        proxy.set(LinkState::Broken);
        assert_eq!(far.read(&mut [0; 1]).unwrap(), 0);
        assert!(!proxy.is_connected() && proxy.disconnects().is_empty(), "it was cut by us");
        let mut again = TcpStream::connect(proxy.address()).unwrap();
        assert!(again.read_exact(&mut [0; 1]).is_err(), "nobody is let in");
    }

    #[test]
    fn reports_the_end_that_disconnected() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let record = Arc::new(Record::new(2));
        let far = server.local_addr().unwrap();
        let proxy = Proxy::start([0, 1], far, 211, PROPERTIES, &record).unwrap();
        let _near = TcpStream::connect(proxy.address()).unwrap();
        drop(server.accept().unwrap());
        until(|| !proxy.is_connected() && proxy.shared.lock().generation == 2);
        let disconnects = proxy.disconnects();
        assert_eq!(disconnects.len(), 1);
        assert_eq!((disconnects[0].by, disconnects[0].from), (1, 0));
    }
}
