//! The node from outside: over sockets, as its users see it.

mod addresses;
mod bloom;
mod branches;
mod chain;
mod compact;
mod encrypted;
mod files;
mod filters;
mod given;
mod http;
mod index;
mod late;
mod metrics;
mod mining;
mod node;
mod p2p;
mod places;
mod process;
mod prune;
mod reindex;
mod relay;
mod rest;
mod snapshot;
mod support;
mod sync;
mod zmq;
