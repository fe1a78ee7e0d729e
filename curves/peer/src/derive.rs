//! Inputs derived from a seed, by the same rule for every subject (README.md).

use sha2::{Digest as _, Sha256};

use crate::table::Work;

/// `count` bytes derived from label, seed and index only.
pub fn expand(label: &str, seed: u64, index: u64, count: usize) -> Vec<u8> {
    let blocks = (0u32..).map(|counter| {
        Sha256::new()
            .chain_update(label)
            .chain_update([0])
            .chain_update(seed.to_be_bytes())
            .chain_update(index.to_be_bytes())
            .chain_update(counter.to_be_bytes())
            .finalize()
    });
    let mut bytes: Vec<u8> = blocks.take(count.div_ceil(32)).flatten().collect();
    bytes.truncate(count);
    bytes
}

impl Work {
    /// 64 bytes to be reduced to a field element.
    pub fn wide(&self, label: &str, index: usize) -> [u8; 64] {
        let bytes = expand(label, self.seed, index as u64, 64);
        bytes.try_into().expect("64 bytes were asked for")
    }

    /// Inputs from the order.
    ///
    /// # Errors
    /// If they are not hexadecimal.
    pub fn given(&self) -> anyhow::Result<Vec<u8>> {
        let mut bytes = vec![0; self.inputs.len() / 2];
        faster_hex::hex_decode(self.inputs.as_bytes(), &mut bytes)?;
        Ok(bytes)
    }

    /// A message of 32 bytes.
    pub fn message(&self, index: usize) -> [u8; 32] {
        let bytes = expand("message", self.seed, index as u64, 32);
        bytes.try_into().expect("32 bytes were asked for")
    }
}
