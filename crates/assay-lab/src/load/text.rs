//! Text of load results.

use std::fmt::Write as _;

use assay_report::stats::median;

use super::results::{Latency, LoadReport, PassReport, PhaseFigures};

const MIB: f64 = 1_048_576.0;

impl LoadReport {
    /// Tables for the terminal.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{} at {}{}, protocol {}\n{} clients, mix {}",
            self.software,
            self.address,
            if self.tls { " (TLS)" } else { "" },
            self.protocol,
            self.clients,
            self.mix.name(),
        );
        if self.subscriptions > 0 {
            let _ = write!(text, ", {} subscriptions each", self.subscriptions);
        }
        let _ = match self.rate {
            Some(rate) => write!(text, ", {rate} questions/s"),
            None => write!(text, ", {} under way in each", self.depth),
        };
        let chain = self.chain.as_deref().unwrap_or("no chain directory");
        let _ = writeln!(text, ", seed {}\n{chain}", self.seed);
        for pass in &self.passes {
            write_pass(&mut text, pass);
        }
        if let Some(ratio) = self.hostile_ratio {
            let _ = writeln!(
                text,
                "\nwith hostile clients over without, {} pairs: p50 {:.2}, p95 {:.2}, p99 {:.2}",
                ratio.pairs, ratio.p50, ratio.p95, ratio.p99
            );
        }
        for note in &self.notes {
            let _ = writeln!(text, "- {note}");
        }
        text
    }
}

// Writing to a string does not fail, so its result is dropped throughout.
fn write_pass(text: &mut String, pass: &PassReport) {
    let _ = match pass.hostile {
        0 => writeln!(text, "\n== {}: {} clients", pass.name, pass.honest),
        hostile => {
            writeln!(text, "\n== {}: {} clients and {hostile} hostile ones", pass.name, pass.honest)
        }
    };
    let start = &pass.start;
    let _ = writeln!(
        text,
        "ready in {:.2} s, {} subscriptions ({:.0}/s)",
        start.seconds,
        start.subscriptions,
        start.subscriptions as f64 / start.seconds.max(1e-9)
    );
    write_table(text, pass);
    write_phase(text, "idle", &pass.idle);
    if let Some(blocks) = &pass.blocks {
        write_phase(text, "blocks", blocks);
    }
    write_notifications(text, pass);
    let checks = &pass.checks;
    let _ = writeln!(
        text,
        "answers: {} right, {} stale, {} wrong, {} not known; subscriptions at the end: {} right, {} wrong",
        checks.right,
        checks.stale,
        checks.wrong,
        checks.unknown,
        checks.subscriptions_right,
        checks.subscriptions_wrong
    );
    for example in &checks.examples {
        let _ = writeln!(text, "  {example}");
    }
    if pass.disconnects > 0 {
        let _ = writeln!(text, "honest clients lost their connection {} times", pass.disconnects);
    }
    if let Some(lag) = pass.lag {
        let _ = writeln!(text, "generator late by {}", percentiles(&lag));
    }
    if let (Some(first), Some(peak)) = (pass.server_rss_start_bytes, pass.server_rss_peak_bytes) {
        let _ = writeln!(
            text,
            "server memory: {:.0} MiB at the start, {:.0} MiB at most",
            first as f64 / MIB,
            peak as f64 / MIB
        );
    }
    write_hostiles(text, pass);
}

/// One line per method, both phases side by side.
fn write_table(text: &mut String, pass: &PassReport) {
    let _ = write!(text, "\n{:<36}", "milliseconds");
    for phase in phases(pass) {
        let _ = write!(
            text,
            "{:>10}{:>9}{:>9}{:>9}{:>9}",
            format!("{phase}/s"),
            "p50",
            "p95",
            "p99",
            "max"
        );
    }
    text.push('\n');
    let figures: Vec<&PhaseFigures> = std::iter::once(&pass.idle).chain(&pass.blocks).collect();
    let mut names: Vec<&str> = Vec::new();
    for method in figures.iter().flat_map(|figures| &figures.methods) {
        if !names.contains(&method.method.as_str()) {
            names.push(&method.method);
        }
    }
    for name in names {
        let _ = write!(text, "{name:<36}");
        for figures in &figures {
            let method = figures.methods.iter().find(|method| method.method == name);
            write_cells(text, method.map_or(0.0, |m| m.per_s), method.and_then(|m| m.latency));
        }
        text.push('\n');
    }
    let _ = write!(text, "{:<36}", "all");
    for figures in figures {
        write_cells(text, figures.per_s, figures.latency);
    }
    text.push('\n');
}

