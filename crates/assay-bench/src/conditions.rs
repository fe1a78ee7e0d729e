//! Conditions of a measurement, with warnings.

use std::fs;
use std::path::Path;

use assay_lab::machine;
use assay_lab::machine::Machine;
use serde::{Deserialize, Serialize};

/// Load of other work, in cores, above which a machine counts as busy.
const LOAD_MAX: f64 = 0.5;

/// State of program and machine at the start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Conditions {
    pub machine: Machine,
    /// `release` or `debug`.
    pub profile: String,
    /// Load average of the last minute; absent if unavailable.
    pub load_1m: Option<f64>,
    pub warnings: Vec<String>,
}

impl Conditions {
    pub fn now() -> Self {
        let machine = machine::record(Path::new("."));
        let is_debug = cfg!(debug_assertions);
        let load_1m = fs::read_to_string("/proc/loadavg").ok().and_then(|text| load(&text));
        let warnings = warnings(&machine, is_debug, load_1m);
        let profile = if is_debug { "debug" } else { "release" };
        Self { machine, profile: profile.to_owned(), load_1m, warnings }
    }
}

fn load(text: &str) -> Option<f64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

fn warnings(machine: &Machine, is_debug: bool, load_1m: Option<f64>) -> Vec<String> {
    let mut warnings = Vec::new();
    if is_debug {
        warnings.push(
            "this is a debug build: its times mean nothing (build with --release)".to_owned(),
        );
    }
    if let Some(load) = load_1m.filter(|load| *load > LOAD_MAX) {
        warnings.push(format!("the machine is busy: load {load:.2} before the first measurement"));
    }
    if let Some(governor) = machine.governor.as_deref().filter(|name| *name != "performance") {
        warnings.push(format!("the clock is not steady: frequency governor {governor}"));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warns_of_bad_conditions() {
        assert_eq!(load("0.52 0.58 0.59 1/977 12345"), Some(0.52));
        assert_eq!(load(""), None);
        let mut machine = Machine::default();
        assert!(warnings(&machine, false, Some(0.1)).is_empty());
        machine.governor = Some("powersave".to_owned());
        let all = warnings(&machine, true, Some(3.0)).join("; ");
        assert!(
            all.contains("debug") && all.contains("3.00") && all.contains("powersave"),
            "{all}"
        );
    }
}
