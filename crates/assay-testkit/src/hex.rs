//! Hex text of test vectors.

/// Case-insensitive; panics on other text.
pub fn decode(text: &str) -> Vec<u8> {
    try_decode(text).unwrap_or_else(|| panic!("not hexadecimal: {text}"))
}

/// The same with a known length.
pub fn array<const N: usize>(text: &str) -> [u8; N] {
    let bytes = decode(text);
    bytes.try_into().unwrap_or_else(|bytes: Vec<u8>| panic!("{} bytes, not {N}", bytes.len()))
}

/// `None` for other text.
pub fn try_decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = vec![0; text.len() / 2];
    let even = text.len().is_multiple_of(2);
    (even && faster_hex::hex_decode(text.as_bytes(), &mut bytes).is_ok()).then_some(bytes)
}

/// Lower-case digits.
pub fn encode(bytes: &[u8]) -> String {
    faster_hex::hex_string(bytes)
}
