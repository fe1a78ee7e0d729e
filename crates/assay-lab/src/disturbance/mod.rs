//! Whether something else used the machine during a run.
//!
//! The control load before and after a run cannot see a neighbour that comes and goes in between. So all along each run the
//! system's own counters are read, and a short fixed computation is timed on every core: [`watch`]. What counts as a
//! disturbance is fixed beforehand: [`rule`].

pub mod rule;
mod watch;

pub use watch::{CoreProbe, Surroundings, Watch};
