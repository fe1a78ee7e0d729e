//! `assay logs`.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, bail};
use assay_lab::logs::{self, Charted, FileSummary, Row, Throughput};
use assay_report::atomic_file;
use serde_json::json;

use crate::Outcome;
use crate::cli::LogsArguments;
use crate::output;

/// Format of standard output while logs are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Tables after the last file.
    Tables,
    Csv,
    Json,
}

pub(crate) fn run(arguments: &LogsArguments) -> anyhow::Result<Outcome> {
    let picture = match arguments.plot.as_deref() {
        Some(path) => Some((path, kind(path)?)),
        None => None,
    };
    let form = match (arguments.csv, arguments.json) {
        (true, _) => Form::Csv,
        (false, true) => Form::Json,
        (false, false) => Form::Tables,
    };
    let mut writer = Rows { out: BufWriter::new(io::stdout().lock()), form, is_first: true };
    let (mut throughput, mut files) = (Throughput::default(), Vec::new());
    for path in &arguments.files {
        let name = path.display().to_string();
        let mut charted = Charted::default();
        let summary = logs::read(path, &mut throughput, &mut |row| {
            charted.take(&row);
            writer.row(&name, &row)
        })?;
        complain(&summary);
        files.push((summary, charted));
    }
    if files.iter().all(|(summary, _)| !summary.recognised) {
        bail!("no block progress to read; recognised are the logs of {}", logs::RECOGNISED);
    }
    writer.end(&files, &throughput)?;
    if let Some((path, picture)) = picture {
        draw(path, picture, &files, &throughput)?;
    }
    let rows: u64 = files.iter().map(|(summary, _)| summary.rows).sum();
    Ok(if rows > 0 { Outcome::Good } else { Outcome::Negative })
}

/// Standard output row by row, since logs may exceed memory. The CSV header is written with the
/// first row, so files without a recognised line produce no output.
struct Rows<W: Write> {
    out: W,
    form: Form,
    is_first: bool,
}

impl<W: Write> Rows<W> {
    fn begin(&mut self) -> anyhow::Result<()> {
        match self.form {
            Form::Tables => Ok(()),
            Form::Csv => {
                let steps = logs::STEPS.map(|(_, _, column)| column).join(",");
                self.put(&format!("{},{steps}\n", logs::CSV_HEAD))
            }
            Form::Json => self.put(&format!("{{\n\"schema\": {},\n\"rows\": [", logs::SCHEMA)),
        }
    }

    fn row(&mut self, file: &str, row: &Row) -> anyhow::Result<()> {
        match self.form {
            Form::Tables => Ok(()),
            Form::Csv => {
                if std::mem::take(&mut self.is_first) {
                    self.begin()?;
                }
                let mut line = String::with_capacity(256);
                logs::csv_row(file, row, &mut line);
                self.put(&line)
            }
            Form::Json => {
                let comma = if std::mem::take(&mut self.is_first) {
                    self.begin()?;
                    ""
                } else {
                    ","
                };
                self.put(&format!("{comma}\n{}", logs::json_row(file, row)))
            }
        }
    }

    fn end(
        &mut self,
        files: &[(FileSummary, Charted)],
        throughput: &Throughput,
    ) -> anyhow::Result<()> {
        if std::mem::take(&mut self.is_first) {
            self.begin()?;
        }
        match self.form {
            Form::Tables => self.put(&logs::record(files, throughput).text())?,
            Form::Csv => {}
            Form::Json => {
                let files: Vec<_> = files.iter().map(|(summary, _)| summary).collect();
                let read = json!({
                    "bytes": throughput.bytes,
                    "seconds": throughput.seconds,
                    "bytes_per_s": throughput.bytes_per_s(),
                });
                self.put(&format!("\n],\n\"files\": {},\n\"read\": {read}\n}}\n", json!(files)))?;
            }
        }
        self.out.flush().context("cannot write to standard output")
    }

    fn put(&mut self, text: &str) -> anyhow::Result<()> {
        self.out.write_all(text.as_bytes()).context("cannot write to standard output")
    }
}

/// Reports unparsed lines by reason, with the first line of each.
fn complain(summary: &FileSummary) {
    if !summary.recognised {
        output::complain(&format!(
            "{}: not one line recognised ({} lines)",
            summary.file, summary.lines
        ));
    }
    for fault in &summary.faults_by_reason {
        let lines =
            if fault.lines == 1 { "1 line".to_owned() } else { format!("{} lines", fault.lines) };
        output::complain(&format!(
            "{}:{}: {lines}: {}",
            summary.file, fault.first_line, fault.reason
        ));
        if !fault.example.is_empty() {
            output::complain(&format!("    {}", fault.example));
        }
    }
}

#[derive(Clone, Copy)]
enum Picture {
    Svg,
    Html,
}

fn kind(path: &Path) -> anyhow::Result<Picture> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    match extension.map(str::to_ascii_lowercase).as_deref() {
        Some("svg") => Ok(Picture::Svg),
        Some("html" | "htm") => Ok(Picture::Html),
        _ => bail!("--plot {}: name a file that ends in .svg or .html", path.display()),
    }
}

fn draw(
    path: &Path,
    picture: Picture,
    files: &[(FileSummary, Charted)],
    throughput: &Throughput,
) -> anyhow::Result<()> {
    let page = logs::record(files, throughput).page();
    let text = match picture {
        Picture::Html => page.html(),
        Picture::Svg => match page.pictures().into_iter().next() {
            Some((_, text)) => text,
            None => bail!("--plot: there is no curve to draw: no log has heights with times"),
        },
    };
    atomic_file::write(path, text.as_bytes())?;
    output::complain(&format!("plot: {}", path.display()));
    Ok(())
}
