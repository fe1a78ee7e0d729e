//! Serves compact block filters (BIP157; Core `net_processing.cpp`, `PrepareBlockFilterRequest` and its callers).

use std::sync::Arc;

use assay_electrum::FilterIndex;
use assay_electrum::filters::FilterEntry;
use assay_wire::BlockHash;
use assay_wire::p2p::{
    BlockFilter, FILTER_CHECKPOINT_INTERVAL, FILTER_HASHES_MAX, FILTERS_MAX, FilterCheckpoints,
    FilterHashes, FilterKind, FilterRange, Message,
};

use super::PeerWriter;
use crate::p2p::ended::Ended;

impl PeerWriter<'_> {
    pub(super) fn filters(&mut self, range: &FilterRange) -> Result<(), Ended> {
        let index = self.allowed(range, FILTERS_MAX)?;
        let blocks = self.branch(&range.stop, range.start_height);
        let Some(entries) = entries(&index, &blocks, range.start_height) else {
            Self::not_indexed(range);
            return Ok(());
        };
        for entry in entries {
            let filter = match index.filter(&entry) {
                Ok(filter) => filter,
                Err(error) => {
                    tracing::error!("a filter is not given to peers: {error}");
                    return Ok(());
                }
            };
            let (kind, block) = (range.kind, entry.block);
            self.send(&Message::Filter(BlockFilter { kind, block, filter: &filter }))?;
        }
        Ok(())
    }

    /// Sends filter hashes and the previous filter header.
    pub(super) fn filter_hashes(&mut self, range: &FilterRange) -> Result<(), Ended> {
        let index = self.allowed(range, FILTER_HASHES_MAX)?;
        let first = range.start_height.saturating_sub(1);
        let blocks = self.branch(&range.stop, first);
        let Some(entries) = entries(&index, &blocks, first) else {
            Self::not_indexed(range);
            return Ok(());
        };
        let (previous, entries) = match entries.split_first() {
            Some((before, rest)) if range.start_height > 0 => (before.header, rest),
            _ => ([0; 32], &entries[..]),
        };
        let hashes: Vec<[u8; 32]> = entries.iter().map(|entry| entry.filter_hash).collect();
        self.send(&Message::FilterHashes(FilterHashes {
            kind: range.kind,
            stop: range.stop,
            previous,
            hashes: hashes[..].into(),
        }))
    }

    /// Sends every thousandth filter header of a branch.
    pub(super) fn filter_checkpoints(
        &mut self,
        kind: FilterKind,
        stop: BlockHash,
    ) -> Result<(), Ended> {
        let range = FilterRange { kind, start_height: 0, stop };
        let index = self.allowed(&range, u32::MAX)?;
        let blocks = self.branch(&stop, 0);
        let mut headers = Vec::new();
        let every = FILTER_CHECKPOINT_INTERVAL;
        for (height, block) in (0..).zip(&blocks).skip(every as usize).step_by(every as usize) {
            let Some(entry) = entry(&index, block, height) else {
                Self::not_indexed(&range);
                return Ok(());
            };
            headers.push(entry.header);
        }
        let headers = headers[..].into();
        self.send(&Message::FilterCheckpoints(FilterCheckpoints { kind, stop, headers }))
    }

    /// The index, for a valid request; otherwise disconnects.
    fn allowed(&self, range: &FilterRange, count_max: u32) -> Result<Arc<FilterIndex>, Ended> {
        let FilterRange { kind, start_height, stop } = *range;
        let index = self.shared.filters.clone().filter(|_| kind == FilterKind::BASIC);
        let index = index.ok_or(Ended::FilterKind { kind: kind.0 })?;
        let place =
            self.shared.engine.blocks().place_for_peers(&stop).ok_or(Ended::FilterStop { stop })?;
        let between = place.height.checked_sub(start_height);
        let range_fault = Ended::FilterRange { start_height, stop_height: place.height };
        let between = between.ok_or(range_fault)?;
        if between >= count_max {
            return Err(Ended::TooManyFilters { count: u64::from(between) + 1, count_max });
        }
        Ok(index)
    }

    fn branch(&self, stop: &BlockHash, first: u32) -> Vec<BlockHash> {
        self.shared.engine.chain().branch_up_to(stop, first).unwrap_or_default()
    }

    /// Like Core, sends no response to requests for filters not indexed yet.
    fn not_indexed(range: &FilterRange) {
        net!(
            "Failed to find block filter in index: filter_type=basic, start_height={}, stop_hash={}",
            range.start_height,
            range.stop
        );
    }
}

/// Index entries of consecutive blocks; `None` if one is missing.
fn entries(index: &FilterIndex, blocks: &[BlockHash], first: u32) -> Option<Vec<FilterEntry>> {
    (first..).zip(blocks).map(|(height, block)| entry(index, block, height)).collect()
}

fn entry(index: &FilterIndex, block: &BlockHash, height: u32) -> Option<FilterEntry> {
    index.entry(block, height).unwrap_or_else(|error| {
        tracing::error!("the index of block filters cannot be read: {error}");
        None
    })
}
