//! What is to be logged once the log is open: options decide where it is.

use assay_node::LogLine;

/// Lines for the log.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    lines: Vec<LogLine>,
    /// Lines for standard error.
    printed: Vec<String>,
}

impl Notes {
    pub(crate) fn debug(&mut self, text: String) {
        self.lines.push(LogLine::Debug(text));
    }

    pub(crate) fn info(&mut self, text: String) {
        self.lines.push(LogLine::Info(text));
    }

    pub(crate) fn warn(&mut self, text: String) {
        self.lines.push(LogLine::Warning(text));
    }

    /// A warning that must be seen at once: it is also printed.
    pub(crate) fn warn_aloud(&mut self, text: String) {
        self.print(format!("Warning: {text}"));
        self.warn(text);
    }

    /// A line for standard error alone.
    pub(crate) fn print(&mut self, line: String) {
        self.printed.push(line);
    }

    /// The lines for the log, and what to print.
    pub(crate) fn into_parts(self) -> (Vec<LogLine>, Vec<String>) {
        (self.lines, self.printed)
    }

    #[cfg(test)]
    pub(crate) fn texts(&self) -> Vec<&str> {
        let mut texts = Vec::new();
        for LogLine::Debug(text) | LogLine::Info(text) | LogLine::Warning(text) in &self.lines {
            texts.push(text.as_str());
        }
        texts
    }
}
