//! Bytes: TLS, sockets, line framing, and the bounded queue of what is to be sent. Nothing here
//! knows what a request is.

pub(in crate::server) mod line_reader;
pub(in crate::server) mod send_memory;
pub(in crate::server) mod send_queue;
pub(in crate::server) mod socket;
pub(in crate::server) mod tls;
pub(in crate::server) mod writer;
