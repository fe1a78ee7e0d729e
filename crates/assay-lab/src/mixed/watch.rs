//! An observer of each node: a peer that receives announcements and makes none.
//!
//! It requests high-bandwidth compact blocks (BIP152), and nodes of the Bitcoin Core family announce transactions to it without
//! delay, because they grant it the permission `noban`.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;

use super::message::Content;
use super::record::Record;
use crate::swarm::source::dial_and_wait;
use crate::wire::{self, Hash};

/// The observer; dropping it disconnects.
pub(super) struct Observer(TcpStream);

impl Observer {
    /// Connects to the node with this number.
    pub(super) fn start(
        node: usize,
        address: SocketAddr,
        record: &Arc<Record>,
    ) -> io::Result<Self> {
        // Distinct addresses within the range in `target/member.rs`.
        let source = Ipv4Addr::new(127, 99, 0, 1 + node as u8);
        let stream = dial_and_wait(address, Some(source))?;
        stream.set_nodelay(true)?;
        let mut talk = stream.try_clone()?;
        let mut out = Vec::new();
        wire::put_version(&mut out, 1 + node as u64, "/observer:0.1/");
        talk.write_all(&out)?;
        let record = Arc::clone(record);
        thread::spawn(move || listen(&mut talk, node, &record));
        Ok(Self(stream))
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

fn listen(stream: &mut TcpStream, node: usize, record: &Record) -> io::Result<()> {
    loop {
        let mut head = [0; wire::HEAD_BYTES];
        stream.read_exact(&mut head)?;
        let (command, length) = wire::read_head(&head).ok_or(io::ErrorKind::InvalidData)?;
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload)?;
        let content = Content::of(&command, &payload);
        record.observed(node, &content);
        let mut out = Vec::new();
        match (command.as_str(), &content) {
            ("version", _) => {
                // wtxid relay (BIP339) must be negotiated before `verack`.
                wire::put(&mut out, "wtxidrelay", &[]);
                wire::put(&mut out, "verack", &[]);
            }
            ("verack", _) => {
                wire::put(&mut out, "sendcmpct", &[1, 2, 0, 0, 0, 0, 0, 0, 0]);
                wire::put(&mut out, "getheaders", &locator(&wire::GENESIS));
            }
            ("ping", _) => wire::put(&mut out, "pong", &payload),
            // Nodes push compact blocks only to peers known to have the parent, which the header request establishes.
            ("inv", Content::Blocks(hashes)) => {
                if let Some(hash) = hashes.last() {
                    wire::put(&mut out, "getheaders", &locator(hash));
                }
            }
            _ => {}
        }
        stream.write_all(&out)?;
    }
}

/// A `getheaders` for the successors of one block.
fn locator(hash: &Hash) -> Vec<u8> {
    let mut payload = 70_016_u32.to_le_bytes().to_vec();
    payload.push(1);
    payload.extend_from_slice(hash);
    payload.extend_from_slice(&[0; 32]);
    payload
}
