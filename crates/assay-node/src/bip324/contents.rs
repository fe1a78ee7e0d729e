//! What is in a packet: the name of a message, in one byte where BIP324 gives it a number and in 13 otherwise, and its payload.

use assay_wire::p2p::Command;

/// The bytes that stand for a name: one, or zero and the name as in version 1.
pub fn name_bytes(command: Command) -> ([u8; NAME_BYTES_MAX], usize) {
    let mut bytes = [0; NAME_BYTES_MAX];
    match SHORT.iter().position(|name| *name == command.as_str()) {
        Some(index) => {
            bytes[0] = index as u8 + 1;
            (bytes, 1)
        }
        None => {
            bytes[1..].copy_from_slice(&command.to_bytes());
            (bytes, NAME_BYTES_MAX)
        }
    }
}

/// Name and payload; `None` where the name is missing, malformed, or a number without a meaning.
pub fn split(contents: &[u8]) -> Option<(Command, &[u8])> {
    let (number, rest) = contents.split_first()?;
    if *number == 0 {
        let (name, payload) = rest.split_first_chunk()?;
        return Some((Command::parse(name)?, payload));
    }
    let name = SHORT.get(usize::from(*number) - 1).filter(|name| !name.is_empty())?;
    Some((Command::new(name), rest))
}

/// Bytes of a name at most.
pub const NAME_BYTES_MAX: usize = 13;

/// Names from number 1 on (BIP324, "v2 Bitcoin P2P message structure"; `feature` is BIP434's). Numbers without a name are not
/// assigned.
const SHORT: [&str; 37] = [
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
    fn names_are_short_where_they_have_a_number() {
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
    fn names_that_are_none() {
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
