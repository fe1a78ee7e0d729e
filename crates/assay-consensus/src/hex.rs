//! Hexadecimal constants, decoded at compile time.

use assay_wire::BlockHash;

const fn digit(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'f' => byte - b'a' + 10,
        _ => panic!("a hexadecimal constant has a digit outside 0-9a-f"),
    }
}

/// Decodes 64 digits whose last pair becomes the first byte: how hashes and numbers are printed.
pub(crate) const fn reversed_32(digits: &str) -> [u8; 32] {
    let text = digits.as_bytes();
    assert!(text.len() == 64, "a 32-byte constant has 64 hexadecimal digits");
    let mut out = [0u8; 32];
    let mut index = 0;
    while index < 32 {
        out[31 - index] = digit(text[2 * index]) << 4 | digit(text[2 * index + 1]);
        index += 1;
    }
    out
}

/// A block hash as explorers print it.
pub(crate) const fn block_hash(digits: &str) -> BlockHash {
    BlockHash(reversed_32(digits))
}

/// Decodes `N` bytes in the order written.
pub(crate) const fn bytes<const N: usize>(digits: &str) -> [u8; N] {
    let text = digits.as_bytes();
    assert!(text.len() == 2 * N, "a constant has two hexadecimal digits per byte");
    let mut out = [0u8; N];
    let mut index = 0;
    while index < N {
        out[index] = digit(text[2 * index]) << 4 | digit(text[2 * index + 1]);
        index += 1;
    }
    out
}
