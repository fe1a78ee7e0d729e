//! `report.md`.

use super::Page;

/// The whole page. Charts are in the HTML report only.
pub(super) fn page(page: &Page) -> String {
    let mut out = format!("# {}\n\n{}\n\n", page.title, page.summary.trim());
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
        section.tables.iter().for_each(|table| table.markdown(&mut out));
    }
    out
}
