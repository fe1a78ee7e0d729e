//! Description of the machine of a run or benchmark.

pub(crate) mod clock;
pub(crate) mod disk;
pub(crate) mod reference_rate;

use std::path::Path;
use std::{fs, thread};

use assay_report::record::Record;

pub use assay_report::machine::{Machine, Software, table};

pub use self::disk::DiskUse;
pub use self::reference_rate::ReferenceRate;

/// Reads the description from the operating system; unreported values stay empty.
pub fn record(out_dir: &Path) -> Machine {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let field = |name: &str| cpu_field(&cpuinfo, name).map(str::to_owned);
    Machine {
        cpu: field("model name").or_else(|| field("Model")),
        cpu_model: cpu_model(&cpuinfo),
        cpu_features: cpu_features(&cpuinfo),
        cores: thread::available_parallelism().map_or(1, std::num::NonZero::get),
        memory_bytes: kib_field(&meminfo, "MemTotal"),
        swap_bytes: kib_field(&meminfo, "SwapTotal"),
        kernel: line_of("/proc/sys/kernel/osrelease"),
        system: os_name(),
        governor: line_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        transparent_huge_pages: line_of("/sys/kernel/mm/transparent_hugepage/enabled"),
        virtual_machine: cpuinfo.contains(" hypervisor"),
        filesystem: filesystem_of(out_dir),
    }
}

/// Record without figures. `out_dir` is on the filesystem of the nodes' data.
pub fn new_record(kind: &str, software: &Software, command: &str, out_dir: &Path) -> Record {
    let own = |(name, _): &(String, String)| name.starts_with("ASSAY_");
    Record {
        kind: kind.to_owned(),
        schema: assay_report::record::SCHEMA,
        created: utc_now(),
        software: software.clone(),
        machine: record(out_dir),
        command: command.to_owned(),
        environment: std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(own)
            .collect(),
        ..Record::default()
    }
}

/// Date and time in UTC: ISO 8601, to the second.
pub fn utc_now() -> String {
    clock::iso8601(clock::unix_ms())
}

/// First line of a file; `None` if it cannot be read or is empty.
pub(crate) fn line_of(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

fn os_name() -> Option<String> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(line.trim_matches('"').to_owned())
}

fn cpu_field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

fn cpu_model(cpuinfo: &str) -> Option<String> {
    let field = |name: &str| cpu_field(cpuinfo, name);
    let (family, model) = field("cpu family").zip(field("model"))?;
    Some(format!("family {family}, model {model}, stepping {}", field("stepping").unwrap_or("-")))
}

/// Extensions that select hash and signature kernels.
const FEATURES: [&str; 11] = [
    "bmi2",
    "adx",
    "avx2",
    "fma",
    "avx512f",
    "avx512vl",
    "avx512ifma",
    "avx_ifma",
    "sha_ni",
    "asimd",
    "sha2",
];

fn cpu_features(cpuinfo: &str) -> Vec<String> {
    let flags = cpu_field(cpuinfo, "flags").or_else(|| cpu_field(cpuinfo, "Features"));
    let flags: Vec<&str> = flags.unwrap_or_default().split_whitespace().collect();
    FEATURES.into_iter().filter(|name| flags.contains(name)).map(str::to_owned).collect()
}

/// Bytes that a line of `/proc/meminfo` has in KiB.
pub(crate) fn kib_field(meminfo: &str, name: &str) -> Option<u64> {
    let rest = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// The type of the filesystem that holds `path`.
fn filesystem_of(path: &Path) -> Option<String> {
    let path = path.canonicalize().ok()?;
    let mounts = fs::read_to_string("/proc/mounts").ok()?;
    mount_of(&mounts, &path).map(|[.., kind]| kind.to_owned())
}

/// The line of `/proc/mounts` with the longest mount point above `path`: source, mount point, type.
pub(crate) fn mount_of<'a>(mounts: &'a str, path: &Path) -> Option<[&'a str; 3]> {
    let lines = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        let found = [fields.next()?, fields.next()?, fields.next()?];
        path.starts_with(found[1]).then_some(found)
    });
    lines.max_by_key(|fields| fields[1].len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_proc() {
        let cpuinfo = "processor\t: 0\ncpu family\t: 26\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n\
                       stepping\t: 0\nflags\t\t: fpu sha_ni avx2 hypervisor\n";
        assert_eq!(cpu_model(cpuinfo).as_deref(), Some("family 26, model 17, stepping 0"));
        assert_eq!(cpu_features(cpuinfo), ["avx2", "sha_ni"]);
        assert_eq!(cpu_model("Features: asimd\n"), None);
        assert_eq!(cpu_features("Features: asimd\n"), ["asimd"]);
        assert_eq!(cpu_field(cpuinfo, "model name"), Some("AMD EPYC"));
        assert_eq!(cpu_field(cpuinfo, "Model"), None);
        assert_eq!(kib_field("MemTotal:       24 kB\n", "MemTotal"), Some(24 * 1024));
        assert_eq!(kib_field("MemTotal:       24 kB\n", "SwapTotal"), None);
    }

    #[test]
    fn mounts() {
        let mounts = "overlay / overlay rw 0 0\n/dev/vda1 /data ext4 rw,noatime 0 0\n";
        let of = |path: &str| mount_of(mounts, Path::new(path));
        assert_eq!(of("/data/x"), Some(["/dev/vda1", "/data", "ext4"]));
        assert_eq!(of("/database"), Some(["overlay", "/", "overlay"]));
        assert_eq!(mount_of("", Path::new("/")), None);
    }
}
