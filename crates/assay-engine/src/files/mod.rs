//! Another program's block files: which chain they hold, and which copy of each block is used. Everything that reads such files
//! reads them through this module, so that all of it finds the same blocks: validation, import, parts of a chain, statistics,
//! ledgers.
//!
//! 1. Search: every record whose header has its proof of work counts as a copy of a block ([`search`]).
//! 2. Choose: of the branches that these headers form the one with the most work, of equal ones the one that connects first as
//!    the files are read in order, as in Core ([`links`], [`branches`]).
//! 3. Read: of several copies the first one that is whole, which means that its transactions and witnesses are those that the
//!    header commits to ([`copies`]). A damaged copy says nothing of the block (Core's `BLOCK_MUTATED`).

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
pub(crate) use headers::{Chain, Entry};
pub(crate) use links::Links;
pub use place::{FilePlace, InvalidBlock, MissingBlock, Stray};
pub(crate) use search::{missing_blocks, record_rules, search};
