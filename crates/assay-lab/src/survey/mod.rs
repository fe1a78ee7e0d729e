//! `assay machine`: description of the machine, speed of its disk, and its noise.

mod disk;
mod effort;
mod noise;
mod system;
mod text;

use std::path::PathBuf;

use serde::Serialize;

use self::effort::Steps;
use crate::machine::{self, Machine};

pub use self::disk::{DiskError, DiskSpeed};
pub use self::effort::Effort;
pub use self::noise::Noise;
pub use self::system::{Cache, DiskInfo, System};

const SCHEMA: u32 = 2;

#[derive(Debug, Clone)]
pub struct SurveyOptions {
    /// Folder on the disk to measure.
    pub dir: PathBuf,
    pub effort: Effort,
    /// Availability of the processor's instruction counters, with the reason if unavailable; determined by the caller.
    pub counters: Result<(), String>,
    /// Time per signature with each backend, fastest first; measured by the caller.
    pub backends: Vec<BackendSpeed>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BackendSpeed {
    /// Name in `ASSAY_BACKEND`.
    pub name: &'static str,
    /// True if the engine uses it on this machine.
    pub is_used: bool,
    /// Nanoseconds per ECDSA verification in a batch, on all cores at once; `None` if the machine does not support the backend.
    pub ns_per_signature: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Survey {
    schema: u32,
    kind: &'static str,
    pub created: String,
    pub effort: Effort,
    /// The machine as recorded in results.
    pub machine: Machine,
    pub system: System,
    /// Reason why instructions cannot be counted; `None` if they can.
    pub counters_missing: Option<String>,
    /// Disk of the folder.
    pub disk: DiskInfo,
    /// Speed of the disk; `None` if it could not be measured.
    pub disk_speed: Option<DiskSpeed>,
    pub disk_fault: Option<String>,
    /// Variation of a fixed piece of work on one core.
    pub noise: Noise,
    /// Variation on all cores at once.
    pub noise_all_cores: Noise,
    /// Time per signature with each backend, fastest first.
    pub signature_backends: Vec<BackendSpeed>,
}

/// Surveys this machine, and reports the finished share to `progress`.
pub fn survey(options: &SurveyOptions, progress: &(dyn Fn(f64) + Sync)) -> Survey {
    let limits = options.effort.limits();
    let mut steps = Steps::new(progress);
    let system = System::read();
    let disk = DiskInfo::read(&options.dir);
    let measured = disk::measure(&options.dir, &limits, &mut steps);
    let (noise, noise_all_cores) = noise::measure(&limits.noise, &mut steps);
    Survey {
        schema: SCHEMA,
        kind: "machine",
        created: machine::utc_now(),
        effort: options.effort,
        machine: machine::record(&options.dir),
        system,
        counters_missing: options.counters.clone().err(),
        disk,
        disk_fault: measured.as_ref().err().map(with_cause),
        disk_speed: measured.ok(),
        noise,
        noise_all_cores,
        signature_backends: options.backends.clone(),
    }
}

/// An error with its cause.
fn with_cause(error: &DiskError) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.unwrap_or_default())
}
