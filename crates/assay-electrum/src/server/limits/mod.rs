//! Per-address limits.

pub(in crate::server) mod client_budget;
pub(in crate::server) mod rate_limit;