fn phases(pass: &PassReport) -> impl Iterator<Item = &'static str> {
    std::iter::once("idle").chain(pass.blocks.as_ref().map(|_| "blocks"))
}

fn write_cells(text: &mut String, per_s: f64, latency: Option<Latency>) {
    let _ = match latency {
        Some(l) => write!(
            text,
            "{per_s:>10.1}{:>9}{:>9}{:>9}{:>9}",
            short(l.p50_ms),
            short(l.p95_ms),
            short(l.p99_ms),
            short(l.max_ms)
        ),
        None => write!(text, "{:>10}{:>9}{:>9}{:>9}{:>9}", "-", "-", "-", "-", "-"),
    };
}

/// Three digits or a little more.
fn short(milliseconds: f64) -> String {
    match milliseconds {
        value if value < 10.0 => format!("{value:.3}"),
        value if value < 100.0 => format!("{value:.2}"),
        value => format!("{value:.0}"),
    }
}

fn percentiles(latency: &Latency) -> String {
    format!(
        "p50 {}, p95 {}, p99 {}, max {} ms",
        short(latency.p50_ms),
        short(latency.p95_ms),
        short(latency.p99_ms),
        short(latency.max_ms)
    )
}

fn write_phase(text: &mut String, name: &str, figures: &PhaseFigures) {
    let _ = write!(
        text,
        "{name}: {:.1} s, {:.2} MiB received, {:.2} MiB sent",
        figures.seconds,
        figures.bytes_in as f64 / MIB,
        figures.bytes_out as f64 / MIB
    );
    if let Some(cpu_s) = figures.server_cpu_s {
        let _ = write!(
            text,
            ", server CPU {cpu_s:.2} s ({:.0} µs an answer)",
            cpu_s * 1e6 / (figures.answers.max(1) as f64)
        );
    }
    if let Some(cpu_s) = figures.generator_cpu_s {
        let _ = write!(text, ", generator CPU {cpu_s:.2} s");
    }
    if let Some(latency) = figures.since_sent {
        let _ = write!(text, "; from sending: {}", percentiles(&latency));
    }
    if figures.unanswered > 0 {
        let _ = write!(text, ", {} questions without an answer", figures.unanswered);
    }
    text.push('\n');
    for (kind, count) in &figures.errors {
        let _ = writeln!(text, "  {count} × {kind}");
    }
}

fn write_notifications(text: &mut String, pass: &PassReport) {
    if pass.fed.is_empty() {
        return;
    }
    let column = |of: fn(&super::FedBlock) -> Option<f64>| {
        let values: Vec<f64> = pass.fed.iter().filter_map(of).collect();
        if values.is_empty() { "-".to_owned() } else { short(median(&values)) }
    };
    let _ = writeln!(
        text,
        "{} blocks; medians from submission, ms: node's answer {}, first header {}, last header {}, last script {}",
        pass.fed.len(),
        column(|block| Some(block.reply_ms)),
        column(|block| block.first_header_ms),
        column(|block| block.last_header_ms),
        column(|block| block.last_script_ms),
    );
    for (name, latency) in
        [("headers", pass.header_notifications), ("scripts", pass.script_notifications)]
    {
        if let Some(latency) = latency {
            let _ = writeln!(
                text,
                "notified of {name}: {} times, {} after submission",
                latency.count,
                percentiles(&latency)
            );
        }
    }
}

fn write_hostiles(text: &mut String, pass: &PassReport) {
    if pass.hostiles.is_empty() {
        return;
    }
    let _ = writeln!(
        text,
        "{:<26}{:>8}{:>12}{:>12}{:>9}{:>10}{:>10}{:>10}",
        "hostile", "clients", "connected", "thrown out", "refused", "answers", "errors", "MiB sent"
    );
    for kind in &pass.hostiles {
        let _ = writeln!(
            text,
            "{:<26}{:>8}{:>12}{:>12}{:>9}{:>10}{:>10}{:>10.1}",
            kind.kind,
            kind.clients,
            kind.connections,
            kind.thrown_out,
            kind.refused,
            kind.lines,
            kind.errors,
            kind.bytes_out as f64 / MIB
        );
    }
}
