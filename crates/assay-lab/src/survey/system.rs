//! Properties of the system in addition to those recorded in results.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use assay_report::record::Record;
use serde_json::json;

use crate::machine::{kib_field, line_of, mount_of};

const CPU: &str = "/sys/devices/system/cpu";

/// Adds processor, memory, and settings that affect measurements, as far as the system reports them.
pub(super) fn add_system(record: &mut Record) {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let (packages, physical_cores, processors) = topology(&cpuinfo);
    let kib = |name: &str| kib_field(&meminfo, name);
    let mhz = |name: &str| {
        let path = format!("{CPU}/cpu0/cpufreq/{name}");
        line_of(path)?.parse::<u64>().ok().map(|khz| khz / 1000)
    };
    let swap_used = kib("SwapTotal").zip(kib("SwapFree")).map(|(all, free)| all - free);
    let first = |path: &str| line_of(path).and_then(|text| first_number(&text));
    let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    for (name, value) in [
        ("packages", json!(packages)),
        ("physical cores", json!(physical_cores)),
        ("processors", json!(processors)),
        // 1 if processors share cores.
        ("SMT", json!(line_of(format!("{CPU}/smt/active")))),
        ("lowest MHz", json!(mhz("cpuinfo_min_freq"))),
        ("highest MHz", json!(mhz("cpuinfo_max_freq"))),
        ("frequency driver", json!(line_of(format!("{CPU}/cpu0/cpufreq/scaling_driver")))),
        ("turbo", json!(turbo())),
        ("product", json!(product())),
        ("container", json!(container())),
        ("bytes of memory available", json!(kib("MemAvailable"))),
        ("bytes of swap in use", json!(swap_used)),
        ("limit of memory, bytes", json!(first("/sys/fs/cgroup/memory.max"))),
        (
            "limit of cores",
            json!(line_of("/sys/fs/cgroup/cpu.max").and_then(|text| cpu_limit(&text))),
        ),
        ("memory nodes", json!(numa_nodes())),
        ("load of the last minute", json!(first("/proc/loadavg"))),
        // Since boot.
        (
            "share taken by the host",
            json!(line_of("/proc/stat").and_then(|text| steal_share(&text))),
        ),
        ("perf_event_paranoid", json!(line_of("/proc/sys/kernel/perf_event_paranoid"))),
        ("clock source", json!(line_of(clock))),
    ] {
        record.set_all(name, &value);
    }
    for cache in caches(Path::new(CPU)) {
        record.set("cache of the first processor", cache);
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

/// Level, kind, bytes, and the processors that share each cache of the first one.
fn caches(cpu: &Path) -> Vec<String> {
    (0..16)
        .map_while(|index| {
            let folder = cpu.join(format!("cpu0/cache/index{index}"));
            let of = |name: &str| line_of(folder.join(name));
            let (level, kind, bytes) = (of("level")?, of("type")?, size(&of("size")?)?);
            let shared_by = of("shared_cpu_list").unwrap_or_default();
            Some(format!("L{level} {kind}, {bytes} bytes, processors {shared_by}"))
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

/// Adds the folder and its disk.
pub(super) fn add_disk(folder: &Path, record: &mut Record) {
    let path = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let found = mount_of(&mounts, &path);
    let device = found.and_then(|[source, ..]| block_device(source));
    let of_device = |name: &str| line_of(format!("/sys/block/{}/{name}", device.as_ref()?));
    let scheduler = of_device("queue/scheduler").map(|text| {
        let chosen = text.split(['[', ']']).nth(1).map(str::to_owned);
        chosen.unwrap_or(text)
    });
    for (name, value) in [
        ("folder", json!(path.display().to_string())),
        ("mounted from", json!(found.map(|[source, ..]| source))),
        ("mounted on", json!(found.map(|[_, mount, _]| mount))),
        ("disk", json!(device)),
        ("model of the disk", json!(of_device("device/model"))),
        ("rotating", json!(of_device("queue/rotational"))),
        ("scheduler of the disk", json!(scheduler)),
    ] {
        record.set_all(name, &value);
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
        let mut record = Record::default();
        add_system(&mut record);
        add_disk(Path::new("."), &mut record);
        let is_there = |name: &str| record.setup.iter().any(|(known, _)| known == name);
        assert!(is_there("processors") && is_there("bytes of memory available"));
        assert!(is_there("mounted on"), "{:?}", record.setup);
    }
}
