//! Reports as pages: what they consist of, and their two forms.

mod html;
mod markdown;

use crate::chart::Chart;
use crate::table::Table;

/// A report, whatever its form.
#[derive(Debug, Clone, Default)]
pub struct Page {
    pub title: String,
    /// The paragraph under it.
    pub summary: String,
    /// When it was made; shown in the HTML form only.
    pub created: String,
    /// The first screen, where the page answers a question.
    pub front: Option<Front>,
    /// Its parts.
    pub sections: Vec<Section>,
}

impl Page {
    /// One page that needs nothing but itself.
    pub fn html(&self) -> String {
        html::page(self)
    }

    /// The same without charts.
    pub fn markdown(&self) -> String {
        markdown::page(self, None)
    }

    /// Markdown with links to the pictures of [`Page::pictures`] in `folder`.
    pub fn illustrated_markdown(&self, folder: &str) -> String {
        markdown::page(self, Some(folder))
    }

    /// Each chart as an SVG file: its name, and its bytes.
    pub fn pictures(&self) -> Vec<(String, String)> {
        let front =
            self.front.iter().flat_map(|front| front.chart.iter().map(|chart| (FRONT, 0, chart)));
        let sections = self.sections.iter().flat_map(|section| {
            section
                .charts
                .iter()
                .enumerate()
                .map(|(index, chart)| (section.id.as_str(), index, chart))
        });
        let picture = |(id, index, chart): (&str, usize, &Chart)| {
            (picture_name(id, index), chart.standalone())
        };
        front.chain(sections).map(picture).collect()
    }
}

/// Stands for the first screen in the names of pictures.
const FRONT: &str = "front";

/// The file of one chart of a section.
fn picture_name(id: &str, index: usize) -> String {
    format!("{id}-{}.svg", index + 1)
}

/// The first screen: the answer, and what it rests on.
#[derive(Debug, Clone, Default)]
pub struct Front {
    /// The answer to the question of the page, a sentence.
    pub answer: String,
    /// At most six.
    pub figures: Vec<Figure>,
    /// The chart that shows it.
    pub chart: Option<Chart>,
    /// What limits the answer, a sentence each.
    pub caveats: Vec<String>,
}

/// A number on the first screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// The number.
    pub value: String,
    pub unit: String,
    /// What it is of.
    pub of: String,
}

impl Front {
    /// For a terminal.
    pub fn text(&self, out: &mut String) {
        out.push_str(&self.answer);
        out.push('\n');
        let width =
            |part: fn(&Figure) -> usize| self.figures.iter().map(part).max().unwrap_or_default();
        let (value, unit) = (
            width(|figure| figure.value.chars().count()),
            width(|figure| figure.unit.chars().count()),
        );
        for figure in &self.figures {
            let line = format!("  {:>value$} {:<unit$}  {}", figure.value, figure.unit, figure.of);
            out.push_str(line.trim_end());
            out.push('\n');
        }
        for caveat in &self.caveats {
            out.push_str("caveat: ");
            out.push_str(caveat);
            out.push('\n');
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct Section {
    /// Identifier in links: small letters, digits, `-`.
    pub id: String,
    pub title: String,
    /// Paragraphs; one that starts with `- ` is a point of a list; text between backquotes is code.
    pub prose: Vec<String>,
    /// Tables under them.
    pub tables: Vec<Table>,
    /// Charts above the tables.
    pub charts: Vec<Chart>,
    /// Whether the HTML form shows only its heading until it is opened.
    pub is_folded: bool,
}

impl Section {
    pub fn new(id: &str, title: &str, prose: Vec<String>, tables: Vec<Table>) -> Self {
        Self { id: id.to_owned(), title: title.to_owned(), prose, tables, ..Self::default() }
    }
}
