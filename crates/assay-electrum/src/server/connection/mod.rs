//! Life cycle of a client connection.

pub(in crate::server) mod accept;
pub(in crate::server) mod metrics_endpoint;
pub(in crate::server) mod request_task;
pub(in crate::server) mod serve;
