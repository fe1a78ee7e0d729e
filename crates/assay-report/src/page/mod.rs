//! Reports as pages: what they consist of, and their two forms.

mod html;
mod markdown;

use crate::chart::Chart;
use crate::table::Table;

/// A report, whatever its form.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// Its heading.
    pub title: String,
    /// The paragraph under it.
    pub summary: String,
    /// When it was made; only the HTML form tells.
    pub created: String,
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
        markdown::page(self)
    }
}

/// A part of a report.
#[derive(Debug, Clone, Default)]
pub struct Section {
    /// Identifier in links: small letters, digits, `-`.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// Paragraphs; one that starts with `- ` is a point of a list; text between backquotes is code.
    pub prose: Vec<String>,
    /// Tables under them.
    pub tables: Vec<Table>,
    /// Charts under those.
    pub charts: Vec<Chart>,
}
