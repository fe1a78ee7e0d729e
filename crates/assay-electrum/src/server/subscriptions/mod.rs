//! Client subscriptions and notifications.

pub(in crate::server) mod notify_queue;
pub(in crate::server) mod outpoints;
pub(in crate::server) mod publisher;
pub(in crate::server) mod registry;
pub(in crate::server) mod removal;
pub(in crate::server) mod scripts;
pub(in crate::server) mod subscribers;
