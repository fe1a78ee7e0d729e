//! Encodes P2P messages of hostile peers, misbehaving peers and emitters, independently of the node's code.

pub(crate) mod compact;
pub(crate) mod tx;

use assay_report::stats::random::SplitMix64;
use sha2::{Digest as _, Sha256};

/// First bytes of every message.
pub(crate) type Magic = [u8; 4];
/// Regtest (Core `kernel/chainparams.cpp`).
pub(crate) const REGTEST: Magic = [0xfa, 0xbf, 0xb5, 0xda];
/// Bitcoin Cash regtest (BCHN `chainparams.cpp`, `netMagic`).
pub(crate) const CASH_REGTEST: Magic = [0xda, 0xb5, 0xbf, 0xfa];
/// Announced protocol version.
const VERSION: i32 = 70016;
/// `NODE_NETWORK` and `NODE_WITNESS`: a peer that others would sync from.
const SERVICES: u64 = 1 | 8;
/// Inventory types (BIP144, BIP152).
pub(crate) const INV_TX: u32 = 1;
pub(crate) const INV_BLOCK: u32 = 2;
pub(crate) const INV_COMPACT_BLOCK: u32 = 4;
/// By wtxid (BIP339).
pub(crate) const INV_WTX: u32 = 5;
/// Requests witnesses as well.
pub(crate) const WITNESS_FLAG: u32 = 1 << 30;
pub(crate) const INV_WITNESS_BLOCK: u32 = INV_BLOCK | WITNESS_FLAG;
/// The easiest target, that of regtest.
const BITS: u32 = 0x207f_ffff;
/// A hash in wire order.
pub(crate) type Hash = [u8; 32];
pub(crate) const HEADER_BYTES: usize = 80;
/// A header in wire format.
pub(crate) type RawHeader = [u8; HEADER_BYTES];
/// Length of a message header: magic, command, length and checksum.
pub(crate) const HEAD_BYTES: usize = 24;
/// Maximum payload (Core `net.h`, `MAX_PROTOCOL_MESSAGE_LENGTH`).
const PAYLOAD_BYTES_MAX: usize = 4_000_000;

/// Hash of regtest's genesis block.
pub(crate) const GENESIS: Hash = [
    0x06, 0x22, 0x6e, 0x46, 0x11, 0x1a, 0x0b, 0x59, 0xca, 0xaf, 0x12, 0x60, 0x43, 0xeb, 0x5b, 0xbf,
    0x28, 0xc3, 0x4f, 0x3a, 0x5e, 0x33, 0x2a, 0x1f, 0xc7, 0xb2, 0xb7, 0x3c, 0xf1, 0x88, 0x91, 0x0f,
];

pub(crate) fn double_sha256(bytes: &[u8]) -> Hash {
    Sha256::digest(Sha256::digest(bytes)).into()
}

/// Parses a hash as RPC prints it, in reverse order; `None` if malformed.
pub(crate) fn hash_from_hex(hex: &str) -> Option<Hash> {
    let mut hash = [0; 32];
    if hex.len() != 64 {
        return None;
    }
    faster_hex::hex_decode(hex.as_bytes(), &mut hash).ok()?;
    hash.reverse();
    Some(hash)
}

/// The inverse of [`hash_from_hex`].
pub(crate) fn hash_to_hex(hash: &Hash) -> String {
    let mut hash = *hash;
    hash.reverse();
    faster_hex::hex_string(&hash)
}

/// Appends a regtest message.
pub(crate) fn put(out: &mut Vec<u8>, command: &str, payload: &[u8]) {
    put_head(out, command, payload.len(), payload);
    out.extend_from_slice(payload);
}

/// Appends a regtest message header that states `length` bytes, with the checksum of `payload`.
pub(crate) fn put_head(out: &mut Vec<u8>, command: &str, length: usize, payload: &[u8]) {
    out.extend_from_slice(&head(REGTEST, command, length, payload));
}

pub(crate) fn head(magic: Magic, command: &str, length: usize, payload: &[u8]) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&magic);
    head[4..4 + command.len()].copy_from_slice(command.as_bytes());
    head[16..20].copy_from_slice(&(length as u32).to_le_bytes());
    head[20..].copy_from_slice(&double_sha256(payload)[..4]);
    head
}

