//! Integration tests of the store: crashes, files, rot.

mod crash;
mod files;
mod rot;
