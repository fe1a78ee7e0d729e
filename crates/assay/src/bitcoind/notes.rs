//! Messages from before the log is open, since options decide its location.

use assay_node::LogLine;

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

    /// Adds a warning to the log and to standard error.
    pub(crate) fn warn_aloud(&mut self, text: String) {
        self.print(format!("Warning: {text}"));
        self.warn(text);
    }

    /// Adds a line for standard error only.
    pub(crate) fn print(&mut self, line: String) {
        self.printed.push(line);
    }

    /// The lines for the log and those for standard error.
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
