//! What to change for steadier figures. Nothing is changed here: the commands are for whoever owns the machine.

use serde::Serialize;

use super::Survey;

/// Deviation of the control load above which a machine is called noisy, in percent.
const ERR_MAX: f64 = 1.0;
/// The same for its slowest repeat.
const MAX_MAX: f64 = 10.0;
/// How much slower all cores at once may be than one alone.
const SHARED_MAX: f64 = 1.1;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// What it is about, as a word.
    pub what: String,
    /// What was found, and why it matters.
    pub why: String,
    /// What a person would run; absent where no command helps.
    pub command: Option<String>,
}

/// What there is to say, what matters most first.
pub(super) fn of(survey: &Survey) -> Vec<Advice> {
    let mut list = Vec::new();
    let mut say = |what: &str, why: String, command: Option<&str>| {
        list.push(Advice { what: what.to_owned(), why, command: command.map(str::to_owned) });
    };
    busy(survey, &mut say);
    clock(survey, &mut say);
    virtual_machine(survey, &mut say);
    memory(survey, &mut say);
    disk(survey, &mut say);
    counters(survey, &mut say);
    list
}

/// Takes what it is about, why, and a command.
type Say<'a> = dyn FnMut(&str, String, Option<&str>) + 'a;

fn busy(survey: &Survey, say: &mut Say<'_>) {
    if cfg!(debug_assertions) {
        let why = "debug build: its times mean nothing".to_owned();
        say("build", why, Some("cargo build --release"));
    }
    if let Some(load) = survey.system.load_1m.filter(|load| *load > 0.5) {
        let why = format!("load {load:.2}: other programs are running and affect every figure");
        say("load", why, Some("ps -eo pcpu,pid,args --sort=-pcpu | head"));
    }
    let (one, all) = (&survey.noise, &survey.noise_all_cores);
    if one.err_percent > ERR_MAX || one.max_percent > MAX_MAX {
        let why = format!(
            "single-core noise: {:.2} %, at most {:.1} %: use more pairs in comparisons, interleaved",
            one.err_percent, one.max_percent
        );
        say(
            "noise",
            why,
            Some("assay run PLAN --target A --target B --repeat 12 && assay compare results/PLAN"),
        );
    }
    if one.median_ms > 0.0 && all.median_ms > one.median_ms * SHARED_MAX {
        let why = format!(
            "all cores at once are {:.0} % slower than one alone: they share a core, a power budget or a host",
            (all.median_ms / one.median_ms - 1.0) * 100.0
        );
        let command = (survey.system.smt == Some(true))
            .then_some("echo off | sudo tee /sys/devices/system/cpu/smt/control");
        say("shared cores", why, command);
    }
}

fn clock(survey: &Survey, say: &mut Say<'_>) {
    if let Some(governor) = survey.machine.governor.as_deref().filter(|name| *name != "performance")
    {
        let why = format!(
            "the frequency governor is {governor}: short runs get a different clock from long ones"
        );
        say("governor", why, Some("sudo cpupower frequency-set --governor performance"));
    }
    if survey.system.turbo == Some(true) {
        let intel = "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo";
        let other = "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost";
        let is_intel =
            survey.system.frequency_driver.as_deref().is_some_and(|name| name.starts_with("intel"));
        let why =
            "turbo is on: the clock depends on temperature and on how many cores work".to_owned();
        say("turbo", why, Some(if is_intel { intel } else { other }));
    }
    if let Some(source) = survey
        .system
        .clock_source
        .as_deref()
        .filter(|name| ["hpet", "acpi_pm", "jiffies"].contains(name))
    {
        let why = format!("the clock source {source} takes microseconds to read");
        say(
            "clock source",
            why,
            Some(
                "echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource",
            ),
        );
    }
}

fn virtual_machine(survey: &Survey, say: &mut Say<'_>) {
    if let Some(share) = survey.system.steal_share.filter(|share| *share > 0.001) {
        let why = format!("steal time: {:.2} % since boot", share * 100.0);
        say("steal", why, None);
    }
    if survey.machine.virtual_machine {
        let why = "a virtual machine cannot see its neighbours: trust ratios of interleaved runs, not absolute times".to_owned();
        say("virtual machine", why, None);
    }
    if let Some(cores) = survey.system.cpu_limit_cores {
        let why = format!(
            "a control group allows {cores:.2} cores: beyond that all threads stop until the next period"
        );
        say("processor limit", why, Some("cat /sys/fs/cgroup/cpu.max"));
    }
}

fn memory(survey: &Survey, say: &mut Say<'_>) {
    if survey.machine.swap_bytes.is_some_and(|bytes| bytes > 0) {
        let why = "swap is on: what was measured may have waited for memory that came from disk"
            .to_owned();
        say("swap", why, Some("sudo swapoff --all"));
    }
    let pages = survey.machine.transparent_huge_pages.as_deref();
    if pages.is_some_and(|text| text.contains("[always]")) {
        let why = "transparent huge pages are always on, and which allocation gets one varies: use madvise or never for all runs".to_owned();
        say(
            "huge pages",
            why,
            Some("echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"),
        );
    }
    if survey.system.memory_available_bytes.is_some_and(|bytes| bytes < 2 << 30) {
        let why = "less than 2 GiB of memory are available: nodes get smaller caches, and the page cache is small".to_owned();
        say("memory", why, Some("free -h"));
    }
    if survey.system.numa_nodes.is_some_and(|nodes| nodes > 1) {
        let why = "several memory nodes: access times depend on where a process starts".to_owned();
        say("memory nodes", why, Some("numactl --cpunodebind=0 --membind=0 assay run PLAN"));
    }
}

fn disk(survey: &Survey, say: &mut Say<'_>) {
    if let Some(fault) = &survey.disk_fault {
        say("disk", format!("the disk was not measured: {fault}"), None);
    }
    if survey.disk.rotational == Some(true) && !survey.machine.virtual_machine {
        let why = "a rotating disk: speed depends on where a file lies".to_owned();
        say("disk", why, Some("assay run PLAN --out /path/on/an/ssd"));
    }
    if survey.disk.filesystem.as_deref() == Some("tmpfs") {
        let why = "the folder is in memory: no disk is measured, and the nodes have less memory"
            .to_owned();
        say("disk", why, Some("assay run PLAN --out /path/on/a/disk"));
    }
    let slow = survey.disk_speed.filter(|speed| {
        speed.fsync_us_max > 20.0 * speed.fsync_us && speed.fsync_us_max > 50_000.0
    });
    if let Some(speed) = slow {
        let why = format!(
            "a small synced write takes {:.1} ms, at worst {:.1} ms: the disk is shared, or busy with its own upkeep",
            speed.fsync_us / 1000.0,
            speed.fsync_us_max / 1000.0
        );
        say("disk", why, Some("sudo fstrim --all"));
    }
}

fn counters(survey: &Survey, say: &mut Say<'_>) {
    if let Some(why) = &survey.counters_missing {
        let is_refused = survey.system.perf_event_paranoid.is_some_and(|level| level > 2);
        let command = if is_refused {
            "sudo sysctl kernel.perf_event_paranoid=2"
        } else {
            "assay bench FILTER --instructions"
        };
        say("counters", format!("instructions are not counted: {why}"), Some(command));
    }
}