/// Appends a handshake without waiting for the other side.
pub(crate) fn put_handshake(out: &mut Vec<u8>, nonce: u64) {
    put_version(out, nonce, "/hostile:0.1/");
    put(out, "verack", &[]);
}

/// Appends a `version` message on regtest.
pub(crate) fn put_version(out: &mut Vec<u8>, nonce: u64, agent: &str) {
    put(out, "version", &version_payload(nonce, agent));
}

pub(crate) fn version_payload(nonce: u64, agent: &str) -> Vec<u8> {
    let mut version = Vec::with_capacity(100);
    version.extend_from_slice(&VERSION.to_le_bytes());
    version.extend_from_slice(&SERVICES.to_le_bytes());
    version.extend_from_slice(&0_u64.to_le_bytes());
    version.extend_from_slice(&[0; 52]);
    version.extend_from_slice(&nonce.to_le_bytes());
    version.push(agent.len() as u8);
    version.extend_from_slice(agent.as_bytes());
    version.extend_from_slice(&0_u32.to_le_bytes());
    version.push(1);
    version
}

/// Command and length of the payload; `None` if it is no regtest message.
pub(crate) fn read_head(head: &[u8; HEAD_BYTES]) -> Option<(String, usize)> {
    read_head_of(REGTEST, head)
}

/// The same on a network with this magic.
pub(crate) fn read_head_of(magic: Magic, head: &[u8; HEAD_BYTES]) -> Option<(String, usize)> {
    let (found, rest) = head.split_first_chunk::<4>()?;
    let (name, rest) = rest.split_first_chunk::<12>()?;
    let length = u32::from_le_bytes(*rest.first_chunk()?) as usize;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    let name = String::from_utf8(name[..end].to_vec()).ok()?;
    (*found == magic && length <= PAYLOAD_BYTES_MAX).then_some((name, length))
}

/// Payload of `headers`, limited to one message.
pub(crate) fn headers_payload(headers: &[RawHeader]) -> Vec<u8> {
    let headers = &headers[..headers.len().min(HEADERS_MAX)];
    let mut list = Vec::with_capacity(headers.len() * (HEADER_BYTES + 1) + 3);
    put_count(&mut list, headers.len());
    for header in headers {
        list.extend_from_slice(header);
        list.push(0);
    }
    list
}

/// Appends a compact size.
pub(crate) fn put_count(out: &mut Vec<u8>, count: usize) {
    match count {
        0..=0xfc => out.push(count as u8),
        0xfd..=0xffff => {
            out.push(0xfd);
            out.extend_from_slice(&(count as u16).to_le_bytes());
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&(count as u32).to_le_bytes());
        }
    }
}

/// Reads a compact size from the front.
pub(crate) fn read_count(rest: &mut &[u8]) -> Option<usize> {
    let (&first, after) = rest.split_first()?;
    let width = match first {
        0xfd => 2,
        0xfe => 4,
        0xff => 8,
        small => {
            *rest = after;
            return Some(usize::from(small));
        }
    };
    let mut bytes = [0; 8];
    bytes[..width].copy_from_slice(after.get(..width)?);
    *rest = &after[width..];
    usize::try_from(u64::from_le_bytes(bytes)).ok()
}

/// Entries of an `inv` or `getdata`: type and hash.
pub(crate) fn read_inventory(mut payload: &[u8]) -> Option<Vec<(u32, Hash)>> {
    let count = read_count(&mut payload)?;
    let entry = |entry: &[u8]| {
        let (kind, hash) = entry.split_first_chunk::<4>().expect("36 bytes");
        (u32::from_le_bytes(*kind), hash.try_into().expect("36 bytes are 4 and 32"))
    };
    let is_whole = count.checked_mul(36) == Some(payload.len());
    is_whole.then(|| payload.chunks_exact(36).map(entry).collect())
}

/// Payload of `inv`, `getdata` or `notfound`.
pub(crate) fn inventory(entries: &[(u32, Hash)]) -> Vec<u8> {
    let mut list = Vec::with_capacity(entries.len() * 36 + 5);
    put_count(&mut list, entries.len());
    for (kind, hash) in entries {
        list.extend_from_slice(&kind.to_le_bytes());
        list.extend_from_slice(hash);
    }
    list
}

