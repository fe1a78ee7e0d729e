//! Human-readable text of a survey.

use assay_report::Table;

use super::{Effort, Noise, Survey};
use crate::machine;

impl Survey {
    pub fn text(&self) -> String {
        let mut out = String::new();
        if let Some(note) = self.shortened() {
            out.push_str(&note);
            out.push_str("\n\n");
        }
        for table in [machine::table(&self.machine), self.system_table(), self.disk_table()] {
            table.text(&mut out);
            out.push('\n');
        }
        self.noise_table().text(&mut out);
        out.push('\n');
        self.backend_table().text(&mut out);
        out
    }

    /// Probes with fewer samples than in a thorough survey.
    fn shortened(&self) -> Option<String> {
        let all = Effort::Thorough.limits();
        let disk = self.disk_speed.as_ref();
        let counts = [
            ("file, MiB", disk.map(|speed| (speed.bytes >> 20) as usize), all.writes.samples * 16),
            ("4 KiB reads", disk.map(|speed| speed.random_reads), all.random_reads.samples),
            ("synced writes", disk.map(|speed| speed.fsyncs), all.syncs.samples),
            ("repeats on one core", Some(self.noise.repeats), all.noise.samples),
            ("on all cores", Some(self.noise_all_cores.repeats), all.noise.samples),
        ];
        let fewer = counts.iter().filter_map(|(what, count, of)| {
            let count = count.filter(|count| count < of)?;
            Some(format!("{what} {count} of {of}"))
        });
        let fewer: Vec<String> = fewer.collect();
        (!fewer.is_empty()).then(|| {
            format!(
                "Shortened ({} effort; --thorough takes all samples): {}.",
                self.effort.name(),
                fewer.join(", ")
            )
        })
    }

    fn system_table(&self) -> Table {
        let system = &self.system;
        let mut table = Table::new("System", &["", ""], 2);
        let mut row = |name: &str, value: Option<String>| {
            table.push([name.to_owned(), value.unwrap_or_else(|| "unavailable".to_owned())]);
        };
        let count = |value: Option<usize>| value.map(|value| value.to_string());
        let cores =
            [count(system.packages), count(system.physical_cores), count(system.processors)]
                .map(|value| value.unwrap_or_else(|| "?".to_owned()));
        row("Packages, cores, processors", Some(cores.join(", ")));
        let on = |value: Option<bool>| value.map(|on| if on { "on" } else { "off" }.to_owned());
        row("Threads share cores", on(system.smt));
        for cache in &system.caches {
            let name = format!("L{} {}", cache.level, cache.kind.to_ascii_lowercase());
            row(&name, Some(format!("{}, processors {}", kib(cache.bytes), cache.shared_by)));
        }
        let mhz = system.mhz_min.zip(system.mhz_max);
        row("Frequency", mhz.map(|(low, high)| format!("{low} to {high} MHz")));
        row("Frequency driver", system.frequency_driver.clone());
        row("Turbo", on(system.turbo));
        row("Product", system.product.clone());
        if system.container.is_some() {
            row("Container", system.container.clone());
        }
        row("Memory available", system.memory_available_bytes.map(kib));
        row("Swap in use", system.swap_used_bytes.map(kib));
        if system.memory_limit_bytes.is_some() {
            row("Memory limit", system.memory_limit_bytes.map(kib));
        }
        if let Some(cores) = system.cpu_limit_cores {
            row("Processor limit", Some(format!("{cores:.2} cores")));
        }
        row("Memory nodes", count(system.numa_nodes));
        row("Load", system.load_1m.map(|load| format!("{load:.2}")));
        row("Taken by the host", system.steal_share.map(|share| format!("{:.2} %", share * 100.0)));
        row("Clock source", system.clock_source.clone());
        let counters = match &self.counters_missing {
            None => "available".to_owned(),
            Some(why) => format!("unavailable: {why}"),
        };
        row("Counters", Some(counters));
        row("perf_event_paranoid", system.perf_event_paranoid.map(|level| level.to_string()));
        table
    }

