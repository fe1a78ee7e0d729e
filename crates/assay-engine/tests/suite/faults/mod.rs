//! The engine over a simulated disk: what is left when a step fails, when the process dies, when the power fails, and when
//! bits rot. What is promised: `docs/formats.md`, "What survives what".

mod chain;
mod disk;
mod long;
mod prune;
mod repair;
mod rot;
mod sweep;
