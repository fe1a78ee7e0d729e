//! Forms of a record: terminal text, Markdown, HTML and CSV.

use std::fmt::Write as _;

use super::{Outcome, Record, Summary, Unit};
use crate::csv_field as field;
use crate::machine;
use crate::{Front, Page, Section, Table};

/// Columns of a terminal.
const WIDTH: usize = 80;
/// Widest name in a list of names and values.
const NAME_WIDTH_MAX: usize = 38;
/// Form of several values.
const SUMMARY: &str = "Several values: median (min to max, p95 of 20 values or more; number).";

/// Cases with common metrics.
#[derive(Default)]
struct Block<'a> {
    cases: Vec<(&'a str, &'a str)>,
    metrics: Vec<&'a str>,
    /// Case, metric, unit and values of all rounds.
    figures: Vec<(usize, usize, Unit, Vec<f64>)>,
}

impl Record {
    /// Text of at most 80 columns for a terminal: headline and verdict first.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for sentence in [&self.headline, &self.verdict()] {
            out.push_str(&wrap(sentence, WIDTH).join("\n"));
            out.push('\n');
        }
        if !self.checks.is_empty() {
            out.push('\n');
            list(self.checks.iter().map(|check| (&*check.name, check.outcome.text())), &mut out);
        }
        for table in self.tables() {
            out.push('\n');
            narrow(&table, &mut out);
        }
        if self.cells.iter().any(|cell| cell.round.is_some()) {
            out.push_str("  ");
            out.push_str(SUMMARY);
            out.push('\n');
        }
        out.push('\n');
        let setup = self.setup.iter().chain(&self.environment);
        let notes = self.notes.iter().map(|note| ("note", note.clone()));
        let end = [
            ("machine", self.machine.in_short()),
            ("assay", self.software.version()),
            ("repeat", self.command.clone()),
        ];
        list(setup.map(|(name, value)| (&**name, value.clone())).chain(notes).chain(end), &mut out);
        out
    }

    /// The same as a page, for HTML and Markdown.
    pub fn page(&self) -> Page {
        let mut checks = Table::new("Checks", &["Check", "Outcome"], 2);
        for check in &self.checks {
            checks.push([check.name.clone(), check.outcome.text()]);
        }
        let mut setup = Table::new("Setup", &["Parameter", "Value"], 2);
        for (name, value) in self.setup.iter().chain(&self.environment) {
            setup.push([name.clone(), value.clone()]);
        }
        let version = vec![format!("Assay {}.", self.software.version())];
        let machine = vec![machine::table(&self.machine)];
        Page {
            title: format!("assay {}", self.kind),
            summary: format!("`{}`", self.command),
            created: self.created.clone(),
            front: Some(Front {
                answer: format!("{} {}", self.headline, self.verdict()),
                caveats: self.notes.clone(),
                ..Front::default()
            }),
            sections: vec![
                Section::new("checks", "Checks", Vec::new(), vec![checks]),
                Section::new("figures", "Figures", vec![SUMMARY.to_owned()], self.tables()),
                Section::new("setup", "Setup", Vec::new(), vec![setup]),
                Section::new("machine", "Machine", version, machine),
            ],
        }
    }

    /// One line for each cell.
    pub fn csv(&self) -> String {
        let mut out = String::from("kind,target,case,round,metric,value,unit\n");
        for cell in &self.cells {
            let round = cell.round.map_or_else(String::new, |round| round.to_string());
            let [kind, target, case, metric] =
                [&self.kind, &cell.target, &cell.case, &cell.metric].map(|text| field(text));
            let (value, unit) = (cell.value, cell.unit.name());
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{kind},{target},{case},{round},{metric},{value},{unit}");
        }
        out
    }

    fn verdict(&self) -> String {
        let of = self.checks.len();
        match self.outcome() {
            Outcome::Passed(_) => format!("PASSED: {of} of {of} checks."),
            Outcome::Failed(text) => format!("FAILED: {text}"),
            Outcome::NotRun(reason) => format!("NOT CHECKED: {reason}"),
        }
    }

    /// Tables of the cells: cases against metrics, in the orientation with fewer lines on a terminal.
    fn tables(&self) -> Vec<Table> {
        let mut blocks: Vec<Block<'_>> = Vec::new();
        for cell in &self.cells {
            let case = (cell.target.as_str(), cell.case.as_str());
            let metric = cell.metric.as_str();
            let of_case = blocks.iter().position(|block| block.cases.contains(&case));
            let found = of_case.or_else(|| blocks.iter().position(|b| b.metrics.contains(&metric)));
            let index = found.unwrap_or(blocks.len());
            if index == blocks.len() {
                blocks.push(Block::default());
            }
            blocks[index].put(case, metric, (cell.unit, cell.value));
        }
        let first = self.cells.first().map(|cell| &cell.target);
        let has_one_target = self.cells.iter().all(|cell| Some(&cell.target) == first);
        let lines = |table: &Table| {
            let mut text = String::new();
            narrow(table, &mut text);
            text.lines().count()
        };
        let table = |block: &Block<'_>| {
            let [one, other] =
                [false, true].map(|is_by_case| block.table(is_by_case, has_one_target));
            let is_list = block.cases.len() == 1;
            if !is_list && lines(&other) < lines(&one) { other } else { one }
        };
        blocks.iter().map(table).collect()
    }
}

