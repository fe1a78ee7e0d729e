//! Writing a block to the archive while its coins move and its scripts are verified.
//!
//! The index must not name a block that is not there, so its record waits for the write ([`Chainstate::settle_archive`]); and
//! since all of it happens under one lock, nobody else sees the block before.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use assay_store::{BlockFileError, BlockPos, BlockStore};

use super::{Chainstate, State};
use crate::error::EngineError;
use crate::prepared::Prepared;
use crate::tree::NodeId;

/// How a block gets into the archive.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Archive {
    Has(BlockPos),
    Now,
    /// It is written by another thread, if it is large; [`Chainstate::activate`] waits for that.
    Meanwhile,
}

/// A block of this many bytes takes longer to write than a thread to start, several times over.
const LARGE_BLOCK_BYTES: usize = 256 << 10;

/// A write that has begun, or is over.
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

/// A block that is being written, and whose records follow.
pub(crate) struct Archiving {
    pub(super) write: Write,
    /// Nodes whose records change with it.
    pub(super) changed: Vec<NodeId>,
}

impl Chainstate {
    /// Waits until the block that is being archived is there, if one is, and writes its records.
    ///
    /// # Errors
    /// When that fails: memory knows a block that the disk lacks, so the engine must not go on.
    pub(crate) fn settle_archive(&self, state: &mut State) -> Result<(), EngineError> {
        let Some(Archiving { write, changed }) = state.archiving.take() else { return Ok(()) };
        write.finish()?;
        self.put_records(state, &changed)
    }
}
