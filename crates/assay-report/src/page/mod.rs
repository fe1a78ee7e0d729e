//! Reports as pages, with an HTML and a Markdown form.

mod html;
mod markdown;

use std::path::Path;

use crate::atomic_file::{self, WriteError};
use crate::chart::Chart;
use crate::table::Table;

#[derive(Debug, Clone, Default)]
pub struct Page {
    pub title: String,
    /// The paragraph below the title.
    pub summary: String,
    /// Creation time; only shown in the HTML form.
    pub created: String,
    /// Summary, if the page answers a question.
    pub front: Option<Front>,
    pub sections: Vec<Section>,
}

impl Page {
    pub fn html(&self) -> String {
        html::page(self)
    }

    /// Markdown without charts.
    pub fn markdown(&self) -> String {
        markdown::page(self, None)
    }

    /// Markdown with links to the images of [`Page::pictures`] in `folder`.
    pub fn illustrated_markdown(&self, folder: &str) -> String {
        markdown::page(self, Some(folder))
    }

    /// Writes `report.md` and `report.html` into `dir`.
    ///
    /// # Errors
    /// When a file cannot be written; the error names it.
    pub fn write(&self, dir: &Path) -> Result<(), WriteError> {
        atomic_file::write(&dir.join("report.md"), self.markdown().as_bytes())?;
        atomic_file::write(&dir.join("report.html"), self.html().as_bytes())
    }

    /// File name and contents of each chart as SVG.
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

const FRONT: &str = "front";

/// File name of one chart of a section.
fn picture_name(id: &str, index: usize) -> String {
    format!("{id}-{}.svg", index + 1)
}

/// Summary: the answer with its evidence.
#[derive(Debug, Clone, Default)]
pub struct Front {
    /// Answer to the page's question, a sentence.
    pub answer: String,
    /// At most six.
    pub figures: Vec<Figure>,
    pub chart: Option<Chart>,
    /// Caveats, a sentence each.
    pub caveats: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    pub value: String,
    pub unit: String,
    pub of: String,
}

#[derive(Debug, Clone, Default)]
pub struct Section {
    /// Link identifier: small letters, digits, `-`.
    pub id: String,
    pub title: String,
    /// Paragraphs; a leading `- ` makes a list item; text between backquotes is code.
    pub prose: Vec<String>,
    pub tables: Vec<Table>,
    /// Charts above the tables.
    pub charts: Vec<Chart>,
}

impl Section {
    pub fn new(id: &str, title: &str, prose: Vec<String>, tables: Vec<Table>) -> Self {
        Self { id: id.to_owned(), title: title.to_owned(), prose, tables, ..Self::default() }
    }
}