impl<'a> Block<'a> {
    fn put(&mut self, case: (&'a str, &'a str), metric: &'a str, (unit, value): (Unit, f64)) {
        let (case, metric) = (index(&mut self.cases, case), index(&mut self.metrics, metric));
        match self.figures.iter_mut().rfind(|(of, what, ..)| (*of, *what) == (case, metric)) {
            Some((.., values)) => values.push(value),
            None => self.figures.push((case, metric, unit, vec![value])),
        }
    }

    fn table(&self, is_by_case: bool, has_one_target: bool) -> Table {
        let name = |(target, case): &(&str, &str)| match (has_one_target, case.is_empty()) {
            (_, true) => (*target).to_owned(),
            (true, false) => (*case).to_owned(),
            (false, false) => format!("{target}: {case}"),
        };
        let cases: Vec<String> = self.cases.iter().map(name).collect();
        let metrics: Vec<String> = self.metrics.iter().map(|&metric| metric.to_owned()).collect();
        let (rows, columns) = if is_by_case { (cases, metrics) } else { (metrics, cases) };
        let mut table = Table::new("Figures", &[""], 1);
        let width = columns.len();
        table.head.extend(columns);
        table.rows = rows.into_iter().map(|name| vec![name]).collect();
        table.rows.iter_mut().for_each(|row| row.resize(width + 1, String::new()));
        for (case, metric, unit, values) in &self.figures {
            let (row, column) = if is_by_case { (*case, *metric) } else { (*metric, *case) };
            let text = Summary::of(values).map(|summary| summary.text(*unit));
            table.rows[row][column + 1] = text.unwrap_or_default();
        }
        table
    }
}

impl Outcome {
    fn text(&self) -> String {
        match self {
            Self::Passed(compared) => {
                format!("passed, {} compared", Unit::Count.format(compared.get() as f64))
            }
            Self::Failed(text) => format!("FAILED: {text}"),
            Self::NotRun(reason) => format!("not run: {reason}"),
        }
    }
}

/// Index of an item, which is added if it is missing.
fn index<T: Copy + PartialEq>(items: &mut Vec<T>, item: T) -> usize {
    let found = items.iter().position(|one| *one == item);
    if found.is_none() {
        items.push(item);
    }
    found.unwrap_or(items.len() - 1)
}

