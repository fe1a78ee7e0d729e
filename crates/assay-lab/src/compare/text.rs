//! Text forms of a comparison: terminal, Markdown, CSV.

use std::fmt::Write as _;

use assay_report::Table;
use assay_report::csv_field;
use assay_report::number::in_percent;
use assay_report::stats::verdict::Verdict;

use super::pairs::PAIRS_MIN;
use super::{ComparedRow, Comparison, PairComparison, Spread};

impl Comparison {
    pub fn text(&self) -> String {
        let mut out = String::new();
        for compared in &self.comparisons {
            let _ = writeln!(out, "{}", heading(compared));
            table(compared).text(&mut out);
            if let Some(table) = machine_table(compared) {
                out.push('\n');
                table.text(&mut out);
            }
            for line in self.lines(compared) {
                let _ = writeln!(out, "{line}");
            }
            out.push('\n');
        }
        out
    }

    /// Markdown for pull requests.
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        for compared in &self.comparisons {
            let _ = writeln!(out, "### {}\n", heading(compared));
            table(compared).markdown(&mut out);
            if let Some(table) = machine_table(compared) {
                out.push('\n');
                table.markdown(&mut out);
            }
            for line in self.lines(compared) {
                let _ = writeln!(out, "- {line}");
            }
            out.push('\n');
        }
        out
    }

    /// CSV with a line per row.
    pub fn csv(&self) -> String {
        let mut out = String::from(
            "first,second,seen,what,pairs,first_mean_s,first_sigma_s,first_min_s,first_max_s,second_mean_s,second_sigma_s,\
             second_min_s,second_max_s,ratio,low,high,coverage,p_adjusted,floor,verdict\n",
        );
        for compared in &self.comparisons {
            for row in &compared.rows {
                let (a, b, ratio) = (&row.first, &row.second, &row.ratio);
                let p = row.p_adjusted.map_or_else(String::new, |p| format!("{p:.6}"));
                let _ = writeln!(
                    out,
                    "{},{},{},{},{},{:.6},{:.6},{:.6},{:.6},{:.6},{:.6},{:.6},{:.6},{:.6},{:.6},{:.6},{:.4},{p},{:.6},{}",
                    csv_field(&compared.first),
                    csv_field(&compared.second),
                    row.seen,
                    csv_field(&row.what),
                    ratio.pairs,
                    a.mean_s,
                    a.sigma_s,
                    a.min_s,
                    a.max_s,
                    b.mean_s,
                    b.sigma_s,
                    b.min_s,
                    b.max_s,
                    ratio.median,
                    ratio.interval.low,
                    ratio.interval.high,
                    ratio.coverage,
                    row.floor,
                    row.verdict.text(),
                );
            }
        }
        out
    }

    /// A sentence per total: verdict, interval, floor and pairs.
    pub fn verdicts(&self) -> Vec<String> {
        let of = |compared: &PairComparison| {
            let totals = compared.rows.iter().filter(|row| row.is_total);
            let sentences = totals.map(|row| {
                let pairs = compared
                    .pairs
                    .iter()
                    .find(|count| in_percent(count.seen) == in_percent(row.seen));
                let pairs = pairs.map_or_else(String::new, |count| {
                    format!("; {} of {} planned pairs", count.counted, count.planned)
                });
                format!("VERDICT: {}{pairs}", self.sentence(compared, row))
            });
            let mut sentences: Vec<String> = sentences.collect();
            if sentences.is_empty() {
                let (first, second) = (&compared.first, &compared.second);
                sentences.push(format!("VERDICT: none on {first} and {second}: no pairs count"));
            }
            sentences
        };
        self.comparisons.iter().flat_map(of).collect()
    }

    /// Notes below the tables.
    pub fn notes(&self) -> Vec<String> {
        self.comparisons.iter().flat_map(|compared| compared.notes.clone()).collect()
    }

    /// A table per two sides.
    pub fn tables(&self) -> Vec<Table> {
        let of = |compared: &PairComparison| {
            let mut table = table(compared);
            table.caption = format!("{}: {}", heading(compared), table.caption);
            std::iter::once(table).chain(machine_table(compared)).collect::<Vec<_>>()
        };
        self.comparisons.iter().flat_map(of).collect()
    }

    /// Verdicts on totals, notes, and the measured floor.
    fn lines(&self, compared: &PairComparison) -> Vec<String> {
        let mut lines: Vec<String> = compared
            .rows
            .iter()
            .filter(|row| row.is_total)
            .map(|row| self.sentence(compared, row))
            .collect();
        let false_ones = compared.rows.iter().filter(|row| row.verdict.is_difference()).count();
        if compared.is_aa && !compared.rows.is_empty() {
            lines.push(format!("false verdicts: {false_ones} of {} rows", compared.rows.len()));
            let floors = compared.rows.iter().filter(|row| row.is_total).map(|row| {
                format!(
                    "{:.2} % ({} % pre-relayed)",
                    row.ratio.reach() * 100.0,
                    in_percent(row.seen)
                )
            });
            lines.push(format!(
                "floor of totals on this machine, from these pairs: {}",
                floors.collect::<Vec<_>>().join(", ")
            ));
        }
        lines.extend(compared.notes.iter().map(|note| format!("note: {note}")));
        lines
    }

    fn sentence(&self, compared: &PairComparison, row: &ComparedRow) -> String {
        let away = (row.ratio.median.max(1.0 / row.ratio.median) - 1.0) * 100.0;
        let interval = format!("ratio {:.4}, {}", row.ratio.median, interval(row));
        let seen = format!("{} % pre-relayed", in_percent(row.seen));
        match row.verdict {
            Verdict::Faster | Verdict::Slower => format!(
                "{seen}: {} is {} than {} by {away:.2} % ({interval}, floor {:.2} %)",
                compared.second,
                row.verdict.text(),
                compared.first,
                row.floor * 100.0
            ),
            Verdict::Equivalent => format!(
                "{seen}: {} and {} are equivalent within {:.2} % ({interval})",
                compared.first,
                compared.second,
                self.delta * 100.0
            ),
            Verdict::NotShown if row.ratio.pairs < PAIRS_MIN => format!(
                "{seen}: undecided between {} and {}: fewer than {PAIRS_MIN} pairs count ({interval})",
                compared.first, compared.second
            ),
            Verdict::NotShown => format!(
                "{seen}: no difference shown between {} and {} ({interval}, floor {:.2} %)",
                compared.first,
                compared.second,
                row.floor * 100.0
            ),
        }
    }
}

