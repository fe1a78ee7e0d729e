//! The obfuscation of Bitcoin Core's block files: every byte is combined with a byte of a key that repeats over the file
//! (Core `util/obfuscation.h`). It keeps virus scanners from finding what someone put into the chain.

/// A key of eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XorKey([u8; 8]);

impl XorKey {
    /// The key that changes nothing.
    pub const NONE: Self = Self([0; 8]);

    /// The key with these bytes, of which the first belongs to the first byte of a file.
    pub const fn new(bytes: [u8; 8]) -> Self {
        Self(bytes)
    }

    /// Puts the obfuscation on or takes it off bytes that lie at `offset` of their file.
    pub fn apply(&self, bytes: &mut [u8], offset: u64) {
        if *self == Self::NONE {
            return;
        }
        let mut key = self.0;
        key.rotate_left((offset % 8) as usize);
        let word = u64::from_ne_bytes(key);
        let (words, rest) = bytes.as_chunks_mut::<8>();
        for chunk in words {
            *chunk = (u64::from_ne_bytes(*chunk) ^ word).to_ne_bytes();
        }
        for (byte, key) in rest.iter_mut().zip(key) {
            *byte ^= key;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_byte_by_byte_at_every_offset() {
        let key = [0x5a, 1, 2, 3, 0, 0xff, 6, 7];
        let plain: Vec<u8> = (0..61).collect();
        for offset in 0..17u64 {
            for length in [0, 1, 7, 8, 9, 61] {
                let mut bytes = plain[..length].to_vec();
                XorKey::new(key).apply(&mut bytes, offset);
                for (index, byte) in bytes.iter().enumerate() {
                    assert_eq!(*byte, plain[index] ^ key[(offset as usize + index) % 8]);
                }
                XorKey::new(key).apply(&mut bytes, offset);
                assert_eq!(bytes, plain[..length]);
            }
        }
    }
}