    fn backend_table(&self) -> Table {
        let library = self
            .signature_backends
            .iter()
            .find(|one| one.name == "libsecp256k1")
            .and_then(|one| one.ns_per_signature);
        let title = "Signatures (ECDSA in batches, all cores)";
        let mut table = Table::new(title, &["Backend", "us each", "libsecp256k1 / it"], 1);
        for speed in &self.signature_backends {
            let name = format!("{}{}", speed.name, if speed.is_used { " (used)" } else { "" });
            let time = speed.ns_per_signature.map(|ns| format!("{:.2}", ns / 1000.0));
            let ratio = library.zip(speed.ns_per_signature).map(|(library, ns)| library / ns);
            let none = || "not on this processor".to_owned();
            let ratio = ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}"));
            table.push([name, time.unwrap_or_else(none), ratio]);
        }
        table
    }

    fn disk_table(&self) -> Table {
        let disk = &self.disk;
        let mut table = Table::new("Disk", &["", ""], 2);
        let mut row = |name: &str, value: Option<String>| {
            table.push([name.to_owned(), value.unwrap_or_else(|| "unavailable".to_owned())]);
        };
        row("Folder", Some(disk.folder.clone()));
        row(
            "Mounted",
            disk.source.clone().zip(disk.mount.clone()).map(|(from, on)| format!("{from} on {on}")),
        );
        row("Device", disk.device.clone());
        row("Model", disk.model.clone());
        row(
            "Rotating",
            disk.rotational
                .map(|turns| if turns { "yes, says the system" } else { "no" }.to_owned()),
        );
        row("Scheduler", disk.scheduler.clone());
        if let Some(speed) = &self.disk_speed {
            let cold = if speed.read_is_cold { "from the disk" } else { "from memory" };
            row(
                "Written",
                Some(format!(
                    "{:.0} MiB/s: {}, synced every 16 MiB",
                    speed.write_mib_per_s,
                    kib(speed.bytes)
                )),
            );
            row("Read", Some(format!("{:.0} MiB/s, {cold}", speed.read_mib_per_s)));
            row(
                "4 KiB read anywhere",
                Some(micros(speed.random_read_us, speed.random_read_us_max, speed.random_reads)),
            );
            row(
                "4 KiB written, synced",
                Some(micros(speed.fsync_us, speed.fsync_us_max, speed.fsyncs)),
            );
        } else {
            row("Speed", self.disk_fault.clone());
        }
        table
    }

    fn noise_table(&self) -> Table {
        let head = ["cores", "repeats", "median, ms", "err %", "longest", "last over first fifth"];
        let mut table = Table::new("Noise of a fixed piece of work", &head, 0);
        for Noise { cores, repeats, median_ms, err_percent, max_percent, drift } in
            [self.noise, self.noise_all_cores]
        {
            table.push([
                cores.to_string(),
                repeats.to_string(),
                format!("{median_ms:.2}"),
                format!("{err_percent:.2}"),
                format!("+{max_percent:.1} %"),
                format!("{drift:.3}"),
            ]);
        }
        table
    }
}

fn kib(bytes: u64) -> String {
    match bytes {
        0 => "none".to_owned(),
        bytes if bytes >= 1 << 30 => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
        bytes if bytes >= 1 << 20 => format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20)),
        bytes => format!("{} KiB", bytes >> 10),
    }
}

fn micros(median: f64, max: f64, samples: usize) -> String {
    format!("median {median:.0} µs, slowest {max:.0} µs, {samples} samples")
}

#[cfg(test)]
mod tests {
    use super::super::{BackendSpeed, DiskInfo, System};
    use super::*;
    use crate::machine::Machine;

    #[test]
    fn text_of_a_survey() {
        let survey = Survey {
            schema: 2,
            kind: "machine",
            created: String::new(),
            effort: Effort::Default,
            machine: Machine::default(),
            system: System { turbo: Some(true), ..System::default() },
            counters_missing: Some("not permitted".to_owned()),
            disk: DiskInfo::default(),
            disk_speed: None,
            disk_fault: Some("no room".to_owned()),
            noise: Noise { repeats: 61, ..Noise::default() },
            noise_all_cores: Noise { repeats: 100, ..Noise::default() },
            signature_backends: vec![
                BackendSpeed { name: "avx2", is_used: true, ns_per_signature: Some(16_000.0) },
                BackendSpeed { name: "libsecp256k1", is_used: false, ns_per_signature: Some(4e4) },
                BackendSpeed { name: "ifma", is_used: false, ns_per_signature: None },
            ],
        };
        let text = survey.text();
        let shortened = "Shortened (default effort; --thorough takes all samples): \
                         repeats on one core 61 of 100.\n";
        assert!(text.starts_with(shortened), "{text}");
        assert!(text.contains("avx2 (used)") && text.contains("2.50"), "{text}");
        assert!(text.contains("not permitted") && text.contains("no room"), "{text}");
        assert_eq!([kib(0), kib(32 << 10), kib(3 << 30)], ["none", "32 KiB", "3.0 GiB"]);
    }
}
