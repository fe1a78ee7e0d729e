//! A misbehaving peer with a chain.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::header_chain::HeaderChain;
use super::link::{end, listen};
use crate::wire::{self, Hash};

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
pub(crate) struct MisbehavingPeer {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
}

impl MisbehavingPeer {
    pub(crate) fn start(
        header_chain: HeaderChain,
        misbehaviour: Misbehaviour,
        index: u8,
    ) -> io::Result<Self> {
        let listener = listen(index)?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let header_chain = Arc::new(header_chain);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let (header_chain, stopped) = (Arc::clone(&header_chain), Arc::clone(&stopped));
                let Ok(stream) = stream else { continue };
                // Ends with the connection.
                thread::spawn(move || Talk { stream, header_chain, misbehaviour, stopped }.go_on());
            }
        });
        Ok(Self { address, stop })
    }
}

impl Drop for MisbehavingPeer {
    fn drop(&mut self) {
        end(&self.stop, self.address);
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
        loop {
            let (command, payload) = read_message(&mut self.stream)?;
            let mut out = Vec::new();
            match command.as_str() {
                "version" => wire::put_handshake(&mut out, 0),
                "ping" => wire::put(&mut out, "pong", &payload),
                "getheaders" => {
                    wire::put(
                        &mut out,
                        "headers",
                        &wire::headers_payload(self.header_chain.headers()),
                    );
                }
                "getdata" => self.answer_data(&payload)?,
                _ => {}
            }
            self.stream.write_all(&out)?;
        }
    }

    fn answer_data(&mut self, payload: &[u8]) -> io::Result<()> {
        if self.misbehaviour == Misbehaviour::Stalls {
            return Ok(());
        }
        // One count byte for up to 252 entries of 36 bytes: nodes request 16 blocks at a time.
        for entry in payload.get(1..).unwrap_or_default().chunks_exact(36) {
            let hash: Hash = entry[4..].try_into().expect("36 bytes are 4 and 32");
            let Some(block) = self.header_chain.block(&hash) else { continue };
            let mut out = Vec::new();
            wire::put(&mut out, "block", &block?);
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

fn read_message(stream: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut head = [0; wire::HEAD_BYTES];
    stream.read_exact(&mut head)?;
    let (command, length) = wire::read_head(&head).ok_or(io::ErrorKind::InvalidData)?;
    let mut payload = vec![0; length];
    stream.read_exact(&mut payload)?;
    Ok((command, payload))
}
