//! The machine as a table of a report.

use assay_report::Table;
use assay_report::number::{count, mib, or_unavailable};

use super::Machine;

/// A table of the machine, for any report.
pub fn table(machine: &Machine) -> Table {
    table_of("Machine", machine)
}

pub(crate) fn table_of(caption: &str, machine: &Machine) -> Table {
    let mut table = Table::new(caption, &["What", "Value"], 2);
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
