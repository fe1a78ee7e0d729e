//! Encoders of the variable-length parts of the wire format.

/// Appends `n` as a compact size in its shortest form.
pub fn compact_size(out: &mut Vec<u8>, n: u64) {
    if n < 253 {
        out.push(n as u8);
    } else if let Ok(short) = u16::try_from(n) {
        out.push(253);
        out.extend_from_slice(&short.to_le_bytes());
    } else if let Ok(medium) = u32::try_from(n) {
        out.push(254);
        out.extend_from_slice(&medium.to_le_bytes());
    } else {
        out.push(255);
        out.extend_from_slice(&n.to_le_bytes());
    }
}

/// Number of bytes that [`compact_size`] appends for `n`.
pub fn compact_size_len(n: u64) -> usize {
    match n {
        0..253 => 1,
        253..0x1_0000 => 3,
        0x1_0000..0x1_0000_0000 => 5,
        _ => 9,
    }
}

/// Appends `bytes`, preceded by their length.
pub fn var_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    compact_size(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}
