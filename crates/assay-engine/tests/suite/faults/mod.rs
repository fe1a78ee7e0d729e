//! The engine over a simulated disk: failures of a step, crashes, power cuts and bit rot. The guarantees: `docs/formats.md`,
//! "What survives what".

mod chain;
mod disk;
mod long;
mod prune;
mod repair;
mod rot;
mod sweep;
