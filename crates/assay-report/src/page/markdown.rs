//! `report.md`.

use std::fmt::Write as _;

use super::{FRONT, Front, Page, picture_name};
use crate::chart::Chart;
use crate::table::Table;

/// The whole page, with charts as links to images in a folder, or without.
pub(super) fn page(page: &Page, pictures: Option<&str>) -> String {
    let mut out = format!("# {}\n\n", page.title);
    if let Some(front) = &page.front {
        front_markdown(front, pictures, &mut out);
    }
    out.push_str(page.summary.trim());
    out.push_str("\n\n");
    for section in &page.sections {
        out.push_str("## ");
        out.push_str(&section.title);
        out.push_str("\n\n");
        for (index, paragraph) in section.prose.iter().enumerate() {
            out.push_str(paragraph);
            out.push('\n');
            let next_is_point =
                section.prose.get(index + 1).is_some_and(|next| next.starts_with("- "));
            if !(paragraph.starts_with("- ") && next_is_point) {
                out.push('\n');
            }
        }
        for (index, chart) in section.charts.iter().enumerate() {
            picture(chart, &section.id, index, pictures, &mut out);
        }
        section.tables.iter().for_each(|table| table.markdown(&mut out));
    }
    out
}

fn picture(chart: &Chart, id: &str, index: usize, folder: Option<&str>, out: &mut String) {
    if let Some(folder) = folder {
        let title = chart.title().replace(['[', ']'], "");
        // Writing to a string cannot fail.
        let _ = write!(out, "![{title}]({folder}/{})\n\n", picture_name(id, index));
    }
}

fn front_markdown(front: &Front, pictures: Option<&str>, out: &mut String) {
    out.push_str("**");
    out.push_str(&front.answer);
    out.push_str("**\n\n");
    if !front.figures.is_empty() {
        let mut table = Table::new("Figures", &["Figure", "Value", "Unit"], 1);
        for figure in &front.figures {
            table.push([figure.of.clone(), figure.value.clone(), figure.unit.clone()]);
        }
        table.markdown(out);
    }
    front.chart.iter().for_each(|chart| picture(chart, FRONT, 0, pictures, out));
    if !front.caveats.is_empty() {
        out.push_str("Caveats:\n\n");
        for caveat in &front.caveats {
            out.push_str("- ");
            out.push_str(caveat);
            out.push('\n');
        }
        out.push('\n');
    }
}