/// Hashes of the headers of a `headers`.
pub(crate) fn read_headers(mut payload: &[u8]) -> Option<Vec<Hash>> {
    let count = read_count(&mut payload)?;
    let entry_bytes = HEADER_BYTES + 1;
    let is_whole = count.checked_mul(entry_bytes) == Some(payload.len());
    let hash = |entry: &[u8]| double_sha256(&entry[..HEADER_BYTES]);
    is_whole.then(|| payload.chunks_exact(entry_bytes).map(hash).collect())
}

/// `count` unknown hashes for `inv` and `getdata`.
pub(crate) fn unknown_inventory(kind: u32, count: usize, random: &mut SplitMix64) -> Vec<u8> {
    let mut list = Vec::with_capacity(count * 36 + 5);
    put_count(&mut list, count);
    for _ in 0..count {
        list.extend_from_slice(&kind.to_le_bytes());
        list.extend_from_slice(&random.bytes::<32>());
    }
    list
}

/// A header, with valid regtest work if `is_mined`, otherwise with invalid work.
pub(crate) fn header(prev: &Hash, merkle_root: &Hash, time: u32, is_mined: bool) -> RawHeader {
    header_of_version(0x2000_0000, prev, merkle_root, time, is_mined)
}

/// The same with the given version.
pub(crate) fn header_of_version(
    version: u32,
    prev: &Hash,
    merkle_root: &Hash,
    time: u32,
    is_mined: bool,
) -> RawHeader {
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&version.to_le_bytes());
    header[4..36].copy_from_slice(prev);
    header[36..68].copy_from_slice(merkle_root);
    header[68..72].copy_from_slice(&time.to_le_bytes());
    header[72..76].copy_from_slice(&BITS.to_le_bytes());
    for nonce in 0_u32.. {
        header[76..].copy_from_slice(&nonce.to_le_bytes());
        // The target leaves the highest bit clear.
        if (double_sha256(&header)[31] < 0x80) == is_mined {
            break;
        }
    }
    header
}

/// A transaction that spends an unknown output, and pays to anyone.
pub(crate) fn orphan(random: &mut SplitMix64) -> Vec<u8> {
    let mut tx = Vec::with_capacity(100);
    tx.extend_from_slice(&2_u32.to_le_bytes());
    tx.push(1);
    tx.extend_from_slice(&random.bytes::<32>());
    tx.extend_from_slice(&[0; 4]);
    tx.push(0);
    tx.extend_from_slice(&u32::MAX.to_le_bytes());
    tx.push(1);
    tx.extend_from_slice(&100_000_u64.to_le_bytes());
    // A witness program of version 0.
    tx.extend_from_slice(&[22, 0, 20]);
    tx.extend_from_slice(&random.bytes::<32>()[..20]);
    tx.extend_from_slice(&[0; 4]);
    tx
}

/// A block of one transaction that is no coinbase, with a matching merkle root.
pub(crate) fn invalid_block(prev: &Hash, time: u32, random: &mut SplitMix64) -> Vec<u8> {
    let tx = orphan(random);
    let mut block = header(prev, &double_sha256(&tx), time, true).to_vec();
    block.push(1);
    block.extend_from_slice(&tx);
    block
}

/// Time of a header, seconds since 1970.
pub(crate) fn time_of(header: &RawHeader) -> u32 {
    u32::from_le_bytes([header[68], header[69], header[70], header[71]])
}

/// A block of a coinbase alone that pays `amount` satoshi to anyone.
pub(crate) fn coinbase_block(prev: &Hash, height: u32, time: u32, amount: u64) -> Vec<u8> {
    let tx = coinbase(height, amount);
    let mut block = header(prev, &double_sha256(&tx), time, true).to_vec();
    block.push(1);
    block.extend_from_slice(&tx);
    block
}

