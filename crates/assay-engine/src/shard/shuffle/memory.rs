//! How the memory of one unit of work is divided.

use super::super::ShardError;
use super::records::{CLAIM_BYTES_MAX, OUTPUT_BYTES_MIN, SPEND_BYTES};

/// What a program takes that does nothing: its code, stacks, and buffers of files that are written.
const PROGRAM_BYTES: u64 = 16 << 20;
/// A block is in memory as its bytes, with the places of its transactions and their ids.
const BLOCK_COPIES: u64 = 3;
/// What is buffered of a file that is written.
const WRITER_BYTES: u64 = 1 << 20;
/// The least that a unit can use.
const UNIT_BYTES_MIN: u64 = 1 << 20;

/// The memory of one unit, if so many work at a time within a limit for the whole process.
///
/// # Errors
/// The limit is too low.
pub fn unit_memory_bytes(
    limit_bytes: u64,
    units: usize,
    largest_block_bytes: u32,
) -> Result<u64, ShardError> {
    let least_bytes = least_memory_bytes(units, largest_block_bytes);
    if limit_bytes < least_bytes {
        return Err(ShardError::Memory { limit_bytes, least_bytes, units });
    }
    Ok((limit_bytes - PROGRAM_BYTES) / units as u64 - fixed_bytes(largest_block_bytes))
}

/// The lowest limit for so many units at a time.
pub fn least_memory_bytes(units: usize, largest_block_bytes: u32) -> u64 {
    PROGRAM_BYTES + units as u64 * (UNIT_BYTES_MIN + fixed_bytes(largest_block_bytes))
}

/// What a unit takes whatever it does.
fn fixed_bytes(largest_block_bytes: u32) -> u64 {
    WRITER_BYTES + u64::from(largest_block_bytes) * BLOCK_COPIES
}

/// What scattering holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScatterMemory {
    /// Bytes of outputs that are unspent so far.
    pub(super) outputs_bytes: usize,
    /// Their number at most.
    pub(super) outputs: usize,
    /// Inputs that spend what is not among them.
    pub(super) spends: usize,
    /// Bytes of coins that were matched.
    pub(super) claims_bytes: usize,
}

impl ScatterMemory {
    pub(super) fn new(bytes: u64) -> Self {
        // An output takes its bytes, a slot of 8 bytes in a table that is filled to three quarters, and 8 bytes where outputs are
        // ordered by partition; an input takes as much there, at another time.
        let outputs_bytes = (bytes / 2).min(u64::from(u32::MAX)) as usize;
        let outputs = outputs_bytes / OUTPUT_BYTES_MIN;
        let spends = (bytes / 8) as usize / SPEND_BYTES;
        let claims_bytes = ((bytes / 16) as usize).max(CLAIM_BYTES_MAX);
        Self { outputs_bytes, outputs, spends: spends.max(1), claims_bytes }
    }
}

/// Bytes that each of many readers buffers.
///
/// # Errors
/// There are too many readers for the memory.
pub(super) fn reader_bytes(bytes: u64, readers: usize) -> Result<usize, ShardError> {
    // Each holds a record too, and some fields.
    let each = (bytes / readers.max(1) as u64).saturating_sub(CLAIM_BYTES_MAX as u64 / 4);
    if each < READER_BYTES_MIN {
        let least_bytes =
            PROGRAM_BYTES + readers as u64 * (READER_BYTES_MIN + CLAIM_BYTES_MAX as u64 / 4);
        return Err(ShardError::Memory { limit_bytes: bytes, least_bytes, units: 1 });
    }
    Ok(each.min(READER_BYTES_MAX) as usize)
}

const READER_BYTES_MIN: u64 = 4 << 10;
const READER_BYTES_MAX: u64 = 256 << 10;
