//! Packet contents: the message type, as one byte if BIP324 assigns one and as 13 bytes otherwise, then the
//! payload.

use assay_wire::p2p::Command;

/// Encoded message type and its length: one byte, or zero followed by the name as in version 1.
pub fn name_bytes(command: Command) -> ([u8; NAME_BYTES_MAX], usize) {
    let mut bytes = [0; NAME_BYTES_MAX];
    if let Some(index) = SHORT.iter().position(|name| *name == command.as_str()) {
        bytes[0] = index as u8 + 1;
        return (bytes, 1);
    }
    bytes[1..].copy_from_slice(&command.to_bytes());
    (bytes, NAME_BYTES_MAX)
}

/// Splits contents into message type and payload; `None` for a missing, malformed or unassigned type.
pub fn split(contents: &[u8]) -> Option<(Command, &[u8])> {
    let (number, rest) = contents.split_first()?;
    if *number == 0 {
        let (name, payload) = rest.split_first_chunk()?;
        return Some((Command::parse(name)?, payload));
    }
    let name = SHORT.get(usize::from(*number) - 1).filter(|name| !name.is_empty())?;
    Some((Command::new(name), rest))
}

pub const NAME_BYTES_MAX: usize = 13;

/// Message types of the one-byte ids from 1 on (BIP324, "v2 Bitcoin P2P message structure"; BIP434 for `feature`).
/// An empty name is an unassigned id.
pub(crate) const SHORT: [&str; 37] = [
    "addr",
    "block",
    "blocktxn",
    "cmpctblock",
    "feefilter",
    "filteradd",
    "filterclear",
    "filterload",
    "getblocks",
    "getblocktxn",
    "getdata",
    "getheaders",
    "headers",
    "inv",
    "mempool",
    "merkleblock",
    "notfound",
    "ping",
    "pong",
    "sendcmpct",
    "tx",
    "getcfilters",
    "cfilter",
    "getcfheaders",
    "cfheaders",
    "getcfcheckpt",
    "cfcheckpt",
    "addrv2",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "feature",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assigned_types_use_one_byte() {
        for (name, expected) in [
            ("addr", &[1][..]),
            ("ping", &[18]),
            ("addrv2", &[28]),
            ("feature", &[37]),
            ("verack", b"\0verack\0\0\0\0\0\0"),
        ] {
            let (bytes, length) = name_bytes(Command::new(name));
            assert_eq!(&bytes[..length], expected);
            let contents = [expected, b"payload"].concat();
            assert_eq!(split(&contents), Some((Command::new(name), &b"payload"[..])));
        }
    }

    #[test]
    fn rejects_invalid_types() {
        let long = |name: &[u8; 12]| [&[0][..], name].concat();
        assert!(split(&long(b"abcdefghijkl")).is_some());
        for wrong in [
            vec![],
            vec![29],
            vec![38],
            vec![255],
            vec![0],
            long(b"abcdefghijkl")[..12].to_vec(),
            long(b"a\0b\0\0\0\0\0\0\0\0\0"),
            long(b"\x1f\0\0\0\0\0\0\0\0\0\0\0"),
        ] {
            assert_eq!(split(&wrong), None, "{wrong:?}");
        }
    }
}
