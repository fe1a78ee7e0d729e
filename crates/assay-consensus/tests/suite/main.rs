//! Rules from outside, against an oracle.

mod difficulty;
