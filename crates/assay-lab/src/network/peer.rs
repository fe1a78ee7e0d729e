//! A misbehaving peer with a chain.

use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use assay_wire::BlockHash;
use assay_wire::p2p::{HEADERS_MAX, Inventory, Items, Message};

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
            let talk = Talk { header_chain, misbehaviour, stopped };
            // Ends with the connection.
            thread::spawn(move || talk.go_on(stream));
        };
        Listener::start(index, accept).map(Self)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0.address
    }
}

struct Talk {
    header_chain: Arc<HeaderChain>,
    misbehaviour: Misbehaviour,
    stopped: Arc<AtomicBool>,
}

impl Talk {
    /// Runs until either side disconnects. A node that begins an encrypted transport is disconnected, and reconnects unencrypted.
    fn go_on(&self, mut stream: TcpStream) -> io::Result<()> {
        p2p::converse(&mut stream, |stream, message, out| {
            match *message {
                Message::Version(_) => {
                    p2p::version(0, "/hostile:0.1/").write(REGTEST, out);
                    Message::Verack.write(REGTEST, out);
                }
                Message::GetHeaders(_) => {
                    let headers = self.header_chain.headers();
                    let headers = &headers[..headers.len().min(HEADERS_MAX)];
                    Message::Headers(headers.into()).write(REGTEST, out);
                }
                Message::GetData(entries) => self.answer_data(stream, entries)?,
                _ => {}
            }
            Ok(())
        })
    }

    fn answer_data(&self, stream: &mut TcpStream, entries: Items<'_, Inventory>) -> io::Result<()> {
        if self.misbehaviour == Misbehaviour::Stalls {
            return Ok(());
        }
        for entry in entries.iter() {
            let Some(block) = self.header_chain.block(BlockHash(entry.hash)) else { continue };
            let out = Message::Block(&block?).to_bytes(REGTEST);
            match self.misbehaviour {
                Misbehaviour::Drips => self.drip(stream, &out)?,
                _ => stream.write_all(&out)?,
            }
        }
        Ok(())
    }

    fn drip(&self, stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(100) {
            if self.stopped.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            stream.write_all(piece)?;
            thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }
}
