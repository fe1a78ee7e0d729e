//! A table with three forms: HTML, Markdown, plain text; escaping of text for HTML and CSV.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

/// Length in bytes from which a word may wrap on a page.
const LONG_CELL: usize = 28;
/// Maximum length of a unit after the comma of a heading.
const LONG_UNIT: usize = 5;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Empty if the heading of the section is enough.
    pub caption: String,
    pub head: Vec<String>,
    /// Cells; every row has as many as there are headings.
    pub rows: Vec<Vec<String>>,
    /// Number of leading left-aligned text columns; the others hold numbers and are right-aligned.
    pub word_columns: usize,
}

impl Table {
    pub fn new(caption: &str, head: &[&str], word_columns: usize) -> Self {
        let head = head.iter().map(|cell| (*cell).to_owned()).collect();
        Self { caption: caption.to_owned(), head, rows: Vec::new(), word_columns }
    }

    pub fn of(
        caption: &str,
        head: &[&str],
        word_columns: usize,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Self {
        Self { rows: rows.into_iter().collect(), ..Self::new(caption, head, word_columns) }
    }

    pub fn push<const N: usize>(&mut self, row: [String; N]) {
        self.rows.push(row.into());
    }

    pub fn html(&self, out: &mut String) {
        out.push_str("<div class=\"scroll\" tabindex=\"0\"><table>\n");
        if !self.caption.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "<caption><span>{}</span></caption>", escape(&self.caption));
        }
        out.push_str("<thead><tr>");
        self.html_cells(&self.head, "th scope=\"col\"", "th", out);
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            self.html_cells(row, "td", "td", out);
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
    }

    fn html_cells(&self, cells: &[String], open: &str, close: &str, out: &mut String) {
        for (column, cell) in cells.iter().enumerate() {
            let class = match column < self.word_columns {
                true if cell.len() > LONG_CELL => " class=\"word long\"",
                true => " class=\"word\"",
                false => "",
            };
            let mut text = escape(cell);
            // A unit stays on the line of the text before it.
            if close == "th"
                && let Some((what, unit)) = text.rsplit_once(", ")
                && unit.len() <= LONG_UNIT
            {
                text = format!("{what},&nbsp;{unit}");
            }
            // Writing to a string cannot fail.
            let _ = write!(out, "<{open}{class}>{text}</{close}>");
        }
    }

    pub fn markdown(&self, out: &mut String) {
        let row = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        // Writing to a string cannot fail.
        if !self.caption.is_empty() {
            let _ = write!(out, "**{}**\n\n", self.caption);
        }
        let _ = write!(out, "{}|", row(&self.head));
        for column in 0..self.head.len() {
            out.push_str(if column < self.word_columns { " --- |" } else { " ---: |" });
        }
        out.push('\n');
        self.rows.iter().for_each(|cells| out.push_str(&row(cells)));
        out.push('\n');
    }

    /// Appends the table as aligned plain text.
    pub fn text(&self, out: &mut String) {
        let all = || std::iter::once(&self.head).chain(&self.rows);
        let width = |column: usize| {
            all().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
        };
        let widths: Vec<usize> =
            (0..self.head.len()).map(|column| width(column).unwrap_or(0)).collect();
        out.push_str(&self.caption);
        out.push('\n');
        for row in all() {
            let mut line = String::from(" ");
            for (column, cell) in row.iter().enumerate() {
                let pad = " ".repeat(widths[column].saturating_sub(cell.chars().count()));
                let (before, after) =
                    if column < self.word_columns { ("", pad.as_str()) } else { (&*pad, "") };
                // Writing to a string cannot fail.
                let _ = write!(line, " {before}{cell}{after} ");
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
}

/// Escapes text for HTML elements and quoted attributes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

/// A field of comma-separated values, quoted if RFC 4180 requires it.
pub fn csv_field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_forms() {
        let mut table = Table::new("Rates", &["Phase", "tx/s"], 1);
        table.push(["Fan-out <1>".to_owned(), "5".to_owned()]);
        table.push(["a|b".to_owned(), "1,234".to_owned()]);
        let (mut html, mut markdown, mut text) = (String::new(), String::new(), String::new());
        table.html(&mut html);
        table.markdown(&mut markdown);
        table.text(&mut text);
        insta::assert_snapshot!(format!("{html}\n{markdown}\n{text}"), @r#"
        <div class="scroll" tabindex="0"><table>
        <caption><span>Rates</span></caption>
        <thead><tr><th scope="col" class="word">Phase</th><th scope="col">tx/s</th></tr></thead>
        <tbody>
        <tr><td class="word">Fan-out &lt;1&gt;</td><td>5</td></tr>
        <tr><td class="word">a|b</td><td>1,234</td></tr>
        </tbody></table></div>

        **Rates**

        | Phase | tx/s |
        | --- | ---: |
        | Fan-out <1> | 5 |
        | a\|b | 1,234 |


        Rates
          Phase         tx/s
          Fan-out <1>      5
          a|b          1,234
        "#);
    }

    #[test]
    fn quoting() {
        assert_eq!(csv_field("plain"), "plain");
        assert_eq!(csv_field("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
