//! Forms of a record: terminal text, Markdown, HTML and CSV.

use std::fmt::Write as _;

use super::{Outcome, Record, Summary, Unit};
use crate::csv_field as field;
use crate::machine;
use crate::stats::median;
use crate::{Figure, Front, Page, Section, Table};

/// Columns of a terminal.
const WIDTH: usize = 80;
/// Widest name in a list of names and values.
const NAME_WIDTH_MAX: usize = 38;
/// Form of several values.
const SUMMARY: &str = "Several values: median (min to max, p95 of 20 values or more; number).";
const FRONT_FIGURES_MAX: usize = 6;

/// Cases with common metrics of one group.
#[derive(Default)]
pub(super) struct Block<'a> {
    pub(super) group: &'a str,
    pub(super) cases: Vec<(&'a str, &'a str)>,
    pub(super) metrics: Vec<&'a str>,
    pub(super) figures: Vec<Values>,
}

pub(super) struct Values {
    /// Indices of the case and the metric.
    pub(super) case: usize,
    pub(super) metric: usize,
    pub(super) unit: Unit,
    pub(super) rounds: Vec<f64>,
    /// Ends of the interval: the cells `METRIC, low` and `METRIC, high`.
    ends: [Option<f64>; 2],
}

impl Record {
    /// Text of at most 80 columns for a terminal: headline and verdict first.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for sentence in [&self.headline, &self.verdict()].into_iter().filter(|one| !one.is_empty())
        {
            out.push_str(&wrap(sentence, WIDTH).join("\n"));
            out.push('\n');
        }
        if !self.checks.is_empty() {
            out.push('\n');
            list(self.checks.iter().map(|check| (&*check.name, check.outcome.text())), &mut out);
        }
        for block in self.blocks().iter().filter(|block| block.group.is_empty()) {
            out.push('\n');
            narrow(&block.any_table(self.has_one_target()), &mut out);
        }
        if self.cells.iter().any(|cell| cell.round.is_some()) {
            out.push_str("  ");
            out.push_str(SUMMARY);
            out.push('\n');
        }
        out.push('\n');
        let is_short = |(name, _): &&(String, String)| group_of(name).0.is_empty();
        let setup = self.setup.iter().filter(is_short).chain(&self.environment);
        let notes = self.notes.iter().map(|note| ("note", note.clone()));
        let machine = if self.machine.cores > 0 { self.machine.in_short() } else { String::new() };
        let end = [
            ("machine", machine),
            ("assay", self.software.version()),
            ("repeat", self.command.clone()),
        ];
        let end = end.into_iter().filter(|(_, value)| !value.is_empty());
        list(setup.map(|(name, value)| (&**name, value.clone())).chain(notes).chain(end), &mut out);
        out
    }

    /// The same as a page, for HTML and Markdown.
    pub fn page(&self) -> Page {
        let mut checks = Table::new("", &["Check", "Outcome"], 2);
        for check in &self.checks {
            checks.push([check.name.clone(), check.outcome.text()]);
        }
        let mut setup = Table::new("", &["Parameter", "Value"], 2);
        for (name, value) in self.setup.iter().chain(&self.environment) {
            setup.push([name.replace(" | ", ": "), value.clone()]);
        }
        let software = &self.software;
        let build = [software.version(), software.profile.clone(), software.rustc.clone()];
        let build: Vec<String> = build.into_iter().filter(|part| !part.is_empty()).collect();
        let version = build.join(", ");
        let again = [("Assay ", &version, "."), ("Again: `", &self.command, "`")];
        let again = again.into_iter().filter(|(_, text, _)| !text.is_empty());
        let again = again.map(|(before, text, after)| format!("{before}{text}{after}"));
        let machine = vec![machine::table(&self.machine)];
        let blocks = self.blocks();
        let main = blocks.iter().filter(|block| block.group.is_empty());
        let mut figures = Section::new("figures", "Figures", vec![SUMMARY.to_owned()], Vec::new());
        let mut curves = Section::new("curves", "Curves", Vec::new(), Vec::new());
        curves.charts = self.curves();
        for block in main {
            figures.charts.extend(block.charts());
            figures.tables.push(block.table_of_section(self.has_one_target()));
        }
        let charts = [&mut figures.charts, &mut curves.charts];
        let chart = charts.into_iter().find(|charts| !charts.is_empty());
        let front = Front {
            answer: self.answer(),
            figures: blocks.first().map(Block::front).unwrap_or_default(),
            chart: chart.map(|charts| charts.remove(0)),
            caveats: self.notes.clone(),
        };
        let mut sections = vec![Section::new("checks", "Checks", Vec::new(), vec![checks])];
        sections.extend([figures, curves].into_iter().chain(self.grouped(&blocks)));
        sections.push(Section::new("setup", "Setup", Vec::new(), vec![setup]));
        if self.machine.cores > 0 {
            sections.push(Section::new("machine", "Machine", again.collect(), machine));
        }
        sections.retain(|one| {
            !one.charts.is_empty() || one.tables.iter().any(|table| !table.rows.is_empty())
        });
        let or = |text: &String, other: String| if text.is_empty() { other } else { text.clone() };
        let code = if self.command.is_empty() { "" } else { "`" };
        Page {
            title: or(&self.title, format!("assay {}", self.kind)),
            summary: or(&self.summary, format!("{code}{}{code}", self.command)),
            created: self.created.clone(),
            front: Some(front),
            sections,
        }
    }

    fn grouped(&self, blocks: &[Block<'_>]) -> Vec<Section> {
        let mut sections: Vec<Section> = Vec::new();
        for block in blocks.iter().filter(|block| !block.group.is_empty()) {
            let id = block.group.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
            let known = sections.iter().position(|section| section.id == id);
            if known.is_none() {
                sections.push(Section::new(&id, block.group, Vec::new(), Vec::new()));
            }
            let section = known.unwrap_or(sections.len() - 1);
            sections[section].charts.extend(block.charts());
            sections[section].tables.push(block.table_of_section(self.has_one_target()));
        }
        sections
    }

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

    /// The headline as a sentence, and the outcome of the checks.
    fn answer(&self) -> String {
        let verdict = self.verdict();
        let ends = self.headline.is_empty() || self.headline.ends_with(['.', '!', '?', ':']);
        let stop = if ends || verdict.is_empty() { "" } else { "." };
        format!("{}{stop} {verdict}", self.headline).trim().to_owned()
    }

    fn verdict(&self) -> String {
        let of = self.checks.len();
        match self.outcome() {
            _ if of == 0 => String::new(),
            Outcome::Passed(_) => format!("PASSED: {of} of {of} checks."),
            Outcome::Failed(text) => format!("FAILED: {text}"),
            Outcome::NotRun(reason) => format!("NOT CHECKED: {reason}"),
        }
    }

    /// Cells in groups, and in them by common cases or metrics.
    pub(super) fn blocks(&self) -> Vec<Block<'_>> {
        let mut blocks: Vec<Block<'_>> = Vec::new();
        for cell in &self.cells {
            let case = (cell.target.as_str(), cell.case.as_str());
            let (group, metric) = group_of(&cell.metric);
            let find = |is_it: &dyn Fn(&Block<'_>) -> bool| {
                blocks.iter().position(|block| block.group == group && is_it(block))
            };
            // Cells of a case are mostly neighbours.
            let of_case = find(&|block| block.cases.iter().rev().any(|known| *known == case));
            let found = of_case.or_else(|| find(&|block| block.metrics.contains(&metric)));
            let index = found.unwrap_or(blocks.len());
            if index == blocks.len() {
                blocks.push(Block { group, ..Block::default() });
            }
            blocks[index].put(case, metric, (cell.unit, cell.value));
        }
        blocks.sort_by_key(|block| !block.group.is_empty());
        blocks
    }

    fn has_one_target(&self) -> bool {
        let first = self.cells.first().map(|cell| &cell.target);
        self.cells.iter().all(|cell| Some(&cell.target) == first)
    }
}

