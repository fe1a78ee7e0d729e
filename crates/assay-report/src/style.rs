//! The style of pages and of charts that stand alone.

/// Rules for light and dark pages; variables of colours come first.
pub(crate) const STYLE: &str = include_str!("page.css");
