//! The log: one line per event, in the form of Bitcoin Core's `debug.log`, which parsers of
//! the whole field understand.

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
    /// Whether to write a file.
    pub file: bool,
    /// The file, relative to the chain's folder; `None` for `debug.log`.
    pub path: Option<PathBuf>,
    pub stdout: bool,
    /// The least important level that is written.
    pub level: LevelFilter,
    /// Categories whose lines below the level of information are written; `None` for all.
    pub categories: Option<Vec<String>>,
    /// Categories whose lines below the level of information are not written.
    pub excluded: Vec<String>,
    /// Whether each place in the program may write only 1 MiB an hour to the file, details aside.
    pub limits_rate: bool,
    /// Whether a file of more than 11 MB is cut down to its last 10 MB at the start; `None` for where no details are written.
    pub shrinks: Option<bool>,
    /// Lines to begin with: what was found before there was a log.
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
    /// The file, for a chain whose folder is `dir`.
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
    /// A process has one log, and this one has it already.
    #[error("this process logs elsewhere already")]
    Installed,
}

/// Sends the events of this process to `path` and standard output, as `config` says.
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

/// Has the file opened again before the next line is written: it was moved away (`logrotate`).
pub(crate) fn reopen() {
    REOPEN.store(true, Ordering::Relaxed);
}

static REOPEN: AtomicBool = AtomicBool::new(false);

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

/// Cuts a large file down to its end (Core `logging.cpp`, `ShrinkDebugFile`). What is no regular file is left alone.
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

/// Core's `RECENT_DEBUG_HISTORY_SIZE`, and a tenth more.
const KEPT_BYTES: usize = 10_000_000;
const SHRINKS_ABOVE_BYTES: u64 = 11_000_000;

struct Lines(Mutex<Sink>);

/// Where lines go.
struct Sink {
    file: Option<File>,
    path: PathBuf,
    stdout: bool,
    limiter: Option<RateLimiter>,
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
        let line = format_line(SystemTime::now(), Head::of(event.metadata()), &text);
        let mut sink = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sink.write(event.metadata(), line, Instant::now());
    }
}

impl Sink {
    /// Writes a line as far as its call site may.
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

    /// Writes a line of the log's own.
    fn warn(&mut self, message: String) {
        let text = Text { message, ..Text::default() };
        self.put(
            format_line(SystemTime::now(), Head { level: "warning", category: None }, &text),
            true,
        );
    }

    fn put(&mut self, mut line: String, to_file: bool) {
        // Whoever looks for a line should know that some are missing.
        if self.limiter.as_ref().is_some_and(RateLimiter::is_active) {
            line.insert_str(0, "[*] ");
        }
        if let Some(file) = self.file.as_mut().filter(|_| to_file) {
            if REOPEN.swap(false, Ordering::Relaxed)
                && let Ok(opened) = open(&self.path)
            {
                *file = opened;
            }
            // A full disk must not stop the node, and there is nowhere left to complain.
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

/// Level and category of a line, as they are shown.
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
        // Events carry the path of their module unless they were given a category.
        let category = Some(metadata.target()).filter(|target| !target.contains("::"));
        let category =
            category.filter(|target| *target != "updatetip" && !target.starts_with("assay_"));
        Self { level, category }
    }
}

/// Time with microseconds, what sort of line it is unless it is plain information, and the text.
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
            self.0.lock().unwrap().push(format_line(now, Head::of(event.metadata()), &text));
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