impl<'a> Block<'a> {
    fn put(&mut self, case: (&'a str, &'a str), metric: &'a str, (unit, value): (Unit, f64)) {
        let case = index(&mut self.cases, case);
        for (number, end) in [", low", ", high"].into_iter().enumerate() {
            let of = metric.strip_suffix(end);
            let of = of.and_then(|of| self.metrics.iter().position(|metric| *metric == of));
            let is_it = |figure: &&mut Values| (figure.case, Some(figure.metric)) == (case, of);
            if let Some(figure) = self.figures.iter_mut().rfind(is_it) {
                figure.ends[number] = Some(value);
                return;
            }
        }
        let metric = index(&mut self.metrics, metric);
        let is_it = |figure: &&mut Values| (figure.case, figure.metric) == (case, metric);
        if let Some(figure) = self.figures.iter_mut().rfind(is_it) {
            figure.rounds.push(value);
        } else {
            let (rounds, ends) = (vec![value], [None; 2]);
            self.figures.push(Values { case, metric, unit, rounds, ends });
        }
    }

    /// The first metric of every case, if it is no count.
    fn front(&self) -> Vec<Figure> {
        let is_shown = |figure: &&Values| figure.metric == 0 && figure.unit != Unit::Count;
        let figure = |figure: &Values| {
            let text = figure.unit.format(median(&figure.rounds));
            let (value, unit) = text.split_once(' ').unwrap_or((&text, ""));
            Figure {
                value: value.to_owned(),
                unit: unit.to_owned(),
                of: format!("{}, {}", label(self.cases[figure.case]), self.metrics[0]),
            }
        };
        self.figures.iter().filter(is_shown).take(FRONT_FIGURES_MAX).map(figure).collect()
    }

