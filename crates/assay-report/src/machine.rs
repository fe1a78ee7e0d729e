//! Machine and software of a run, and their table.

use serde::{Deserialize, Serialize};

use crate::Table;
use crate::number::{count, mib, or_unavailable};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    pub cpu: Option<String>,
    /// Family, model and stepping, because model names are not unique. Absent if the system does not report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// Extensions that select kernels, by Linux's names: `avx512ifma`, `sha_ni`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_features: Vec<String>,
    /// Cores available to this process.
    pub cores: usize,
    pub memory_bytes: Option<u64>,
    pub swap_bytes: Option<u64>,
    pub kernel: Option<String>,
    pub system: Option<String>,
    /// Frequency governor of the first core.
    pub governor: Option<String>,
    pub transparent_huge_pages: Option<String>,
    /// True if the CPU reports a hypervisor.
    pub virtual_machine: bool,
    /// Filesystem type of the nodes' data.
    pub filesystem: Option<String>,
}

/// The software of the laboratory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Software {
    /// Version of Assay.
    pub assay: String,
    /// Commit of the checkout it was built from, if known; changes on top of it do not show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    pub rustc: String,
    /// `release` or `debug`.
    pub profile: String,
}

impl Software {
    pub fn version(&self) -> String {
        let commit = self.commit.as_ref().map(|commit| format!(" ({commit})"));
        self.assay.clone() + &commit.unwrap_or_default()
    }
}

impl Machine {
    pub fn in_short(&self) -> String {
        let mut parts = vec![
            self.cpu.clone().unwrap_or_else(|| "a processor without a name".to_owned()),
            match self.cores {
                1 => "1 core".to_owned(),
                cores => format!("{cores} cores"),
            },
        ];
        let gib = |bytes: u64| format!("{:.1} GiB of memory", bytes as f64 / 1_073_741_824.0);
        parts.extend(self.memory_bytes.map(gib));
        parts.extend(self.system.clone());
        parts.extend(self.virtual_machine.then(|| "a virtual machine".to_owned()));
        parts.join(", ")
    }
}

pub fn table(machine: &Machine) -> Table {
    let mut table = Table::new("", &["Property", "Value"], 2);
    let text = |value: &Option<String>| or_unavailable(value.clone(), |value| value);
    let rows = [
        ("Processor", text(&machine.cpu)),
        ("Model", text(&machine.cpu_model)),
        ("Extensions", or_unavailable(features(machine), |names| names)),
        ("Cores", count(machine.cores as u64)),
        ("Virtual machine", if machine.virtual_machine { "yes" } else { "not known" }.to_owned()),
        ("Memory, MiB", or_unavailable(machine.memory_bytes, mib)),
        ("Swap, MiB", or_unavailable(machine.swap_bytes, mib)),
        ("System", text(&machine.system)),
        ("Kernel", text(&machine.kernel)),
        ("Frequency governor", text(&machine.governor)),
        ("Transparent huge pages", text(&machine.transparent_huge_pages)),
        ("Filesystem of the nodes' data", text(&machine.filesystem)),
    ];
    for (what, value) in rows {
        table.push([what.to_owned(), value]);
    }
    table
}

fn features(machine: &Machine) -> Option<String> {
    (!machine.cpu_features.is_empty()).then(|| machine.cpu_features.join(" "))
}
