//! Style of pages and standalone charts.

/// Rules for light and dark pages; colour variables come first.
pub(crate) const STYLE: &str = include_str!("page.css");
