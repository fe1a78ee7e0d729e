//! The C interface: its header, and a program in C.

mod c_program;
mod header;
