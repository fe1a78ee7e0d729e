//! Per-address limits.

pub(in crate::server) mod accounts;
pub(in crate::server) mod rate_limit;
