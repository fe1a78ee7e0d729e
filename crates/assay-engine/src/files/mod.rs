//! Block files of another program: selection of the chain in them, and of the copy of each block. All readers of such files use
//! this module, so that they find the same blocks: validation, import, parts of a chain, statistics, ledgers.
//!
//! 1. Search: every record with a valid proof of work is a copy of a block ([`search`]).
//! 2. Choose: of the branches of these headers the one with the most work, of equal ones the one that connects first in file
//!    order, as in Core ([`links`], [`branches`]).
//! 3. Read: of several copies the first one that is undamaged, so that its transactions and witnesses match the commitments in
//!    the header ([`copies`]). A damaged copy does not decide about the block (Core's `BLOCK_MUTATED`).

mod branches;
mod chain;
mod copies;
mod headers;
mod links;
mod place;
mod search;

pub(crate) use branches::{Branches, Census};
pub(crate) use chain::invalid_header;
pub use chain::{FoundChain, PlacedBlock, find_blocks};
pub(crate) use copies::{Fault, Refused, first_whole, read_block, read_plain_block, rule};
pub use copies::{WholeBlock, read_copies};
pub(crate) use headers::Chain;
pub(crate) use links::Entry;
pub(crate) use links::Links;
pub use place::{FilePlace, InvalidBlock, MissingBlock, Stray};
pub(crate) use search::{missing_blocks, record_rules, search};
