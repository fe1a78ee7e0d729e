//! Rate limit of the log file per call site, against attackers who fill the disk (Core `logging.h`,
//! `LogRateLimiter`).

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tracing::callsite::Identifier;
use tracing::{Level, Metadata};

/// Counts the bytes of each call site in windows of fixed length.
#[derive(Debug)]
pub(super) struct RateLimiter {
    bytes_max: u64,
    window: Duration,
    window_end: Instant,
    sites: HashMap<Identifier, Site>,
    /// True if a site is suppressed.
    is_active: bool,
}

#[derive(Debug)]
struct Site {
    metadata: &'static Metadata<'static>,
    left_bytes: u64,
    is_suppressed: bool,
    dropped_lines: u64,
    dropped_bytes: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Write,
    /// Last line of its site in this window: written after this warning.
    Last(String),
    Suppress,
}

impl RateLimiter {
    /// Core's limits: `RATELIMIT_MAX_BYTES` in `RATELIMIT_WINDOW`.
    pub(super) fn new(now: Instant) -> Self {
        let window = Duration::from_hours(1);
        Self {
            bytes_max: 1 << 20,
            window,
            window_end: now + window,
            sites: HashMap::new(),
            is_active: false,
        }
    }

    /// Starts a new window when due; returns a warning for each site suppressed in the last one.
    pub(super) fn roll(&mut self, now: Instant) -> Vec<String> {
        if now < self.window_end {
            return Vec::new();
        }
        self.window_end = now + self.window;
        self.is_active = false;
        let window_s = self.window.as_secs();
        let dropped =
            self.sites.drain().map(|(_, site)| site).filter(|site| site.dropped_lines > 0);
        let warning = |site: Site| {
            let Site { dropped_lines, dropped_bytes, .. } = site;
            format!(
                "Restarting logging from {}: {dropped_bytes} bytes ({dropped_lines} lines) were dropped during the last {window_s}s.",
                place(site.metadata)
            )
        };
        dropped.map(warning).collect()
    }

    /// Charges `bytes` to the call site. Exempt are lines below the info level, written on request, and tips, limited by work.
    pub(super) fn admit(&mut self, metadata: &'static Metadata<'static>, bytes: u64) -> Admission {
        if *metadata.level() > Level::INFO || metadata.target() == "updatetip" {
            return Admission::Write;
        }
        let bytes_max = self.bytes_max;
        let site = self.sites.entry(metadata.callsite()).or_insert(Site {
            metadata,
            left_bytes: bytes_max,
            is_suppressed: false,
            dropped_lines: 0,
            dropped_bytes: 0,
        });
        if site.is_suppressed {
            site.dropped_lines += 1;
            site.dropped_bytes += bytes;
            return Admission::Suppress;
        }
        if bytes <= site.left_bytes {
            site.left_bytes -= bytes;
            return Admission::Write;
        }
        site.is_suppressed = true;
        self.is_active = true;
        Admission::Last(format!(
            "Excessive logging detected from {}: >{bytes_max} bytes logged during the last time window of {}s. Suppressing logging \
             to disk from this source location until time window resets. Console logging unaffected. Last log entry.",
            place(metadata),
            self.window.as_secs()
        ))
    }

    /// True if lines are missing from the file.
    pub(super) fn is_active(&self) -> bool {
        self.is_active
    }
}

/// File, line and module of a call site.
fn place(metadata: &Metadata<'_>) -> String {
    let file = metadata.file().unwrap_or("unknown");
    let line = metadata.line().unwrap_or_default();
    format!("{file}:{line} ({})", metadata.module_path().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::path::Path;
    use std::sync::Mutex;

    use tracing::dispatcher::Dispatch;
    use tracing_subscriber::Layer;
    use tracing_subscriber::layer::{Context, SubscriberExt as _};

    use super::super::{Head, Sink, Text, format_line, open, shrink};
    use super::*;

    struct Clocked(Mutex<(Sink, Instant)>);

    impl<S: tracing::Subscriber> Layer<S> for &'static Clocked {
        fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
            let mut text = Text::default();
            event.record(&mut text);
            let time = std::time::SystemTime::UNIX_EPOCH;
            let line = format_line(time, Head::of(event.metadata()), &text);
            let (sink, now) = &mut *self.0.lock().unwrap();
            sink.write(event.metadata(), line, *now);
        }
    }

    fn log(path: &Path) -> &'static Clocked {
        let now = Instant::now();
        let limiter = Some(RateLimiter::new(now));
        let file = Some(open(path).unwrap());
        let sink = Sink { file, path: path.to_owned(), stdout: false, limiter };
        Box::leak(Box::new(Clocked(Mutex::new((sink, now)))))
    }

    fn bad_password() {
        tracing::warn!("wrong {:900}", "password");
    }

    #[test]
    fn call_sites_are_limited_to_1_mib_per_hour() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("debug.log");
        let log = log(&path);
        let dispatch = Dispatch::new(tracing_subscriber::registry().with(log));
        let text = || fs::read_to_string(&path).unwrap();
        tracing::dispatcher::with_default(&dispatch, || {
            for _ in 0..5000 {
                bad_password();
                tracing::debug!(target: "net", "a detail");
            }
            tracing::info!("another place");
            let full = text();
            let lines = |what: &str| full.lines().filter(|line| line.contains(what)).count();
            let line_bytes = full.lines().next().unwrap().len() + 1;
            assert_eq!(lines("wrong"), (1 << 20) / line_bytes + 1);
            assert_eq!(lines("a detail"), 5000);
            let warning = full.lines().find(|line| line.contains("Excessive")).unwrap();
            assert!(warning.starts_with("[*] ") && warning.contains("limit.rs:"), "{warning}");
            assert!(full.ends_with("[*] 1970-01-01T00:00:00.000000Z another place\n"));
            log.0.lock().unwrap().1 += Duration::from_hours(1);
            bad_password();
            let dropped = 5000 - lines("wrong");
            let restart = format!("{} bytes ({dropped} lines) were dropped", dropped * line_bytes);
            let added = text().split_off(full.len());
            assert!(added.contains(&restart) && added.lines().count() == 2, "{added}");
            assert!(!added.contains("[*]"), "{added}");
        });
    }

    #[test]
    fn large_log_files_are_truncated() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("debug.log");
        shrink(&path).unwrap();
        assert!(!path.exists());
        fs::write(&path, vec![b'a'; 11_000_000]).unwrap();
        shrink(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), 11_000_000);
        open(&path).unwrap().write_all(b"end").unwrap();
        shrink(&path).unwrap();
        let kept = fs::read(&path).unwrap();
        assert!(kept.len() == 10_000_000 && kept.ends_with(b"aend"));
    }
}
