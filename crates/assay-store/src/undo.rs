//! Undo data: the coins that a block spent, so that it can be disconnected.
//!
//! The coins form one list in the order of the inputs (the coinbase spends none); the block defines their assignment to
//! transactions. Layout: `docs/formats.md`.

use assay_wire::Coin;

use crate::codec::{self, CodecError, CoinRef, TEMPLATE_MAX};

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UndoError {
    #[error("undo data has no readable count: {source}")]
    Count { source: CodecError },
    #[error("coin {index} of the undo data: {source}")]
    Coin { index: u64, source: CodecError },
    #[error("{count} bytes follow the last coin of the undo data")]
    Trailing { count: usize },
}

#[derive(Clone, Debug, Default)]
pub struct UndoWriter {
    coins: Vec<u8>,
    count: u64,
}

impl UndoWriter {
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty writer with room for `coins` ordinary coins.
    pub fn with_capacity(coins: usize) -> Self {
        Self { coins: Vec::with_capacity(coins * 32), count: 0 }
    }

    /// Adds the coin of the next input.
    pub fn push(&mut self, coin: CoinRef<'_>) {
        codec::write_coin(&mut self.coins, coin);
        self.count += 1;
    }

    pub fn finish(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.coins.len() + 10);
        codec::write_varint(&mut out, self.count);
        out.extend_from_slice(&self.coins);
        out
    }
}

/// Decodes the coins in the order of the inputs. Ends after the first error.
#[derive(Clone, Debug)]
pub struct UndoReader<'a> {
    input: &'a [u8],
    index: u64,
    count: u64,
}

impl<'a> UndoReader<'a> {
    /// Reads the count.
    pub fn new(mut input: &'a [u8]) -> Result<Self, UndoError> {
        let count = codec::read_varint(&mut input).map_err(|source| UndoError::Count { source })?;
        Ok(Self { input, index: 0, count })
    }

    /// Number of coins not read yet.
    pub fn remaining(&self) -> u64 {
        self.count - self.index
    }
}

impl Iterator for UndoReader<'_> {
    type Item = Result<Coin, UndoError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.index == self.count {
            let left = std::mem::take(&mut self.input);
            return (!left.is_empty()).then_some(Err(UndoError::Trailing { count: left.len() }));
        }
        let mut scratch = [0; TEMPLATE_MAX];
        match codec::read_coin(&mut self.input, &mut scratch) {
            Ok(coin) => {
                self.index += 1;
                Some(Ok(coin.to_coin()))
            }
            Err(source) => {
                let index = self.index;
                self.input = &[];
                self.index = self.count;
                Some(Err(UndoError::Coin { index, source }))
            }
        }
    }
}

/// All coins of one block's undo data.
pub fn decode_undo(undo: &[u8]) -> Result<Vec<Coin>, UndoError> {
    let reader = UndoReader::new(undo)?;
    // A coin takes at least three bytes, so a false count cannot allocate much memory.
    let capacity = usize::try_from(reader.remaining()).unwrap_or(usize::MAX).min(undo.len() / 3);
    let mut coins = Vec::with_capacity(capacity);
    for coin in reader {
        coins.push(coin?);
    }
    Ok(coins)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn coin() -> impl Strategy<Value = Coin> {
        let script = prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..50),
            any::<[u8; 20]>().prop_map(|h| [&[0x76, 0xa9, 20], &h[..], &[0x88, 0xac]].concat()),
        ];
        let origin = (0..2_100_000_000_000_000i64, 0u32..1 << 31, any::<bool>());
        (origin, script).prop_map(|((value, height, coinbase), script)| Coin {
            value,
            height,
            coinbase,
            script_pubkey: script.as_slice().into(),
        })
    }

    proptest! {
        #[test]
        fn round_trip_and_every_cut_is_noticed(coins in proptest::collection::vec(coin(), 0..20)) {
            let mut writer = UndoWriter::with_capacity(coins.len());
            for coin in &coins {
                writer.push(coin.into());
            }
            let mut bytes = writer.finish();
            prop_assert_eq!(decode_undo(&bytes), Ok(coins));
            for cut in 0..bytes.len() {
                prop_assert!(decode_undo(&bytes[..cut]).is_err());
            }
            bytes.push(0);
            prop_assert_eq!(decode_undo(&bytes), Err(UndoError::Trailing { count: 1 }));
        }
    }

    #[test]
    fn rejects_a_false_count_without_allocation() {
        let mut bytes = Vec::new();
        codec::write_varint(&mut bytes, u64::MAX);
        let source = CodecError::Short;
        assert_eq!(decode_undo(&bytes), Err(UndoError::Coin { index: 0, source }));
        assert_eq!(decode_undo(&[]), Err(UndoError::Count { source }));
    }
}
