//! Names of alternatives.

/// Our engine; any files have Core's format.
pub(super) const ASSAY: &str = "assay";
/// Our engine on files in our own format: not obfuscated, but with a checksum.
pub(super) const ASSAY_STORE: &str = "assay, own files with checksum";
/// The algorithm of the report's last step, in Rust.
pub(super) const LAST_STEP: &str = "report's last step";

pub(super) const COPY: &str = "copy";
pub(super) const GENERAL: &str = "any message";

pub(super) const FIRST: &str = "scripts verified";
pub(super) const AGAIN: &str = "scripts known from before";

pub(super) const PORTABLE: &str = "portable";
pub(super) const MANY: &str = "assay, many at once";
