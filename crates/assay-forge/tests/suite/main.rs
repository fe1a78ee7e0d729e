//! Integration tests of the forge: chains, files and recipes.

mod common;
mod files;
mod forged;
mod history;
mod recipes;
mod scripts;