fn heading(compared: &PairComparison) -> String {
    format!("A = {}, B = {}", compared.first, compared.second)
}

fn interval(row: &ComparedRow) -> String {
    let (interval, coverage) = (row.ratio.interval, row.ratio.coverage * 100.0);
    format!("{:.4} to {:.4} with at least {coverage:.1} %", interval.low, interval.high)
}

fn table(compared: &PairComparison) -> Table {
    let pairs = compared.pairs.iter().map(|count| {
        format!(
            "{} of {} planned pairs at {} % pre-relayed",
            count.counted,
            count.planned,
            in_percent(count.seen)
        )
    });
    let machines = match compared.machines.len() {
        0 => String::new(),
        1 => "; one machine".to_owned(),
        count => format!("; ratios within each of {count} machines, then over machines"),
    };
    let caption = format!(
        "time of A over time of B: above 1, B is faster; {}{machines}",
        pairs.collect::<Vec<_>>().join(", ")
    );
    let head = [
        "Seen",
        "What",
        "A mean ± σ, s",
        "A range, s",
        "B mean ± σ, s",
        "B range, s",
        "ratio",
        "interval",
        "covers",
        "p",
        "floor",
        "verdict",
    ];
    let mut table = Table::new(&caption, &head, 2);
    for row in &compared.rows {
        let mean = |spread: &Spread| format!("{:.3} ± {:.3}", spread.mean_s, spread.sigma_s);
        let range = |spread: &Spread| format!("{:.3} … {:.3}", spread.min_s, spread.max_s);
        table.push([
            format!("{} %", in_percent(row.seen)),
            row.title.clone(),
            mean(&row.first),
            range(&row.first),
            mean(&row.second),
            range(&row.second),
            format!("{:.4}", row.ratio.median),
            format!("{:.4} to {:.4}", row.ratio.interval.low, row.ratio.interval.high),
            format!("{:.1} %", row.ratio.coverage * 100.0),
            row.p_adjusted.map_or_else(|| "–".to_owned(), |p| format!("{p:.3}")),
            format!("{:.2} %", row.floor * 100.0),
            row.verdict.text().to_owned(),
        ]);
    }
    table
}

/// The machines of the pairs with their own ratios of totals.
fn machine_table(compared: &PairComparison) -> Option<Table> {
    if compared.machines.is_empty() {
        return None;
    }
    let totals: Vec<&ComparedRow> = compared.rows.iter().filter(|row| row.is_total).collect();
    let mut head: Vec<String> =
        ["machine", "processor", "cores", "memory", "kernel", "pairs"].map(str::to_owned).into();
    head.extend(
        totals
            .iter()
            .map(|row| format!("ratio of {}, {} % pre-relayed", row.title, in_percent(row.seen))),
    );
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut table = Table::new("machines, with the median ratio of each alone", &head, 2);
    for (index, entry) in compared.machines.iter().enumerate() {
        let machine = &entry.machine;
        let known = |text: Option<String>| text.unwrap_or_else(|| "unavailable".to_owned());
        let memory = machine.memory_bytes.map(|bytes| format!("{} GiB", (bytes + (1 << 29)) >> 30));
        let model = machine.cpu_model.as_ref().map(|model| format!(" ({model})"));
        let mut cells = vec![
            entry.name.clone(),
            known(machine.cpu.clone()) + &model.unwrap_or_default(),
            machine.cores.to_string(),
            known(memory),
            known(machine.kernel.clone()),
            entry.pairs.to_string(),
        ];
        for row in &totals {
            let ratio = row.machines.as_ref().and_then(|ratios| *ratios.medians.get(index)?);
            cells.push(ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.4}")));
        }
        table.rows.push(cells);
    }
    Some(table)
}
