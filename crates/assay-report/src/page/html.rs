//! `report.html`: one self-contained page.

use std::fmt::{self, Write};

use super::{Figure, Front, Page, Section};
use crate::chart::{BAR_OPACITY, Chart, STYLE, css, is_dashed};
use crate::table::escape;

pub(super) fn page(page: &Page) -> String {
    let title = escape(&page.title);
    let mut out = String::with_capacity(256 * 1024);
    out.push_str("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    out.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    out.push_str("<meta name=\"color-scheme\" content=\"light dark\">\n");
    put(
        &mut out,
        format_args!("<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"),
    );
    put(&mut out, format_args!("<header>\n<h1>{title}</h1>\n"));
    if let Some(front) = &page.front {
        front_html(front, &mut out);
        put(
            &mut out,
            format_args!(
                "<details><summary>What was run</summary><p>{}</p></details>\n",
                escape(page.summary.trim())
            ),
        );
    } else {
        put(&mut out, format_args!("<p>{}</p>\n", escape(page.summary.trim())));
    }
    put(&mut out, format_args!("<p class=\"quiet\">{}</p>\n", escape(&page.created)));
    out.push_str("<nav>");
    for section in &page.sections {
        put(
            &mut out,
            format_args!("<a href=\"#{}\">{}</a>", escape(&section.id), escape(&section.title)),
        );
    }
    out.push_str("</nav>\n</header>\n<main>\n");
    for section in &page.sections {
        section_html(section, &mut out);
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

/// Writing to a string cannot fail.
fn put(out: &mut String, text: fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}

fn front_html(front: &Front, out: &mut String) {
    put(out, format_args!("<p class=\"answer\">{}</p>\n", inline(&front.answer)));
    if !front.figures.is_empty() {
        out.push_str("<dl class=\"figures\">\n");
        for Figure { value, unit, of } in &front.figures {
            let (value, unit, of) = (escape(value), escape(unit), escape(of));
            put(
                out,
                format_args!(
                    "<div><dt>{of}</dt><dd><span class=\"value\">{value}</span> {unit}</dd></div>\n"
                ),
            );
        }
        out.push_str("</dl>\n");
    }
    front.chart.iter().for_each(|chart| chart_html(chart, out));
    if !front.caveats.is_empty() {
        out.push_str("<p class=\"caveats\">Caveats</p>\n<ul>\n");
        for caveat in &front.caveats {
            put(out, format_args!("<li>{}</li>\n", inline(caveat)));
        }
        out.push_str("</ul>\n");
    }
}

fn section_html(section: &Section, out: &mut String) {
    put(out, format_args!("<section id=\"{}\">\n", escape(&section.id)));
    put(out, format_args!("<h2>{}</h2>\n", escape(&section.title)));
    prose(&section.prose, out);
    if !section.charts.is_empty() {
        out.push_str("<div class=\"charts\">\n");
        section.charts.iter().for_each(|chart| chart_html(chart, out));
        out.push_str("</div>\n");
    }
    section.tables.iter().for_each(|table| table.html(out));
    out.push_str("</section>\n");
}

/// Paragraphs and lists. Text between backquotes is code.
fn prose(paragraphs: &[String], out: &mut String) {
    let mut in_list = false;
    for paragraph in paragraphs {
        let point = paragraph.strip_prefix("- ");
        if point.is_some() != in_list {
            out.push_str(if in_list { "</ul>\n" } else { "<ul>\n" });
            in_list = !in_list;
        }
        let (tag, text) = point.map_or(("p", paragraph.as_str()), |point| ("li", point));
        put(out, format_args!("<{tag}>{}</{tag}>\n", inline(text)));
    }
    if in_list {
        out.push_str("</ul>\n");
    }
}

fn inline(text: &str) -> String {
    let mut out = String::new();
    for (index, part) in text.split('`').enumerate() {
        let part = escape(part);
        if index % 2 == 1 {
            put(&mut out, format_args!("<code>{part}</code>"));
        } else {
            out.push_str(&part);
        }
    }
    out
}

fn chart_html(chart: &Chart, out: &mut String) {
    put(out, format_args!("<figure>\n<figcaption>{}</figcaption>\n", escape(&chart.title)));
    out.push_str("<div class=\"legend\">");
    for (label, colour) in &chart.legend {
        let swatch = swatch(*colour, chart.has_bars);
        put(out, format_args!("<span>{swatch}{}</span>", escape(label)));
    }
    out.push_str("</div>\n");
    out.push_str(&chart.svg);
    out.push_str("</figure>\n");
}

fn swatch(colour: usize, is_bar: bool) -> String {
    let (class, opacity) = match (is_bar, is_dashed(colour)) {
        (true, _) => ("swatch bar", BAR_OPACITY),
        (false, true) => ("swatch dashed", 1.0),
        (false, false) => ("swatch", 1.0),
    };
    format!("<i class=\"{class}\" style=\"--c:{};opacity:{opacity}\"></i>", css(colour))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::SERIES_COLOURS;

    #[test]
    fn style_defines_the_colours() {
        for number in 0..SERIES_COLOURS {
            assert_eq!(STYLE.matches(&format!("--series-{number}:")).count(), 2, "{number}");
        }
    }

    #[test]
    fn lists_open_and_close() {
        let mut out = String::new();
        let said = ["a", "- b", "- `c`", "d", "- e"].map(str::to_owned);
        prose(&said, &mut out);
        assert_eq!(
            out.replace('\n', ""),
            "<p>a</p><ul><li>b</li><li><code>c</code></li></ul><p>d</p><ul><li>e</li></ul>"
        );
    }
}
