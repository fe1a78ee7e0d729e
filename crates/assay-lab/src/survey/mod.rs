//! `assay machine`: description of this machine, speed of its disk, and its noise.

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

/// What to look at.
#[derive(Debug, Clone)]
pub struct SurveyOptions {
    /// Folder whose disk is measured.
    pub dir: PathBuf,
    /// How many samples, or how much time for them.
    pub effort: Effort,
    /// Whether the processor counts instructions for us, or why not: whoever asks the system for counters knows.
    pub counters: Result<(), String>,
    /// What a signature takes with each backend, the fastest first: whoever has the backends measures them.
    pub backends: Vec<BackendSpeed>,
}

/// A way to verify signatures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BackendSpeed {
    /// As `ASSAY_BACKEND` names it.
    pub name: &'static str,
    /// Whether it is what the engine uses here.
    pub is_used: bool,
    /// Time of an ECDSA verification in a batch, on all cores at once, nanoseconds; absent where this machine does not run it.
    pub ns_per_signature: Option<f64>,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Survey {
    schema: u32,
    kind: &'static str,
    /// When it was looked at.
    pub created: String,
    /// How thorough it is.
    pub effort: Effort,
    /// As results record it.
    pub machine: Machine,
    /// What else the system tells.
    pub system: System,
    /// Why instructions cannot be counted; absent where they can.
    pub counters_missing: Option<String>,
    /// The disk under the folder.
    pub disk: DiskInfo,
    /// How fast it is; absent where it could not be measured.
    pub disk_speed: Option<DiskSpeed>,
    /// Why not.
    pub disk_fault: Option<String>,
    /// How far a fixed piece of work is from taking a fixed time, on one core.
    pub noise: Noise,
    /// The same on all cores at once.
    pub noise_all_cores: Noise,
    /// What a signature takes with each backend, the fastest first.
    pub signature_backends: Vec<BackendSpeed>,
}

/// Surveys this machine, and reports the share that is done to `progress`.
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
        disk_fault: measured.as_ref().err().map(story),
        disk_speed: measured.ok(),
        noise,
        noise_all_cores,
        signature_backends: options.backends.clone(),
    }
}

/// An error with its cause.
fn story(error: &DiskError) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.unwrap_or_default())
}
