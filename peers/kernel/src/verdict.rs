//! What became of a block, in words both sides can be put into.

use std::fmt;

use assay_engine::SubmitOutcome;

/// What became of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Valid and part of the active branch when the call returned.
    Accepted,
    /// Kept, but not checked fully: another branch is as good.
    Inconclusive,
    /// Known already, not as invalid.
    Duplicate,
    /// A rule is broken.
    Rejected {
        /// The reject reason; for the kernel, with what its log appends.
        reason: String,
        /// The kernel's class of result, where it was asked.
        class: Option<&'static str>,
    },
    /// The bytes are not a block.
    Undecodable,
    /// Something else went wrong; never right.
    Failed(String),
}

impl From<SubmitOutcome> for Verdict {
    fn from(outcome: SubmitOutcome) -> Self {
        let rejected = |reason: String| Self::Rejected { reason, class: None };
        match outcome {
            SubmitOutcome::Accepted => Self::Accepted,
            // Core's submitblock answers "duplicate" to both since it judges a known block by its validity alone.
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
    /// Whether two verdicts say the same; `kernel` may carry a debug message behind the reason.
    pub fn agrees(engine: &Self, kernel: &Self) -> bool {
        match (engine, kernel) {
            (Self::Failed(_), _) | (_, Self::Failed(_)) => false,
            (Self::Rejected { reason, .. }, Self::Rejected { reason: logged, .. }) => logged
                .strip_prefix(reason.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(", ")),
            _ => engine == kernel,
        }
    }

    /// A short word for counting: the reason of a rejection, else what happened.
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
