//! The server as its clients see it, in front of a chain made of lists.

mod hostile;
mod methods;
mod node;
mod proofs;
mod real;
mod subscriptions;
mod tls;
mod watching;
