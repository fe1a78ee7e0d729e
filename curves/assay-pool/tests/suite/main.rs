//! The pool from outside.

mod ends;
mod stress;
