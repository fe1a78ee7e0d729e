//! Tests of the public interface.

mod ends;
mod stress;