/// A coinbase that pays `amount` satoshi to anyone.
pub(crate) fn coinbase(height: u32, amount: u64) -> Vec<u8> {
    let mut tx = Vec::with_capacity(100);
    tx.extend_from_slice(&2_u32.to_le_bytes());
    tx.push(1);
    tx.extend_from_slice(&[0; 32]);
    tx.extend_from_slice(&u32::MAX.to_le_bytes());
    // The height (BIP34), up to 16 as a one-byte opcode, followed by an arbitrary byte.
    if height <= 16 {
        tx.extend_from_slice(&[2, 0x50 + height as u8, 0]);
    } else {
        let number = script_number(height);
        tx.push(number.len() as u8 + 2);
        tx.push(number.len() as u8);
        tx.extend_from_slice(&number);
        tx.push(0);
    }
    tx.extend_from_slice(&u32::MAX.to_le_bytes());
    tx.push(1);
    tx.extend_from_slice(&amount.to_le_bytes());
    // OP_TRUE
    tx.extend_from_slice(&[1, 0x51]);
    tx.extend_from_slice(&[0; 4]);
    tx
}

/// A minimally encoded script number with its length.
fn script_number(value: u32) -> Vec<u8> {
    let mut bytes: Vec<u8> = value.to_le_bytes().to_vec();
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    if bytes.last().is_some_and(|byte| byte & 0x80 != 0) {
        bytes.push(0);
    }
    bytes
}

/// A compact block (BIP152) with valid work and identical short ids.
pub(crate) fn colliding_compact_block(
    prev: &Hash,
    time: u32,
    count: usize,
    random: &mut SplitMix64,
) -> Vec<u8> {
    let mut block = header(prev, &random.bytes::<32>(), time, true).to_vec();
    block.extend_from_slice(&random.next().to_le_bytes());
    put_count(&mut block, count);
    for _ in 0..count {
        block.extend_from_slice(&[1, 2, 3, 4, 5, 6]);
    }
    block.push(1);
    block.push(0);
    block.extend_from_slice(&orphan(random));
    block
}

/// A list of unused IPv4 addresses.
pub(crate) fn addresses(count: usize, time: u32, random: &mut SplitMix64) -> Vec<u8> {
    let mut list = Vec::with_capacity(count * 30 + 3);
    put_count(&mut list, count);
    for _ in 0..count {
        list.extend_from_slice(&time.to_le_bytes());
        list.extend_from_slice(&SERVICES.to_le_bytes());
        list.extend_from_slice(&[0; 10]);
        list.extend_from_slice(&[0xff; 2]);
        let address = random.next().to_le_bytes();
        // 11.0.0.0/8 to 99.0.0.0/8 contains no local range.
        list.extend_from_slice(&[11 + address[0] % 89, address[1], address[2], address[3]]);
        list.extend_from_slice(&8333_u16.to_be_bytes());
    }
    list
}

/// Maximum number of headers per message (Core `net_processing.cpp`, `MAX_HEADERS_RESULTS`).
pub(crate) const HEADERS_MAX: usize = 2_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inventories_are_read_as_they_are_written() {
        for count in [0, 1, 300] {
            let entries: Vec<(u32, Hash)> = (0..count).map(|n| (n, [n as u8; 32])).collect();
            assert_eq!(read_inventory(&inventory(&entries)), Some(entries));
        }
        assert_eq!(read_inventory(&[1, 0]), None);
    }

    #[test]
    fn heights_are_script_numbers() {
        for (height, expected) in
            [(17, vec![17]), (127, vec![127]), (128, vec![128, 0]), (400, vec![0x90, 1])]
        {
            assert_eq!(script_number(height), expected);
        }
    }

    #[test]
    fn head_round_trip() {
        let mut out = Vec::new();
        put_head(&mut out, "getdata", 37, &[]);
        let head = out.first_chunk().unwrap();
        assert_eq!(read_head(head), Some(("getdata".to_owned(), 37)));
        assert_eq!(read_head(&[7; HEAD_BYTES]), None);
    }

    #[test]
    fn headers_have_work_or_not() {
        for (is_mined, expected) in [(true, true), (false, false)] {
            let header = header(&GENESIS, &[7; 32], 1, is_mined);
            assert_eq!(double_sha256(&header)[31] < 0x80, expected);
        }
    }

    #[test]
    fn messages_are_framed() {
        let mut out = Vec::new();
        put(&mut out, "verack", &[]);
        // The checksum of an empty payload, as in any capture.
        assert_eq!(
            faster_hex::hex_string(&out),
            "fabfb5da76657261636b000000000000000000005df6e0e2"
        );
    }
}
