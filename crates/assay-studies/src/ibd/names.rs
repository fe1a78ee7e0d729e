//! Names of alternatives, which the tables of the studies look up again.

/// Every field through the stream by itself, obfuscated byte by byte.
pub(super) const FIELDS: &str = "field by field";
/// One buffer and one call to the system, obfuscated byte by byte.
pub(super) const BUFFER: &str = "one buffer";
/// The same, obfuscated by words.
pub(super) const BUFFER_WORDS: &str = "one buffer, xor by 8 bytes";
/// Ours, on files in Core's form.
pub(super) const ASSAY: &str = "assay";
/// Ours, on our own files: not obfuscated, but with a checksum.
pub(super) const ASSAY_STORE: &str = "assay, own files with checksum";

pub(super) const BYTES: &str = "by byte";
pub(super) const WORDS: &str = "by 8 bytes";
pub(super) const COPY: &str = "copy";

pub(super) const SERIALISE: &str = "serialise";
pub(super) const SIZE_COMPUTER: &str = "size computer";
pub(super) const SLICES: &str = "bytes as slices";
pub(super) const SINGLE: &str = "single byte writes";

pub(super) const SET: &str = "ordered set";
pub(super) const SET_NOT_ONE: &str = "set, but not for one input";
pub(super) const SET_NOT_TWO: &str = "set, but not for two inputs";
pub(super) const SORTED: &str = "sorted vector";
pub(super) const SORTED_NULL: &str = "sorted vector, null sought in it";
pub(super) const HASH_SET: &str = "hash set";

pub(super) const GENERAL: &str = "general";
pub(super) const SPECIAL: &str = "for outpoints";
pub(super) const CACHED: &str = "for outpoints, cached state";
/// A coin, not an outpoint alone, taken out of a table that lives on and put back.
pub(super) const OUT_AND_IN: &str = "assay, coins out and in";

pub(super) const INLINE_28: &str = "28 bytes inline";
pub(super) const INLINE_36: &str = "36 bytes inline";

pub(super) const FIXED_BATCH: &str = "fixed batches";
pub(super) const EIGHTH_BATCH: &str = "batches of an eighth";
pub(super) const ONE_BATCH: &str = "one batch";

pub(super) const FIRST: &str = "scripts verified";
pub(super) const AGAIN: &str = "scripts known from before";

pub(super) const PORTABLE: &str = "portable";
pub(super) const MANY: &str = "assay, many at once";
