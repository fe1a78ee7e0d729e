//! The store from outside: crashes, files, rot.

mod crash;
mod files;
mod rot;
