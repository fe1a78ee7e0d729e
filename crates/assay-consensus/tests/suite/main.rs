//! Rules from outside, against vectors and an oracle.

mod difficulty;
mod tx_vectors;
