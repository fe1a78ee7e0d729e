//! Writes a hints file (BIP 456), which lists the unspent outputs of each block.
//!
//! A coin has its height, but not its index among the outputs of its block. So blocks with unspent coins are read again, and
//! their outputs are looked up among the coins of their height, for as many heights at a time as fit into memory.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use assay_store::{CoinSnapshot, HintsWriter};
use assay_wire::OutPoint;

use super::ValidateError;
use super::connect::Connector;
use super::datadir::DatadirError;

impl Connector<'_> {
    /// Writes the hints of a snapshot's coins, which are those of the last connected block. The file gets its name when it is
    /// complete.
    pub(super) fn write_hints(
        &self,
        path: &Path,
        snapshot: &CoinSnapshot,
    ) -> Result<(), ValidateError> {
        let mut fresh = path.as_os_str().to_owned();
        fresh.push(".new");
        let fresh = PathBuf::from(fresh);
        let failed = |source| DatadirError::Io { path: path.to_path_buf(), source };
        let file = File::create(&fresh).map_err(failed)?;
        let out = BufWriter::with_capacity(1 << 20, file);
        let mut writer = HintsWriter::new(out, self.height).map_err(failed)?;
        // The genesis block creates no coin.
        writer.push(&[]).map_err(failed)?;
        let counts = self.count_by_height(snapshot)?;
        let coins_max = (self.config.cache_bytes_max / PART_OF_CACHE / COIN_BYTES).max(COINS_LEAST);
        let mut first = 1;
        while first < counts.len() {
            let heights = heights_that_fit(&counts, first, coins_max);
            first = heights.end;
            self.write_heights(&heights, &counts, snapshot, (&mut writer, path))?;
        }
        let file = writer.finish().map_err(failed)?;
        let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
        file.sync_all().and_then(|()| std::fs::rename(&fresh, path)).map_err(failed)?;
        Ok(())
    }

    /// Number of unspent coins per height.
    fn count_by_height(&self, snapshot: &CoinSnapshot) -> Result<Vec<u32>, ValidateError> {
        let mut counts = vec![0; self.height as usize + 1];
        snapshot.for_each_in_shard(0, 1, |_, coin| {
            if let Some(count) = counts.get_mut(coin.height as usize) {
                *count += 1;
            }
        })?;
        Ok(counts)
    }

    fn write_heights(
        &self,
        heights: &Range<usize>,
        counts: &[u32],
        snapshot: &CoinSnapshot,
        (writer, path): (&mut HintsWriter<impl Write>, &Path),
    ) -> Result<(), ValidateError> {
        let mut coins: Vec<(u32, OutPoint)> = Vec::new();
        snapshot.for_each_in_shard(0, 1, |outpoint, coin| {
            if heights.contains(&(coin.height as usize)) {
                coins.push((coin.height, *outpoint));
            }
        })?;
        coins.sort_unstable();
        let mut rest = &coins[..];
        for height in heights.clone() {
            let (of_block, others) = rest.split_at(counts[height] as usize);
            rest = others;
            let indices = self.indices(height as u32, of_block, path)?;
            let failed = |source| DatadirError::Io { path: path.to_path_buf(), source };
            writer.push(&indices).map_err(failed)?;
        }
        Ok(())
    }

    /// Indices of the outputs of a block that these coins, all of its height, are; in order.
    fn indices(
        &self,
        height: u32,
        coins: &[(u32, OutPoint)],
        path: &Path,
    ) -> Result<Vec<u32>, ValidateError> {
        let mut indices = Vec::with_capacity(coins.len());
        if coins.is_empty() {
            return Ok(indices);
        }
        let mut index = 0;
        self.read_connected(height)?.for_each_created(height, |outpoint, _| {
            if coins.binary_search(&(height, *outpoint)).is_ok() {
                indices.push(index);
            }
            index += 1;
        });
        if indices.len() != coins.len() {
            let (path, hash) = (path.to_path_buf(), self.chain.hash(height));
            return Err(ValidateError::OtherCoins { path, hash, height });
        }
        Ok(indices)
    }
}

/// The heights from `first` on with at most `coins_max` coins in total, at least one height.
fn heights_that_fit(counts: &[u32], first: usize, coins_max: usize) -> Range<usize> {
    let (mut end, mut sum) = (first + 1, counts[first] as usize);
    while end < counts.len() && sum + counts[end] as usize <= coins_max {
        sum += counts[end] as usize;
        end += 1;
    }
    first..end
}

/// Fraction of the memory for coins used here, while the cache still has its own.
const PART_OF_CACHE: usize = 4;
/// Height and outpoint.
const COIN_BYTES: usize = size_of::<(u32, OutPoint)>();
/// Lower bound, since fewer coins at a time would scan the set too often.
const COINS_LEAST: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::heights_that_fit;

    #[test]
    fn heights_tile_and_fit() {
        let counts = [9, 2, 0, 3, 50, 1, 1];
        let mut found = Vec::new();
        let mut first = 1;
        while first < counts.len() {
            found.push(heights_that_fit(&counts, first, 5));
            first = found[found.len() - 1].end;
        }
        assert_eq!(found, [1..4, 4..5, 5..7]);
    }
}
