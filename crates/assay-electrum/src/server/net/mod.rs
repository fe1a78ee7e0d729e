//! Byte transport: TLS, sockets, line framing, and the bounded send queue. Independent of the request format.

pub(in crate::server) mod line_reader;
pub(in crate::server) mod send_queue;
pub(in crate::server) mod socket;
pub(in crate::server) mod tls;
pub(in crate::server) mod writer;
