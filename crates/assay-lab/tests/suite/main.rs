//! The laboratory from outside: query load, logs.

mod load;
mod logs;
