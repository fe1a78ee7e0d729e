//! Properties of the system in addition to those recorded in results.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::machine::{kib_field, line_of, mount_of};

const CPU: &str = "/sys/devices/system/cpu";

/// Processor, memory, and settings that affect measurements. Properties that the system does not report are `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct System {
    /// Processor packages.
    pub packages: Option<usize>,
    pub physical_cores: Option<usize>,
    /// Logical processors.
    pub processors: Option<usize>,
    /// True if logical processors share cores.
    pub smt: Option<bool>,
    /// Caches of the first processor.
    pub caches: Vec<Cache>,
    pub mhz_min: Option<u64>,
    pub mhz_max: Option<u64>,
    pub frequency_driver: Option<String>,
    /// True if the clock may exceed its nominal frequency.
    pub turbo: Option<bool>,
    /// Vendor and product of the machine; those of the hypervisor for a virtual one.
    pub product: Option<String>,
    /// Kind of container, if detected.
    pub container: Option<String>,
    pub memory_available_bytes: Option<u64>,
    pub swap_used_bytes: Option<u64>,
    /// Memory limit of the control group.
    pub memory_limit_bytes: Option<u64>,
    /// CPU limit of the control group, in cores.
    pub cpu_limit_cores: Option<f64>,
    pub numa_nodes: Option<usize>,
    /// Load average of the last minute.
    pub load_1m: Option<f64>,
    /// Share of CPU time stolen by the hypervisor since boot.
    pub steal_share: Option<f64>,
    /// Kernel setting that restricts access to performance counters.
    pub perf_event_paranoid: Option<i64>,
    pub clock_source: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cache {
    pub level: u32,
    /// Data, Instruction or Unified.
    pub kind: String,
    pub bytes: u64,
    /// List of the logical processors that share the cache.
    pub shared_by: String,
}

impl System {
    pub(super) fn read() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let (packages, physical_cores, processors) = topology(&cpuinfo);
        let kib = |name: &str| kib_field(&meminfo, name);
        let mhz = |name: &str| {
            let path = format!("{CPU}/cpu0/cpufreq/{name}");
            line_of(path)?.parse::<u64>().ok().map(|khz| khz / 1000)
        };
        Self {
            packages,
            physical_cores,
            processors,
            smt: line_of(format!("{CPU}/smt/active")).map(|text| text == "1"),
            caches: caches(Path::new(CPU)),
            mhz_min: mhz("cpuinfo_min_freq"),
            mhz_max: mhz("cpuinfo_max_freq"),
            frequency_driver: line_of(format!("{CPU}/cpu0/cpufreq/scaling_driver")),
            turbo: turbo(),
            product: product(),
            container: container(),
            memory_available_bytes: kib("MemAvailable"),
            swap_used_bytes: kib("SwapTotal").zip(kib("SwapFree")).map(|(all, free)| all - free),
            memory_limit_bytes: line_of("/sys/fs/cgroup/memory.max")
                .and_then(|text| text.parse().ok()),
            cpu_limit_cores: line_of("/sys/fs/cgroup/cpu.max").and_then(|text| cpu_limit(&text)),
            numa_nodes: numa_nodes(),
            load_1m: line_of("/proc/loadavg").and_then(|text| first_number(&text)),
            steal_share: line_of("/proc/stat").and_then(|text| steal_share(&text)),
            perf_event_paranoid: line_of("/proc/sys/kernel/perf_event_paranoid")
                .and_then(|text| text.parse().ok()),
            clock_source: line_of(
                "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            ),
        }
    }
}

fn first_number(text: &str) -> Option<f64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// Packages, physical cores, processors.
fn topology(cpuinfo: &str) -> (Option<usize>, Option<usize>, Option<usize>) {
    let (mut packages, mut cores, mut processors) = (BTreeSet::new(), BTreeSet::new(), 0);
    let mut package = "";
    for (key, value) in cpuinfo.lines().filter_map(|line| line.split_once(':')) {
        match key.trim() {
            "processor" => processors += 1,
            "physical id" => {
                package = value.trim();
                packages.insert(package);
            }
            "core id" => {
                cores.insert((package, value.trim()));
            }
            _ => {}
        }
    }
    let some = |count: usize| (count > 0).then_some(count);
    (some(packages.len()), some(cores.len()), some(processors))
}

fn caches(cpu: &Path) -> Vec<Cache> {
    (0..16)
        .map_while(|index| {
            let folder = cpu.join(format!("cpu0/cache/index{index}"));
            let of = |name: &str| line_of(folder.join(name));
            Some(Cache {
                level: of("level")?.parse().ok()?,
                kind: of("type")?,
                bytes: size(&of("size")?)?,
                shared_by: of("shared_cpu_list").unwrap_or_default(),
            })
        })
        .collect()
}

