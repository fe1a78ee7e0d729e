//! Published state: index and mempool of the same time, and values derived from them.

pub(in crate::server) mod confirmed;
pub(in crate::server) mod merkle;
pub(in crate::server) mod outpoint_status;
pub(in crate::server) mod published;
pub(in crate::server) mod script_status;
pub(in crate::server) mod transaction;
