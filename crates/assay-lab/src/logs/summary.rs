//! Summary of a whole log.

use serde::Serialize;

use super::{Fault, Format, Progress, STEPS, Start, Steps};

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub line: u64,
    /// Session number from 1; sessions without a row are not counted.
    pub session: u32,
    /// Seconds since the start of the session: the program's first line, or the first row without one.
    pub elapsed_s: Option<f64>,
    /// Total running time in all sessions up to here, without the gaps between them.
    pub running_s: Option<f64>,
    /// Transactions of the chain up to here, or of this log if its lines report differences.
    pub txs_total: Option<u64>,
    pub progress: Progress,
    /// Step times of the block, if any.
    pub steps: Option<Steps>,
}

/// Maximum number of listed sessions; all are counted.
const SESSIONS_SHOWN: usize = 1000;

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FileSummary {
    /// File as named by the caller.
    pub file: String,
    pub bytes: u64,
    pub compressed: bool,
    pub lines: u64,
    /// True if any line, valid or not, was that of a known program.
    pub recognised: bool,
    pub rows: u64,
    pub formats: Vec<FormatCount>,
    /// The first thousand sessions; each starts with the program.
    pub sessions: Vec<SessionSummary>,
    pub session_count: u64,
    /// Height of the best header, if reported.
    pub headers: Option<u32>,
    /// Number of backward jumps of the log's clock.
    pub clock_set_back: u64,
    /// Longest time between two rows, in seconds.
    pub longest_pause_s: f64,
    /// Rows of a per-block format with a height not one above or below the row before: lines are missing, or a height is damaged.
    pub height_jumps: u64,
    /// Number of times that an index timed out waiting for its node.
    pub timeouts: u64,
    /// Total times of `-debug=bench`.
    pub steps: Vec<StepTotal>,
    /// Blocks with such times.
    pub step_blocks: u64,
    pub faults: u64,
    pub faults_by_reason: Vec<FaultCount>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FormatCount {
    pub format: &'static str,
    pub meaning: String,
    pub rows: u64,
}

/// From one start of the program to the next.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct SessionSummary {
    /// Name and version, if logged.
    pub version: Option<String>,
    pub first_height: Option<u32>,
    pub last_height: Option<u32>,
    /// Seconds from the start to the last row.
    pub seconds: Option<f64>,
    pub rows: u64,
}

/// A step of `-debug=bench` over all blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepTotal {
    pub step: &'static str,
    pub blocks: u64,
    pub total_ms: f64,
    pub max_ms: f64,
}

/// Malformed lines with the same reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaultCount {
    pub reason: String,
    pub lines: u64,
    pub first_line: u64,
    /// Beginning of the first.
    pub example: String,
}

/// Counts during reading; of bounded size.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) summary: FileSummary,
    /// Blocks, total and longest time of each step.
    steps: [(u64, f64, f64); STEPS.len()],
    /// Previous row of the foreground chainstate: session, format, height.
    before: Option<(u32, Format, u32)>,
}

impl Tally {
    pub(super) fn fault(&mut self, line: u64, fault: &Fault, example: String) {
        let summary = &mut self.summary;
        // Any kind of data may have overlong lines, and damaged compression is independent of the text.
        summary.recognised |= !matches!(fault, Fault::TooLong | Fault::Compressed { .. });
        summary.faults += 1;
        let reason = fault.to_string();
        // Few reasons exist: formats and fields.
        let faults = &mut summary.faults_by_reason;
        match faults.iter_mut().find(|count| count.reason == reason) {
            Some(count) => count.lines += 1,
            None => faults.push(FaultCount { reason, lines: 1, first_line: line, example }),
        }
    }

    /// The program starts; without its name if no line shows that.
    pub(super) fn start(&mut self, start: Option<&Start>) {
        let version = start.map(|start| start.version.clone()).filter(|name| !name.is_empty());
        let summary = &mut self.summary;
        let are_all_listed = summary.session_count == summary.sessions.len() as u64;
        match summary.sessions.last_mut() {
            // No row followed the last start.
            Some(last) if last.rows == 0 && are_all_listed => last.version = version,
            _ => {
                summary.session_count += 1;
                if summary.sessions.len() < SESSIONS_SHOWN {
                    summary.sessions.push(SessionSummary { version, ..SessionSummary::default() });
                }
            }
        }
    }

    pub(super) fn row(&mut self, row: &Row) {
        let (summary, progress) = (&mut self.summary, &row.progress);
        summary.rows += 1;
        let format = progress.format.name();
        if let Some(count) = summary.formats.iter_mut().find(|count| count.format == format) {
            count.rows += 1;
        } else {
            let meaning = progress.format.meaning().to_string();
            summary.formats.push(FormatCount { format, meaning, rows: 1 });
        }
        if progress.background {
            return;
        }
        let now = (row.session, progress.format, progress.height);
        if let Some((session, format, height)) = self.before.replace(now)
            && (session, format) == (row.session, progress.format)
            && format.meaning() == super::Meaning::PerBlock
            && height.abs_diff(progress.height) > 1
        {
            summary.height_jumps += 1;
        }
        if summary.session_count == summary.sessions.len() as u64
            && let Some(session) = summary.sessions.last_mut()
        {
            session.first_height = session.first_height.or(Some(progress.height));
            session.last_height = Some(progress.height);
            session.seconds = row.elapsed_s.or(session.seconds);
            session.rows += 1;
        }
    }

    pub(super) fn steps(&mut self, steps: &Steps) {
        self.summary.step_blocks += 1;
        for (sum, ms) in self.steps.iter_mut().zip(steps.ms) {
            if let Some(ms) = ms {
                *sum = (sum.0 + 1, sum.1 + ms, sum.2.max(ms));
            }
        }
    }

    pub(super) fn summary(&self) -> FileSummary {
        let step = |((_, _, step), (blocks, total_ms, max_ms))| StepTotal {
            step,
            blocks,
            total_ms,
            max_ms,
        };
        let steps = STEPS.into_iter().zip(self.steps).map(step);
        let mut summary = self.summary.clone();
        summary.steps = steps.filter(|step| step.blocks > 0).collect();
        summary.recognised |= !summary.sessions.is_empty()
            || summary.headers.is_some()
            || summary.timeouts > 0
            || summary.step_blocks > 0;
        summary
    }
}