    /// Cases against metrics, in the orientation with fewer lines on a terminal.
    fn any_table(&self, has_one_target: bool) -> Table {
        let lines = |table: &Table| {
            let mut text = String::new();
            narrow(table, &mut text);
            text.lines().count()
        };
        let [one, other] = [false, true].map(|is_by_case| self.table(is_by_case, has_one_target));
        if self.cases.len() > 1 && lines(&other) < lines(&one) { other } else { one }
    }

    /// The same below the heading of its section.
    fn table_of_section(&self, has_one_target: bool) -> Table {
        Table { caption: String::new(), ..self.any_table(has_one_target) }
    }

    fn table(&self, is_by_case: bool, has_one_target: bool) -> Table {
        let name = |&(target, case): &(&str, &str)| {
            label((if has_one_target && !case.is_empty() { "" } else { target }, case))
        };
        let cases: Vec<String> = self.cases.iter().map(name).collect();
        let metrics: Vec<String> = self.metrics.iter().map(|&metric| metric.to_owned()).collect();
        let (rows, columns) = if is_by_case { (cases, metrics) } else { (metrics, cases) };
        let caption = if self.group.is_empty() { "Figures" } else { self.group };
        let mut table = Table::new(caption, &[""], 1);
        let width = columns.len();
        table.head.extend(columns);
        table.rows = rows.into_iter().map(|name| vec![name]).collect();
        table.rows.iter_mut().for_each(|row| row.resize(width + 1, String::new()));
        for Values { case, metric, unit, rounds: values, ends } in &self.figures {
            let (row, column) = if is_by_case { (*case, *metric) } else { (*metric, *case) };
            let text = Summary::of(values).map(|summary| summary.text(*unit, *ends));
            table.rows[row][column + 1] = text.unwrap_or_default();
        }
        table
    }
}

/// Name of a target and its case.
pub(super) fn label((target, case): (&str, &str)) -> String {
    let parts: Vec<&str> = [target, case].into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(": ")
}

/// Group and name of a metric or parameter.
fn group_of(name: &str) -> (&str, &str) {
    name.split_once(" | ").unwrap_or(("", name))
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
    let found = items.iter().rposition(|one| *one == item);
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
