//! The server from a client's perspective, with a chain of lists as backend.

mod hostile;
mod methods;
mod node;
mod proofs;
mod real;
mod subscriptions;
mod tls;
mod watching;
