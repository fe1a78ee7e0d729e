//! Reads of stored blocks and their undo data, also for peers.

use assay_store::{BlockFileError, BlockPos, decode_undo};
use assay_wire::{Block, BlockHash, Coin, Transaction, Txid};

use super::Blocks;
use super::headers::{HeaderPlace, may_be_given, place};
use crate::error::EngineError;
use crate::tree::Node;

/// A block of the archive. Reads take no lock.
#[derive(Clone, Copy, Debug)]
pub struct ArchivedBlock {
    hash: BlockHash,
    height: u32,
    size: u32,
    /// `None` for the genesis block, which is part of the parameters.
    pos: Option<BlockPos>,
}

impl ArchivedBlock {
    pub fn hash(&self) -> &BlockHash {
        &self.hash
    }

    pub fn height(&self) -> u32 {
        self.height
    }

    /// Its serialised length, bytes.
    pub fn size(&self) -> u32 {
        self.size
    }
}

impl Blocks<'_> {
    /// A block that is archived and was found valid at some time, active or not.
    pub fn archived(self, hash: &BlockHash) -> Option<ArchivedBlock> {
        let state = self.0.lock_tree();
        let id = state.tree.find(hash)?;
        let node = state.tree.get(id);
        if !may_be_given(&state.tree, id, self.0.params()) {
            return None;
        }
        let (height, pos) = (node.height, node.block);
        drop(state);
        let size = match pos {
            Some(pos) => pos.size,
            None if height == 0 => self.0.params().genesis_block().len() as u32,
            None => return None,
        };
        Some(ArchivedBlock { hash: *hash, height, size, pos })
    }

    /// Position of a block that peers may request, archived or not.
    pub fn place_for_peers(self, hash: &BlockHash) -> Option<HeaderPlace> {
        let state = self.0.lock_tree();
        let id = state.tree.find(hash)?;
        may_be_given(&state.tree, id, self.0.params()).then(|| place(&state.tree, id))
    }

    /// Fills `out` with the bytes of a block from `offset` on, with a check of the framing only.
    ///
    /// # Errors
    /// The bytes cannot be read, or the block is shorter.
    pub fn read_archived(
        self,
        block: &ArchivedBlock,
        offset: u32,
        out: &mut [u8],
    ) -> Result<(), EngineError> {
        let Some(pos) = block.pos else {
            let genesis = self.0.params().genesis_block();
            let end = (offset as usize).saturating_add(out.len());
            let short = EngineError::MissingData { hash: block.hash, height: 0, what: "such part" };
            out.copy_from_slice(genesis.get(offset as usize..end).ok_or(short)?);
            return Ok(());
        };
        Ok(self.0.chainstate.blocks.read_block_into(pos, offset, out)?)
    }

    /// The serialised block, if it is stored.
    ///
    /// # Errors
    /// The block cannot be read.
    pub fn read(self, hash: &BlockHash) -> Result<Option<Vec<u8>>, EngineError> {
        if *hash == self.0.params().genesis_hash {
            return Ok(Some(self.0.params().genesis_block()));
        }
        self.read_data(hash, |node| node.block, |pos| self.0.chainstate.blocks.read_block(pos))
    }

    /// Reads the data of a block at the position from `place`, without the lock; `None` if it is not stored, or was pruned
    /// meanwhile.
    fn read_data<P: Copy + PartialEq, T>(
        self,
        hash: &BlockHash,
        place: impl Fn(&Node) -> Option<P>,
        read: impl FnOnce(P) -> Result<T, BlockFileError>,
    ) -> Result<Option<T>, EngineError> {
        let current = || {
            let state = self.0.lock_tree();
            state.tree.find(hash).and_then(|id| place(state.tree.get(id)))
        };
        let Some(pos) = current() else { return Ok(None) };
        match read(pos) {
            Ok(read) => Ok(Some(read)),
            Err(_) if current() != Some(pos) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The coins that a connected block spent, transaction by transaction, without the coinbase.
    ///
    /// # Errors
    /// Block or undo data cannot be read.
    pub fn read_spent(self, hash: &BlockHash) -> Result<Option<Vec<Vec<Coin>>>, EngineError> {
        let (Some(undo), Some(raw)) = (self.read_undo(hash)?, self.read(hash)?) else {
            return Ok(None);
        };
        let mut coins = decode_undo(&undo)
            .map_err(|source| EngineError::Undo { hash: *hash, source })?
            .into_iter();
        let block = Block::parse(raw, self.0.params().encoding)
            .map_err(|source| EngineError::StoredBlock { hash: *hash, source })?;
        let spent: Vec<Vec<Coin>> =
            block.txs().skip(1).map(|tx| coins.by_ref().take(tx.input_count()).collect()).collect();
        let is_whole = coins.next().is_none()
            && spent
                .iter()
                .zip(block.txs().skip(1))
                .all(|(coins, tx)| coins.len() == tx.input_count());
        if is_whole { Ok(Some(spent)) } else { Err(EngineError::UndoMismatch { hash: *hash }) }
    }

    /// A transaction of a block, by its txid.
    ///
    /// # Errors
    /// The block cannot be read.
    pub fn find_transaction(
        self,
        txid: &Txid,
        block: &BlockHash,
    ) -> Result<Option<Transaction>, EngineError> {
        let Some(raw) = self.read(block)? else { return Ok(None) };
        let block = Block::parse(raw, self.0.params().encoding)
            .map_err(|source| EngineError::StoredBlock { hash: *block, source })?;
        Ok(block.txs().find(|tx| tx.txid() == *txid).map(|tx| tx.to_owned_transaction()))
    }

    /// Bytes of blocks and undo data on disk (Core's `size_on_disk`).
    pub fn archive_bytes(self) -> u64 {
        self.0.chainstate.blocks.bytes()
    }

    /// The encoded undo data of a connected block.
    ///
    /// # Errors
    /// The undo data cannot be read.
    pub fn read_undo(self, hash: &BlockHash) -> Result<Option<Vec<u8>>, EngineError> {
        self.read_data(hash, |node| node.undo, |pos| self.0.chainstate.blocks.read_undo(pos, hash))
    }

    /// `length` bytes from `offset` of a stored block, with a check of the framing only.
    ///
    /// # Errors
    /// The bytes cannot be read, or the block is shorter.
    pub fn read_part(
        self,
        hash: &BlockHash,
        offset: u32,
        length: u32,
    ) -> Result<Option<Vec<u8>>, EngineError> {
        if *hash == self.0.params().genesis_hash {
            let block = self.0.params().genesis_block();
            let end = (offset as usize).checked_add(length as usize);
            let part = end.and_then(|end| block.get(offset as usize..end));
            return Ok(part.map(<[u8]>::to_vec));
        }
        let read = |pos| self.0.chainstate.blocks.read_block_part(pos, offset, length);
        self.read_data(hash, |node| node.block, read)
    }

    /// [`Blocks::read_part`] without waiting for a disk or another thread; `None` if it would wait, on an error, and if the
    /// block is not stored.
    pub fn cached_part(self, hash: &BlockHash, offset: u32, length: u32) -> Option<Vec<u8>> {
        let pos = {
            let state = self.0.try_lock_tree()?;
            state.tree.get(state.tree.find(hash)?).block?
        };
        self.0.chainstate.blocks.cached_block_part(pos, offset, length)
    }
}
