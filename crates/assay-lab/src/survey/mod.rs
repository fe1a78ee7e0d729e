//! `assay machine`: description of the machine, speed of its disk, and its noise.

mod disk;
mod effort;
mod noise;
mod system;

use std::path::PathBuf;

use assay_report::machine::Software;
use assay_report::record::{Outcome, Record, Unit};

use self::effort::Steps;
use crate::machine;

pub use self::effort::Effort;

#[derive(Debug, Clone)]
pub struct SurveyOptions {
    /// Folder on the disk to measure.
    pub dir: PathBuf,
    pub effort: Effort,
    /// Availability of the processor's instruction counters, with the reason if unavailable; determined by the caller.
    pub counters: Result<(), String>,
    /// Time per signature with each backend, fastest first; measured by the caller.
    pub backends: Vec<BackendSpeed>,
    pub software: Software,
    /// Command line.
    pub command: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct BackendSpeed {
    /// Name in `ASSAY_BACKEND`.
    pub name: &'static str,
    /// True if the engine uses it on this machine.
    pub is_used: bool,
    /// Nanoseconds per ECDSA verification in a batch, on all cores at once; `None` if the machine does not support the backend.
    pub ns_per_signature: Option<f64>,
}

/// Surveys this machine, and reports the finished share to `progress`.
pub fn survey(options: &SurveyOptions, progress: &(dyn Fn(f64) + Sync)) -> Record {
    let limits = options.effort.limits();
    let mut steps = Steps::new(progress);
    let mut record =
        machine::new_record("machine", &options.software, &options.command, &options.dir);
    record.set("effort", options.effort.name());
    system::add_system(&mut record);
    system::add_disk(&options.dir, &mut record);
    match &options.counters {
        Ok(()) => record.set("instruction counters", "available"),
        Err(why) => record.set("instruction counters", format!("unavailable: {why}")),
    }
    let measured = disk::measure(&options.dir, &limits, &mut steps, &mut record);
    let failure = measured.as_ref().err().map(|error| format!("{error:#}"));
    record.check("disk can be measured", Outcome::of(measured.unwrap_or(0), failure));
    let [one, all] = noise::measure(&limits[4], &mut steps, &mut record);
    record.headline = format!("Noise of fixed work: {one:.2} % on one core, {all:.2} % on all.");
    add_backends(&options.backends, &mut record);
    if options.effort != Effort::Thorough {
        record.notes.push("--thorough takes all samples".to_owned());
    }
    record
}

/// ECDSA in batches, on all cores.
fn add_backends(backends: &[BackendSpeed], record: &mut Record) {
    let library = backends.iter().find(|one| one.name == "libsecp256k1");
    let library = library.and_then(|one| one.ns_per_signature);
    for one in backends {
        let name = format!("{}{}", one.name, if one.is_used { " (used)" } else { "" });
        let Some(ns) = one.ns_per_signature else {
            record.set(&format!("backend {name}"), "not on this processor");
            continue;
        };
        let figures = [
            ("time", Unit::Seconds, Some(ns / 1e9)),
            ("libsecp256k1 over it", Unit::Ratio, library.map(|of| of / ns)),
        ];
        record.add(("signatures", &name, None), &figures);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_are_compared_with_the_library() {
        let speed = |name, ns_per_signature| BackendSpeed {
            name,
            is_used: name == "avx2",
            ns_per_signature,
        };
        let backends =
            [speed("avx2", Some(16_000.0)), speed("libsecp256k1", Some(4e4)), speed("ifma", None)];
        let mut record = Record::default();
        add_backends(&backends, &mut record);
        let ratios = record.values("avx2 (used)", "libsecp256k1 over it");
        assert_eq!(ratios.len(), 1);
        assert!((ratios[0] - 2.5).abs() < 1e-12);
        assert_eq!(record.setup[0].0, "backend ifma");
    }
}
