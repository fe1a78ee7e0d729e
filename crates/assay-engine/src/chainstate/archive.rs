//! Writes a block to the archive while its coins move and its scripts are verified.
//!
//! The index must not contain a block that the archive lacks, so its record waits for the write ([`Chainstate::settle_archive`]).
//! All of this happens under one lock, so no other thread sees the block before.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use assay_store::{BlockFileError, BlockPos, BlockStore};

use super::{Chainstate, State};
use crate::error::EngineError;
use crate::prepared::Prepared;
use crate::tree::NodeId;

/// Archive write of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Archive {
    Has(BlockPos),
    Now,
    /// Another thread writes it, if it is large; [`Chainstate::activate`] waits for that.
    Meanwhile,
}

/// The write of a block of this size takes several times as long as the start of a thread.
const LARGE_BLOCK_BYTES: usize = 256 << 10;

/// A write in progress or complete.
pub(super) enum Write {
    Begun(JoinHandle<Result<(), BlockFileError>>),
    Over(Result<(), BlockFileError>),
}

impl Write {
    pub(super) fn begin(blocks: &Arc<BlockStore>, pos: BlockPos, block: &Arc<Prepared>) -> Self {
        if block.block.bytes().len() < LARGE_BLOCK_BYTES {
            return Self::Over(blocks.write_reserved(pos, block.block.bytes()));
        }
        let (store, prepared) = (Arc::clone(blocks), Arc::clone(block));
        let write = move || store.write_reserved(pos, prepared.block.bytes());
        match thread::Builder::new().name("archive".into()).spawn(write) {
            Ok(begun) => Self::Begun(begun),
            Err(_) => Self::Over(blocks.write_reserved(pos, block.block.bytes())),
        }
    }

    fn finish(self) -> Result<(), BlockFileError> {
        match self {
            Self::Over(outcome) => outcome,
            Self::Begun(begun) => {
                begun.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }
        }
    }
}

/// A block being written, and the nodes whose records follow.
pub(crate) struct Archiving {
    pub(super) write: Write,
    /// Nodes whose records change with the block.
    pub(super) changed: Vec<NodeId>,
}

impl Chainstate {
    /// Waits for the write of the block in progress, if any, and writes its records.
    ///
    /// # Errors
    /// The write failed: memory has a block that the disk lacks, so the engine must stop.
    pub(crate) fn settle_archive(&self, state: &mut State) -> Result<(), EngineError> {
        let Some(Archiving { write, changed }) = state.archiving.take() else { return Ok(()) };
        write.finish()?;
        self.put_records(state, &changed)
    }
}