/// Parses `32K`, `8M`.
fn size(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let count: u64 = text[..digits].parse().ok()?;
    let unit = match &text[digits..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    count.checked_mul(unit)
}

fn turbo() -> Option<bool> {
    let off = line_of(format!("{CPU}/intel_pstate/no_turbo")).map(|text| text == "0");
    off.or_else(|| line_of(format!("{CPU}/cpufreq/boost")).map(|text| text == "1"))
}

fn product() -> Option<String> {
    let of = |name: &str| line_of(format!("/sys/class/dmi/id/{name}"));
    let words: Vec<String> = [of("sys_vendor"), of("product_name")].into_iter().flatten().collect();
    let product = (!words.is_empty()).then(|| words.join(" "));
    product.or_else(|| line_of("/sys/hypervisor/type"))
}

fn container() -> Option<String> {
    if Path::new("/.dockerenv").exists() {
        return Some("docker".to_owned());
    }
    if Path::new("/run/.containerenv").exists() {
        return Some("podman".to_owned());
    }
    let release = line_of("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.to_ascii_lowercase().contains("microsoft").then(|| "wsl".to_owned())
}

/// Parses `200000 100000`: quota and period in microseconds, here two cores. `max` is no limit.
fn cpu_limit(text: &str) -> Option<f64> {
    let (quota, period) = text.split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.trim().parse().ok()?);
    (period > 0.0).then_some(quota / period)
}

fn numa_nodes() -> Option<usize> {
    let entries = fs::read_dir("/sys/devices/system/node").ok()?;
    let is_node = |name: &str| {
        name.strip_prefix("node")
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let count = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_node));
    Some(count.count()).filter(|count| *count > 0)
}

/// First line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
fn steal_share(line: &str) -> Option<f64> {
    let ticks: Vec<f64> =
        line.split_ascii_whitespace().skip(1).take(8).map_while(|word| word.parse().ok()).collect();
    let all: f64 = ticks.iter().sum();
    (ticks.len() == 8 && all > 0.0).then(|| ticks[7] / all)
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DiskInfo {
    pub folder: String,
    /// Mounted device.
    pub source: Option<String>,
    pub mount: Option<String>,
    pub device: Option<String>,
    pub model: Option<String>,
    /// True for a spinning disk.
    pub rotational: Option<bool>,
    /// Active I/O scheduler.
    pub scheduler: Option<String>,
}

impl DiskInfo {
    pub(super) fn read(folder: &Path) -> Self {
        let path = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
        let found = mount_of(&mounts, &path);
        let device = found.and_then(|[source, ..]| block_device(source));
        let queue = |name: &str| {
            let device = device.as_ref()?;
            line_of(format!("/sys/block/{device}/queue/{name}"))
        };
        let scheduler = queue("scheduler").map(|text| {
            let chosen = text.split(['[', ']']).nth(1).map(str::to_owned);
            chosen.unwrap_or(text)
        });
        Self {
            folder: path.display().to_string(),
            source: found.map(|[source, ..]| source.to_owned()),
            mount: found.map(|[_, mount, _]| mount.to_owned()),
            model: device
                .as_ref()
                .and_then(|name| line_of(format!("/sys/block/{name}/device/model"))),
            rotational: queue("rotational").map(|text| text == "1"),
            scheduler,
            device,
        }
    }
}

/// The disk of a partition.
fn block_device(source: &str) -> Option<String> {
    let path = fs::canonicalize(source).ok()?;
    let name = path.file_name()?.to_str()?.to_owned();
    if Path::new("/sys/block").join(&name).exists() {
        return Some(name);
    }
    let partition = fs::canonicalize(Path::new("/sys/class/block").join(&name)).ok()?;
    partition.parent()?.file_name()?.to_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_proc_and_sys() {
        let cpuinfo = "processor : 0\nphysical id : 0\ncore id : 0\n\n\
                       processor : 1\nphysical id : 0\ncore id : 0\n\n\
                       processor : 2\nphysical id : 1\ncore id : 0\n";
        assert_eq!(topology(cpuinfo), (Some(2), Some(2), Some(3)));
        assert_eq!(topology(""), (None, None, None));
        assert_eq!(
            [size("32K"), size("8M"), size("12"), size("1T"), size("")].map(|x| x.unwrap_or(0)),
            [32 << 10, 8 << 20, 12, 0, 0]
        );
        assert_eq!(cpu_limit("150000 100000"), Some(1.5));
        assert_eq!(cpu_limit("max 100000"), None);
        assert_eq!(steal_share("cpu  50 0 25 20 0 0 0 5 0 0"), Some(0.05));
        assert_eq!(steal_share("cpu 1 2 3"), None);
    }

    #[test]
    fn this_machine_reports_its_properties() {
        if !Path::new("/proc/cpuinfo").exists() {
            eprintln!("skipped: no /proc");
            return;
        }
        let system = System::read();
        assert!(system.processors.is_some() && system.memory_available_bytes.is_some());
        assert!(DiskInfo::read(Path::new(".")).mount.is_some());
    }
}