/// Appends names and values, the values below each other and wrapped.
fn list<'a>(pairs: impl Iterator<Item = (&'a str, String)>, out: &mut String) {
    let pairs: Vec<(&str, String)> = pairs.collect();
    let longest = pairs.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let names = longest.min(NAME_WIDTH_MAX);
    for (name, value) in &pairs {
        columns(
            &[(wrap(name, names), names, false), (wrap(value, WIDTH - names - 4), 0, false)],
            out,
        );
    }
}

/// Appends a table in at most 80 columns: headings are wrapped, and columns without space follow below.
fn narrow(table: &Table, out: &mut String) {
    let width = |column: usize| {
        let cells = table.rows.iter().map(|row| row[column].chars().count());
        let words = table.head[column].split(' ').map(|word| word.chars().count());
        let widest = cells.chain(words).max().unwrap_or(0);
        widest.min(if column == 0 { NAME_WIDTH_MAX } else { WIDTH - NAME_WIDTH_MAX - 4 })
    };
    let widths: Vec<usize> = (0..table.head.len()).map(width).collect();
    let mut from = 1;
    while from < widths.len() {
        let mut left = WIDTH - 2 - widths[0];
        let fits = |width: &&usize| {
            let has_space = left >= **width + 2;
            left = left.saturating_sub(**width + 2);
            has_space
        };
        let to = from + widths[from..].iter().take_while(fits).count().max(1);
        for row in std::iter::once(&table.head).chain(&table.rows) {
            let cells: Vec<(Vec<String>, usize, bool)> = std::iter::once(0)
                .chain(from..to)
                .map(|column| (wrap(&row[column], widths[column]), widths[column], column > 0))
                .collect();
            columns(&cells, out);
        }
        from = to;
        out.push_str(if from < widths.len() { "\n" } else { "" });
    }
}

/// Appends wrapped cells side by side, each with its width, and true for alignment to the right.
fn columns(cells: &[(Vec<String>, usize, bool)], out: &mut String) {
    for line in 0..cells.iter().map(|(lines, ..)| lines.len()).max().unwrap_or(0) {
        let mut text = String::new();
        for (lines, width, is_right) in cells {
            let cell = lines.get(line).map_or("", String::as_str);
            // Writing to a string cannot fail.
            let _ = if *is_right {
                write!(text, "  {cell:>width$}")
            } else {
                write!(text, "  {cell:<width$}")
            };
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
}

/// Lines of at most `width` characters, broken at spaces where possible.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        let last = lines.last().map_or(0, |line| line.chars().count());
        if last > 0 && last + 1 + word.len() > width {
            lines.push(String::new());
        }
        while !word.is_empty() {
            let rest = word.split_off(word.len().min(width.max(1)));
            if let Some(line) = lines.last_mut() {
                line.push_str(if line.is_empty() { "" } else { " " });
                line.extend(word);
            }
            if !rest.is_empty() {
                lines.push(String::new());
            }
            word = rest;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::*;

    #[test]
    fn forms() {
        let record = example();
        insta::assert_snapshot!(format!(
            "{}\n{}\n{}",
            record.text(),
            record.csv(),
            record.page().markdown()
        ));
        assert!(record.page().html().contains("Three kills; nothing lost."));
    }

    #[test]
    fn wide_tables_stay_within_the_terminal() {
        let mut record = Record { headline: "x".repeat(200), ..Record::default() };
        let names: Vec<String> = (0..9).map(|name| format!("metric {name} of many")).collect();
        for case in 0..20 {
            let figures: Vec<_> =
                names.iter().map(|name| (name.as_str(), Unit::Count, Some(1e9))).collect();
            record.add(("target", &format!("case {case}"), None), &figures);
        }
        record.check("state", Outcome::Failed("a long reason ".repeat(20)));
        let text = record.text();
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(names.iter().all(|name| record.page().markdown().contains(name)));
        assert_eq!(text.matches("1,000,000,000").count(), 9 * 20);
    }
}
