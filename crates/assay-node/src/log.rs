//! The log: one line per event, in the form of Bitcoin Core's `debug.log`, which parsers of
//! the whole field understand.

use std::fmt::{self, Write as _};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use assay_engine::iso_time;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};

mod details;

pub use self::details::{ALL, CATEGORIES};
use self::details::{Details, details};
pub(crate) use self::details::{category_states, set_category};

/// Where log lines go.
#[derive(Debug, Clone)]
pub struct LogConfig {
    /// Whether to write a file.
    pub file: bool,
    /// The file, relative to the chain's folder; `None` for `debug.log`.
    pub path: Option<PathBuf>,
    /// Whether to write to standard output.
    pub stdout: bool,
    /// The least important level that is written.
    pub level: LevelFilter,
    /// Categories whose lines below the level of information are written; `None` for all.
    pub categories: Option<Vec<String>>,
    /// Categories whose lines below the level of information are not written.
    pub excluded: Vec<String>,
    /// Lines to begin with: what was found before there was a log.
    pub first_lines: Vec<LogLine>,
}

/// A line for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogLine {
    /// For those who look for a fault.
    Debug(String),
    /// Plain information.
    Info(String),
    /// Something that the user should see to.
    Warning(String),
}

impl LogLine {
    fn write(&self) {
        match self {
            Self::Debug(text) => tracing::debug!("{text}"),
            Self::Info(text) => tracing::info!("{text}"),
            Self::Warning(text) => tracing::warn!("{text}"),
        }
    }
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            file: true,
            path: None,
            stdout: false,
            level: LevelFilter::INFO,
            categories: None,
            excluded: Vec::new(),
            first_lines: Vec::new(),
        }
    }
}

impl LogConfig {
    /// The file, for a chain whose folder is `dir`.
    pub(crate) fn path(&self, dir: &Path) -> PathBuf {
        dir.join(self.path.as_deref().unwrap_or(Path::new(FILE_NAME)))
    }
}

/// Core's `DEFAULT_DEBUGLOGFILE` (`logging.cpp`).
pub(crate) const FILE_NAME: &str = "debug.log";

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file cannot be written.
    #[error("cannot open the log file {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A process has one log, and this one has it already.
    #[error("this process logs elsewhere already")]
    Installed,
}

/// Sends the events of this process to `path` and standard output, as `config` says.
pub(crate) fn install(config: &LogConfig, path: &Path) -> Result<(), LogError> {
    let file = if config.file {
        let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
        Some(opened.map_err(|source| LogError::File { path: path.to_owned(), source })?)
    } else {
        None
    };
    *details() = Details::new(config);
    let lines = Lines { file: Mutex::new(file), stdout: config.stdout };
    let subscriber = tracing_subscriber::registry().with(lines);
    tracing::subscriber::set_global_default(subscriber).map_err(|_| LogError::Installed)?;
    config.first_lines.iter().for_each(LogLine::write);
    Ok(())
}

struct Lines {
    file: Mutex<Option<File>>,
    stdout: bool,
}

impl<S: Subscriber> Layer<S> for Lines {
    // The answer is kept for each place in the program until details are switched on or off.
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        details().shows(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(details().level_max())
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = Text::default();
        event.record(&mut text);
        let line = format_line(SystemTime::now(), event.metadata(), &text);
        // A full disk must not stop the node, and there is nowhere left to complain.
        if let Some(file) = &mut *self.file.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = file.write_all(line.as_bytes());
        }
        if self.stdout {
            let _ = io::stdout().lock().write_all(line.as_bytes());
        }
    }
}

/// The message of an event, and its other fields after it.
#[derive(Debug, Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let written = if field.name() == "message" {
            write!(self.message, "{value:?}")
        } else {
            write!(self.fields, " {field}={value:?}")
        };
        written.expect("writing to a string does not fail");
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}

/// Time with microseconds, what sort of line it is unless it is plain information, and the text.
fn format_line(now: SystemTime, metadata: &Metadata<'_>, text: &Text) -> String {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = iso_time(since.as_secs());
    let seconds = seconds.trim_end_matches('Z');
    let mut line = format!("{seconds}.{:06}Z ", since.subsec_micros());
    let level = match *metadata.level() {
        Level::ERROR => "error",
        Level::WARN => "warning",
        Level::INFO => "",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    };
    // Events carry the path of their module unless they were given a category.
    let category = Some(metadata.target()).filter(|target| !target.contains("::"));
    let category =
        category.filter(|target| *target != "updatetip" && !target.starts_with("assay_"));
    let prefix = match (category, level) {
        (None, "") => String::new(),
        (None, level) => format!("[{level}] "),
        (Some(category), "debug" | "") => format!("[{category}] "),
        (Some(category), level) => format!("[{category}:{level}] "),
    };
    line.push_str(&prefix);
    // What came from outside must not be able to forge lines.
    for character in text.message.chars().chain(text.fields.chars()) {
        if character.is_control() {
            write!(line, "\\x{:02x}", u32::from(character))
                .expect("writing to a string does not fail");
        } else {
            line.push(character);
        }
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    #[derive(Clone, Default)]
    struct Capture(Arc<Mutex<Vec<String>>>);

    impl<S: Subscriber> Layer<S> for Capture {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            let mut text = Text::default();
            event.record(&mut text);
            let now = UNIX_EPOCH + Duration::from_micros(1_795_204_800_123_456);
            self.0.lock().unwrap().push(format_line(now, event.metadata(), &text));
        }
    }

    #[test]
    fn lines_look_like_those_of_bitcoin_core() {
        let capture = Capture::default();
        let subscriber = tracing_subscriber::registry().with(capture.clone());
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(target: "updatetip", "UpdateTip: new best={} height={}", "00ff", 7);
            tracing::info!("plain");
            tracing::warn!("careful");
            tracing::debug!(target: "http", "detail");
            tracing::error!(target: "http", code = 5, name = "x", "broken");
            tracing::info!("forged\n2026-01-01T00:00:00Z line");
        });
        let time = "2026-11-20T20:00:00.123456Z ";
        let expected = [
            "UpdateTip: new best=00ff height=7",
            "plain",
            "[warning] careful",
            "[http] detail",
            "[http:error] broken code=5 name=x",
            "forged\\x0a2026-01-01T00:00:00Z line",
        ];
        let lines = capture.0.lock().unwrap();
        assert_eq!(*lines, expected.map(|text| format!("{time}{text}\n")));
    }
}
