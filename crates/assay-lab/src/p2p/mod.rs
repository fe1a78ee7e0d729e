//! The peer-to-peer protocol of the experiments: messages on a stream, encoded by `assay-wire`, the synthetic blocks, headers and
//! transactions that peers send (`synthetic.rs`), and a client that downloads blocks ([`download`]).

pub mod download;
pub(crate) mod synthetic;

use std::io::{self, ErrorKind, Read, Write as _};
use std::net::TcpStream;

use assay_wire::p2p::{FrameHeader, Locator, MESSAGE_BYTES_MAX, Message, NetAddress, Version};
use assay_wire::{BlockHash, Encoding, Transaction, TxIn};

/// First bytes of every message of a network.
pub type Magic = [u8; 4];
/// Regtest (Core `kernel/chainparams.cpp`).
pub(crate) const REGTEST: Magic = [0xfa, 0xbf, 0xb5, 0xda];
/// Bitcoin Cash regtest (BCHN `chainparams.cpp`, `netMagic`).
pub(crate) const CASH_REGTEST: Magic = [0xda, 0xb5, 0xbf, 0xfa];
/// Hash of regtest's genesis block.
pub(crate) const GENESIS: BlockHash = BlockHash([
    0x06, 0x22, 0x6e, 0x46, 0x11, 0x1a, 0x0b, 0x59, 0xca, 0xaf, 0x12, 0x60, 0x43, 0xeb, 0x5b, 0xbf,
    0x28, 0xc3, 0x4f, 0x3a, 0x5e, 0x33, 0x2a, 0x1f, 0xc7, 0xb2, 0xb7, 0x3c, 0xf1, 0x88, 0x91, 0x0f,
]);
/// Announced protocol version.
pub(crate) const VERSION: u32 = 70016;
/// `NODE_NETWORK` and `NODE_WITNESS`: a peer that others would sync from.
const SERVICES: u64 = 1 | 8;
/// A hash of a block or transaction in wire order.
pub(crate) type Hash = [u8; 32];

/// Reads one message of at most `length_max` bytes; its payload replaces `payload`. The checksum is not verified: most bytes come
/// over loopback.
pub(crate) fn read(
    stream: &mut impl Read,
    magic: Magic,
    length_max: u32,
    payload: &mut Vec<u8>,
) -> io::Result<FrameHeader> {
    let mut head = [0; FrameHeader::SIZE];
    stream.read_exact(&mut head)?;
    let header = FrameHeader::parse(&head, magic, length_max)
        .map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
    payload.clear();
    // Grows with the received bytes: a length alone reserves no memory.
    let length = header.length as usize;
    if stream.take(length as u64).read_to_end(payload)? < length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(header)
}

/// Reads messages on regtest until the connection ends, and writes the messages that `answer` appends. Answers pings itself;
/// malformed messages have no answer.
pub(crate) fn converse(
    stream: &mut TcpStream,
    mut answer: impl FnMut(&mut TcpStream, &Message<'_>, &mut Vec<u8>) -> io::Result<()>,
) -> io::Result<()> {
    let (mut payload, mut out) = (Vec::new(), Vec::new());
    loop {
        let header = read(stream, REGTEST, MESSAGE_BYTES_MAX, &mut payload)?;
        out.clear();
        match Message::parse(header.command, &payload) {
            Ok(Message::Ping(nonce)) => Message::Pong(nonce).write(REGTEST, &mut out),
            Ok(message) => answer(stream, &message, &mut out)?,
            Err(_) => {}
        }
        stream.write_all(&out)?;
    }
}

/// The first message of a connection.
pub(crate) fn version(nonce: u64, user_agent: &str) -> Message<'_> {
    Message::Version(Version {
        version: VERSION as i32,
        services: SERVICES,
        time: 0,
        receiver: NetAddress::default(),
        sender: NetAddress::default(),
        nonce,
        user_agent: user_agent.as_bytes(),
        start_height: 0,
        relay: Some(true),
    })
}

/// A request for the successors of one block.
pub(crate) fn get_headers(above: &BlockHash) -> Message<'_> {
    let hashes = std::slice::from_ref(above).into();
    Message::GetHeaders(Locator { version: VERSION, hashes, stop: BlockHash::ZERO })
}

/// Parses a hash as RPC prints it, in reverse order; `None` if malformed.
pub(crate) fn hash_from_hex(hex: &str) -> Option<Hash> {
    hex.parse().ok().map(|BlockHash(hash)| hash)
}

/// Calls `each` with every input of a serialized transaction; with none if it is malformed: the node will reject it.
pub(crate) fn each_input(raw: &[u8], each: impl FnMut(TxIn<'_>)) {
    if let Ok(tx) = Transaction::parse_first(raw, Encoding::Segwit) {
        tx.view().inputs().for_each(each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_messages_of_its_network() {
        let bytes = [Message::Ping(7), Message::Verack].map(|one| one.to_bytes(REGTEST)).concat();
        let (mut stream, mut payload) = (&bytes[..], Vec::new());
        let header = read(&mut stream, REGTEST, MESSAGE_BYTES_MAX, &mut payload).unwrap();
        assert_eq!(Message::parse(header.command, &payload), Ok(Message::Ping(7)));
        let header = read(&mut stream, REGTEST, MESSAGE_BYTES_MAX, &mut payload).unwrap();
        assert_eq!((header.command.as_str(), payload.len()), ("verack", 0));
        assert!(
            read(&mut &bytes[..30], REGTEST, MESSAGE_BYTES_MAX, &mut payload).is_err(),
            "it ends early"
        );
        assert!(read(&mut &bytes[..], CASH_REGTEST, MESSAGE_BYTES_MAX, &mut payload).is_err());
    }

    #[test]
    fn the_genesis_block_is_that_of_regtest() {
        let hex = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206";
        assert_eq!(GENESIS.to_string(), hex);
    }
}
