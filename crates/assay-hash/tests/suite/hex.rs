//! Hex text for vectors.

pub(crate) fn encode(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).expect("four bits");
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

pub(crate) fn decode(text: &str) -> Vec<u8> {
    let digit = |c: u8| char::from(c).to_digit(16).expect("a hexadecimal digit") as u8;
    text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// A hash in display order, as in RPC and block explorers.
pub(crate) fn decode_reversed(text: &str) -> [u8; 32] {
    let mut bytes: [u8; 32] = decode(text).try_into().expect("32 bytes");
    bytes.reverse();
    bytes
}

#[test]
fn round_trip() {
    assert_eq!(encode(&decode("00ff1a")), "00ff1a");
    assert_eq!(decode_reversed(&format!("{:064x}", 1))[0], 1);
}
