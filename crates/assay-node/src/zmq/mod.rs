//! ZeroMQ notifications (Core `zmq/`): blocks, transactions and their sequence, as messages of PUB sockets.
//!
//! Publishing never blocks: a slow subscriber loses messages, and detects it by the gap in sequence numbers.

mod address;
mod message;
mod session;
mod socket;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use assay_engine::{Engine, Event, EventBlock};
use assay_wire::BlockHash;
use tokio::runtime::Handle;

use self::message::Message;
use self::socket::Socket;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Topic {
    HashBlock,
    /// Txids of transactions that enter the mempool, or are connected or disconnected with a block.
    HashTx,
    RawBlock,
    /// Serialized transactions of [`Topic::HashTx`].
    RawTx,
    /// Connected and disconnected blocks, and mempool changes with their sequence numbers.
    Sequence,
}

impl Topic {
    pub const ALL: [Self; 5] =
        [Self::HashBlock, Self::HashTx, Self::RawBlock, Self::RawTx, Self::Sequence];

    pub fn name(self) -> &'static str {
        match self {
            Self::HashBlock => "hashblock",
            Self::HashTx => "hashtx",
            Self::RawBlock => "rawblock",
            Self::RawTx => "rawtx",
            Self::Sequence => "sequence",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    pub topic: Topic,
    /// `tcp://HOST:PORT`, `ipc://PATH` or `unix:PATH`.
    pub address: String,
    /// Queue limit per subscriber, messages; 0 for no limit. The first publication of an address determines it.
    pub high_water_mark: u32,
}

impl Publication {
    /// Address in ZeroMQ's notation.
    pub(crate) fn zmq_address(&self) -> String {
        match self.address.strip_prefix("unix:") {
            Some(path) => format!("ipc://{path}"),
            None => self.address.clone(),
        }
    }
}

/// Core's `DEFAULT_ZMQ_SNDHWM`.
pub const HIGH_WATER_MARK_DEFAULT: u32 = 1000;

/// Bound sockets, before publishing starts.
pub(crate) struct ZmqSockets {
    topic_sockets: Vec<TopicSocket>,
    publications: Vec<Publication>,
}

impl ZmqSockets {
    /// Binds all addresses. As in Core, a failure disables all notifications and is logged.
    pub(crate) fn bind(publications: &[Publication], runtime: &Handle) -> Option<Self> {
        let mut sockets: HashMap<String, Arc<Socket>> = HashMap::new();
        let mut topic_sockets = Vec::new();
        let mut publications = publications.to_vec();
        publications.sort_by_key(|one| one.topic);
        for one in &publications {
            let address = one.zmq_address();
            let socket = match sockets.get(&address) {
                Some(socket) => Arc::clone(socket),
                None => match bind(&address, one.high_water_mark, runtime) {
                    Ok(socket) => Arc::clone(sockets.entry(address).or_insert(Arc::new(socket))),
                    Err(error) => {
                        let name = one.topic.name();
                        tracing::warn!("No ZeroMQ notifications: pub{name} at {address}: {error}");
                        return None;
                    }
                },
            };
            topic_sockets.push(TopicSocket { topic: one.topic, socket, sequence: 0 });
        }
        (!topic_sockets.is_empty()).then_some(Self { topic_sockets, publications })
    }

    pub(crate) fn publications(&self) -> &[Publication] {
        &self.publications
    }

    /// Publishes engine events until the engine closes.
    pub(crate) fn publish(self, engine: &Arc<Engine>) -> std::io::Result<JoinHandle<()>> {
        let (engine, topic_sockets) = (Arc::clone(engine), self.topic_sockets);
        let mut publisher = Publisher { engine, topic_sockets, last: None };
        thread::Builder::new().name("zmq".to_owned()).spawn(move || publisher.run())
    }
}

fn bind(address: &str, high_water_mark: u32, runtime: &Handle) -> std::io::Result<Socket> {
    let address = address::Address::from_str(address)?;
    Socket::bind(&address, high_water_mark as usize, runtime)
}

/// A topic on a socket, with its next sequence number.
struct TopicSocket {
    topic: Topic,
    socket: Arc<Socket>,
    sequence: u32,
}

struct Publisher {
    engine: Arc<Engine>,
    topic_sockets: Vec<TopicSocket>,
    /// Block of the last event, usually the next tip.
    last: Option<EventBlock>,
}

impl Publisher {
    fn run(&mut self) {
        while let Some(events) = self.engine.take_events(WAIT) {
            for event in events {
                self.publish(event);
            }
        }
    }

    fn publish(&mut self, event: Event) {
        match event {
            Event::Added { tx, txid, sequence } => {
                self.transaction(&txid.0, tx.bytes());
                self.send(Topic::Sequence, || message::change(&txid.0, b'A', sequence));
            }
            Event::Removed { txid, sequence } => {
                self.send(Topic::Sequence, || message::change(&txid.0, b'R', sequence));
            }
            Event::Connected(block) => {
                self.block(&block, b'C');
                self.last = Some(block);
            }
            Event::Disconnected(block) => self.block(&block, b'D'),
            Event::Tip(hash) => self.tip(&hash),
            Event::Lost => {
                tracing::warn!("ZeroMQ notifications were lost: events came faster than they went");
                for topic_socket in &mut self.topic_sockets {
                    // Subscribers detect the gap.
                    topic_socket.sequence = topic_socket.sequence.wrapping_add(1);
                }
            }
        }
    }

    fn transaction(&mut self, txid: &[u8; 32], raw: &[u8]) {
        self.send(Topic::HashTx, || message::shown(txid).to_vec());
        self.send(Topic::RawTx, || raw.to_vec());
    }

    fn block(&mut self, block: &EventBlock, label: u8) {
        if self.topic_sockets.iter().any(|one| matches!(one.topic, Topic::HashTx | Topic::RawTx)) {
            for (tx, txid) in block.block().txs().zip(block.txids()) {
                self.transaction(&txid.0, tx.raw());
            }
        }
        self.send(Topic::Sequence, || message::labelled(&block.hash().0, label));
    }

    fn tip(&mut self, hash: &BlockHash) {
        self.send(Topic::HashBlock, || message::shown(&hash.0).to_vec());
        if !self.topic_sockets.iter().any(|one| one.topic == Topic::RawBlock) {
            return;
        }
        let kept = self.last.take().filter(|block| block.hash() == hash);
        let raw = match kept {
            Some(block) => Some(block.block().bytes().to_vec()),
            None => self.engine.blocks().read(hash).ok().flatten(),
        };
        if let Some(raw) = raw {
            self.send(Topic::RawBlock, || raw);
        } else {
            tracing::error!("Cannot read block {hash} for ZeroMQ");
        }
    }

    /// Sends a message on every socket of a topic.
    fn send(&mut self, topic: Topic, body: impl FnOnce() -> Vec<u8>) {
        let mut topic_sockets =
            self.topic_sockets.iter_mut().filter(|one| one.topic == topic).peekable();
        if topic_sockets.peek().is_none() {
            return;
        }
        let body = body();
        for topic_socket in topic_sockets {
            let message = Message::new(topic.name(), &body, topic_socket.sequence);
            topic_socket.socket.send(&Arc::new(message));
            topic_socket.sequence = topic_socket.sequence.wrapping_add(1);
        }
    }
}

/// Poll interval for the engine's end; events wake the thread at once.
const WAIT: Duration = Duration::from_mins(1);
