//! Log in the format of Bitcoin Core's `debug.log`, one line per event, for existing log parsers.

use std::fmt::{self, Write as _};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use assay_engine::iso_time;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};

mod details;
mod limit;

pub use self::details::{ALL, CATEGORIES};
use self::details::{Details, details};
pub(crate) use self::details::{category_states, set_category};
use self::limit::{Admission, RateLimiter};

#[derive(Debug, Clone)]
pub struct LogConfig {
    pub file: bool,
    /// Path relative to the chain's folder; `None` for `debug.log`.
    pub path: Option<PathBuf>,
    pub stdout: bool,
    pub level: LevelFilter,
    /// Categories logged below the info level; `None` for all.
    pub categories: Option<Vec<String>>,
    /// Categories not logged below the info level.
    pub excluded: Vec<String>,
    /// Limit each call site to 1 MiB per hour in the file, except below the info level.
    pub limits_rate: bool,
    /// Truncate a file of more than 11 MB to its last 10 MB at start; `None` truncates unless debug categories are on.
    pub shrinks: Option<bool>,
    /// Messages from before the log was opened, written first.
    pub first_lines: Vec<LogLine>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogLine {
    Debug(String),
    Info(String),
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
            limits_rate: true,
            shrinks: None,
            first_lines: Vec::new(),
        }
    }
}

impl LogConfig {
    pub(crate) fn path(&self, dir: &Path) -> PathBuf {
        dir.join(self.path.as_deref().unwrap_or(Path::new(FILE_NAME)))
    }
}

/// Core's `DEFAULT_DEBUGLOGFILE` (`logging.cpp`).
pub(crate) const FILE_NAME: &str = "debug.log";

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("cannot open the log file {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("this process logs elsewhere already")]
    Installed,
}

/// Sends the events of this process to `path` and standard output according to `config`.
pub(crate) fn install(config: &LogConfig, path: &Path) -> Result<(), LogError> {
    let failed = |source| LogError::File { path: path.to_owned(), source };
    let file = if config.file {
        if config.shrinks.unwrap_or(config.level <= LevelFilter::INFO) {
            shrink(path).map_err(failed)?;
        }
        Some(open(path).map_err(failed)?)
    } else {
        None
    };
    *details() = Details::new(config);
    let limiter = config.limits_rate.then(|| RateLimiter::new(Instant::now()));
    let sink = Sink { file, path: path.to_owned(), stdout: config.stdout, limiter };
    let subscriber = tracing_subscriber::registry().with(Lines(Mutex::new(sink)));
    tracing::subscriber::set_global_default(subscriber).map_err(|_| LogError::Installed)?;
    config.first_lines.iter().for_each(LogLine::write);
    Ok(())
}

/// Reopens the file before the next line, after `logrotate` has moved it.
pub(crate) fn reopen() {
    REOPEN.store(true, Ordering::Relaxed);
}

static REOPEN: AtomicBool = AtomicBool::new(false);

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

/// Truncates a large file to its end (Core `logging.cpp`, `ShrinkDebugFile`). Ignores anything but regular files.
fn shrink(path: &Path) -> io::Result<()> {
    let known = match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        known => known?,
    };
    if !known.is_file() || known.len() <= SHRINKS_ABOVE_BYTES {
        return Ok(());
    }
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    file.seek(SeekFrom::End(-(KEPT_BYTES as i64)))?;
    let mut kept = Vec::with_capacity(KEPT_BYTES);
    io::Read::by_ref(&mut file).take(KEPT_BYTES as u64).read_to_end(&mut kept)?;
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(&kept)
}

/// Core's `RECENT_DEBUG_HISTORY_SIZE`; larger files than this plus a tenth are truncated.
const KEPT_BYTES: usize = 10_000_000;
const SHRINKS_ABOVE_BYTES: u64 = 11_000_000;

struct Lines(Mutex<Sink>);

struct Sink {
    file: Option<File>,
    path: PathBuf,
    stdout: bool,
    limiter: Option<RateLimiter>,
}

impl<S: Subscriber> Layer<S> for Lines {
    // The result is cached per call site until the categories change.
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        details().shows(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(details().level_max())
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = Text::default();
        event.record(&mut text);
        let line = format_line(SystemTime::now(), Head::of(event.metadata()), &text);
        let mut sink = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sink.write(event.metadata(), line, Instant::now());
    }
}

impl Sink {
    /// Writes a line unless its call site is suppressed.
    fn write(&mut self, metadata: &'static Metadata<'static>, line: String, now: Instant) {
        let Some(limiter) = &mut self.limiter else { return self.put(line, true) };
        for warning in limiter.roll(now) {
            self.warn(warning);
        }
        let Some(limiter) = &mut self.limiter else { return };
        match limiter.admit(metadata, line.len() as u64) {
            Admission::Write => self.put(line, true),
            Admission::Last(warning) => {
                self.warn(warning);
                self.put(line, true);
            }
            Admission::Suppress => self.put(line, false),
        }
    }

    fn warn(&mut self, message: String) {
        let text = Text { message, ..Text::default() };
        self.put(
            format_line(SystemTime::now(), Head { level: "warning", category: None }, &text),
            true,
        );
    }

    fn put(&mut self, mut line: String, to_file: bool) {
        // Marks that lines are missing from the file.
        if self.limiter.as_ref().is_some_and(RateLimiter::is_active) {
            line.insert_str(0, "[*] ");
        }
        if let Some(file) = self.file.as_mut().filter(|_| to_file) {
            if REOPEN.swap(false, Ordering::Relaxed)
                && let Ok(opened) = open(&self.path)
            {
                *file = opened;
            }
            // A full disk must not stop the node, and no other log is available.
            let _ = file.write_all(line.as_bytes());
        }
        if self.stdout {
            let _ = io::stdout().lock().write_all(line.as_bytes());
        }
    }
}

/// The message of an event, then its other fields.
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

#[derive(Clone, Copy)]
struct Head<'a> {
    level: &'a str,
    category: Option<&'a str>,
}

impl<'a> Head<'a> {
    fn of(metadata: &'a Metadata<'_>) -> Self {
        let level = match *metadata.level() {
            Level::ERROR => "error",
            Level::WARN => "warning",
            Level::INFO => "",
            Level::DEBUG => "debug",
            Level::TRACE => "trace",
        };
        // The target is the module path unless the event has a category.
        let category = Some(metadata.target()).filter(|target| !target.contains("::"));
        let category =
            category.filter(|target| *target != "updatetip" && !target.starts_with("assay_"));
        Self { level, category }
    }
}

/// Time with microseconds, level and category unless info, and the text.
fn format_line(now: SystemTime, head: Head<'_>, text: &Text) -> String {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = iso_time(since.as_secs());
    let seconds = seconds.trim_end_matches('Z');
    let mut line = format!("{seconds}.{:06}Z ", since.subsec_micros());
    let prefix = match (head.category, head.level) {
        (None, "") => String::new(),
        (None, level) => format!("[{level}] "),
        (Some(category), "debug" | "") => format!("[{category}] "),
        (Some(category), level) => format!("[{category}:{level}] "),
    };
    line.push_str(&prefix);
    // Escape control characters, so that external input cannot forge lines.
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
            self.0.lock().unwrap().push(format_line(now, Head::of(event.metadata()), &text));
        }
    }

    #[test]
    fn lines_match_core_format() {
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
