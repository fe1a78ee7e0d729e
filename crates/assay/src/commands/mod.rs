//! One file for each command.

pub(crate) mod bench;
pub(crate) mod chain;
pub(crate) mod crash;
pub(crate) mod node;
pub(crate) mod plan;
pub(crate) mod report;
pub(crate) mod run;
