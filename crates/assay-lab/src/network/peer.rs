//! A misbehaving peer with a chain.

use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use assay_wire::BlockHash;
use assay_wire::p2p::{HEADERS_MAX, Inventory, Items, MESSAGE_BYTES_MAX, Message};

use super::header_chain::HeaderChain;
use super::link::Listener;
use crate::p2p::{self, REGTEST};

/// Response of such a peer to a block request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Misbehaviour {
    Gives,
    /// It sends nothing.
    Stalls,
    /// It sends a thousand bytes a second.
    Drips,
}

/// The peer; dropping it disconnects.
pub(crate) struct MisbehavingPeer(Listener);

impl MisbehavingPeer {
    pub(crate) fn start(
        header_chain: HeaderChain,
        misbehaviour: Misbehaviour,
        index: u8,
    ) -> io::Result<Self> {
        let header_chain = Arc::new(header_chain);
        let accept = move |stream, stopped: &Arc<AtomicBool>| {
            let (header_chain, stopped) = (Arc::clone(&header_chain), Arc::clone(stopped));
            // Ends with the connection.
            thread::spawn(move || Talk { stream, header_chain, misbehaviour, stopped }.go_on());
        };
        Listener::start(index, accept).map(Self)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.address
    }
}

struct Talk {
    stream: TcpStream,
    header_chain: Arc<HeaderChain>,
    misbehaviour: Misbehaviour,
    stopped: Arc<AtomicBool>,
}

impl Talk {
    /// Runs until either side disconnects. A node that begins an encrypted transport is disconnected, and reconnects unencrypted.
    fn go_on(mut self) -> io::Result<()> {
        let mut payload = Vec::new();
        loop {
            let header = p2p::read(&mut self.stream, REGTEST, MESSAGE_BYTES_MAX, &mut payload)?;
            let mut out = Vec::new();
            match Message::parse(header.command, &payload) {
                Ok(Message::Version(_)) => {
                    p2p::version(0, "/hostile:0.1/").write(REGTEST, &mut out);
                    Message::Verack.write(REGTEST, &mut out);
                }
                Ok(Message::Ping(nonce)) => Message::Pong(nonce).write(REGTEST, &mut out),
                Ok(Message::GetHeaders(_)) => {
                    let headers = self.header_chain.headers();
                    let headers = &headers[..headers.len().min(HEADERS_MAX)];
                    Message::Headers(headers.into()).write(REGTEST, &mut out);
                }
                Ok(Message::GetData(entries)) => self.answer_data(entries)?,
                _ => {}
            }
            self.stream.write_all(&out)?;
        }
    }

    fn answer_data(&mut self, entries: Items<'_, Inventory>) -> io::Result<()> {
        if self.misbehaviour == Misbehaviour::Stalls {
            return Ok(());
        }
        for entry in entries.iter() {
            let Some(block) = self.header_chain.block(BlockHash(entry.hash)) else { continue };
            let out = Message::Block(&block?).to_bytes(REGTEST);
            match self.misbehaviour {
                Misbehaviour::Drips => self.drip(&out)?,
                _ => self.stream.write_all(&out)?,
            }
        }
        Ok(())
    }

    fn drip(&mut self, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(100) {
            if self.stopped.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            self.stream.write_all(piece)?;
            thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }
}
