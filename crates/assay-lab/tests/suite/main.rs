//! Integration tests of the laboratory: query load, logs.

mod load;
mod logs;
