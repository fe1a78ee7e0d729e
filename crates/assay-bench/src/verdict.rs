//! When two things count as different: the laboratory's rule.

pub use assay_lab::verdict::{COVERAGE, FLOOR_MIN, Verdict};
