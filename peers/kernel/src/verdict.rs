//! Result of submitting a block, in terms common to both sides.

use std::fmt;

use assay_engine::SubmitOutcome;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Valid and part of the active chain on return.
    Accepted,
    /// Stored, but not fully checked: another branch has as much work.
    Inconclusive,
    /// Already known, and not invalid.
    Duplicate,
    Rejected {
        /// Reject reason; for the kernel, with the debug message of its log.
        reason: String,
        /// The kernel's class of the result, if available.
        class: Option<&'static str>,
    },
    Undecodable,
    /// Any other failure, which is always a defect.
    Failed(String),
}

impl From<SubmitOutcome> for Verdict {
    fn from(outcome: SubmitOutcome) -> Self {
        let rejected = |reason: String| Self::Rejected { reason, class: None };
        match outcome {
            SubmitOutcome::Accepted => Self::Accepted,
            // Core's `submitblock` answers "duplicate" in both cases: a known block is only checked for validity.
            SubmitOutcome::Duplicate | SubmitOutcome::DuplicateInconclusive => Self::Duplicate,
            SubmitOutcome::DuplicateInvalid => rejected("duplicate-invalid".to_owned()),
            SubmitOutcome::Inconclusive => Self::Inconclusive,
            SubmitOutcome::Rejected { reason, .. } => rejected(reason),
            SubmitOutcome::Undecodable(_) => Self::Undecodable,
            SubmitOutcome::Failed(error) => Self::Failed(error.to_string()),
        }
    }
}

impl Verdict {
    /// True if two verdicts are equal; `kernel` may have a debug message after the reason.
    pub fn agrees(engine: &Self, kernel: &Self) -> bool {
        match (engine, kernel) {
            (Self::Failed(_), _) | (_, Self::Failed(_)) => false,
            (Self::Rejected { reason, .. }, Self::Rejected { reason: logged, .. }) => logged
                .strip_prefix(reason.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(", ")),
            _ => engine == kernel,
        }
    }

    /// Short label for counts: the reason of a rejection, otherwise the kind of result.
    pub fn label(&self) -> &str {
        match self {
            Self::Accepted => "accepted",
            Self::Inconclusive => "inconclusive",
            Self::Duplicate => "duplicate",
            Self::Rejected { reason, .. } => reason,
            Self::Undecodable => "undecodable",
            Self::Failed(_) => "failed",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected { reason, class: Some(class) } => {
                write!(f, "rejected: {reason} [{class}]")
            }
            Self::Rejected { reason, class: None } => write!(f, "rejected: {reason}"),
            Self::Failed(cause) => write!(f, "failed: {cause}"),
            other => f.write_str(other.label()),
        }
    }
}
