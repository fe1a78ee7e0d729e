//! An observer of each node: a peer that receives announcements and makes none.
//!
//! It requests high-bandwidth compact blocks (BIP152), and nodes of the Bitcoin Core family announce transactions to it without
//! delay, because they grant it the permission `noban`.

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;

use assay_wire::BlockHash;
use assay_wire::p2p::Message;

use super::message::Content;
use super::record::Record;
use crate::p2p::{self, GENESIS, REGTEST, get_headers};
use crate::swarm::source::dial_and_wait;

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
        let version = p2p::version(1 + node as u64, "/observer:0.1/");
        talk.write_all(&version.to_bytes(REGTEST))?;
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
    p2p::converse(stream, |_, message, out| {
        let content = Content::of(message);
        record.observed(node, &content);
        match (message, &content) {
            (Message::Version(_), _) => {
                // wtxid relay (BIP339) must be negotiated before `verack`.
                Message::WtxidRelay.write(REGTEST, out);
                Message::Verack.write(REGTEST, out);
            }
            (Message::Verack, _) => {
                Message::SendCompact { announce: 1, version: 2 }.write(REGTEST, out);
                get_headers(&GENESIS).write(REGTEST, out);
            }
            // Nodes push compact blocks only to peers known to have the parent, which the header request establishes.
            (Message::Inv(_), Content::Blocks(hashes)) => {
                if let Some(hash) = hashes.last() {
                    get_headers(&BlockHash(*hash)).write(REGTEST, out);
                }
            }
            _ => {}
        }
        Ok(())
    })
}
