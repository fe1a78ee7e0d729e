//! The report's figures.

use crate::suite::Published;

/// Bytes, then time and instructions of one operation.
pub(super) type Figure = (usize, f64, f64);

pub(super) const SHA256: [Figure; 6] = [
    (1, 637.28, 8_736.0),
    (64, 794.85, 11_107.0),
    (65, 831.95, 11_144.0),
    (100, 794.82, 11_139.0),
    (520, 1_946.67, 27_681.0),
    (8000, 20_958.63, 304_137.02),
];

pub(super) const DUP_SHA256: [Figure; 6] = [
    (1, 714.83, 9_548.0),
    (64, 858.44, 11_911.0),
    (65, 868.40, 11_968.0),
    (100, 864.33, 11_963.0),
    (520, 2_036.64, 28_615.0),
    (8000, 20_883.10, 306_887.04),
];

/// Both tables.
pub(super) fn rows() -> Vec<Published> {
    let row = |template: &str, (size, ns, instructions): Figure, note: &str| Published {
        benchmark: format!("script/p2wsh/{template}/{size}"),
        subject: "Bitcoin Core, branch p2qrh".to_owned(),
        machine: "Intel Core i7-8665U, 8 threads, Fedora 42".to_owned(),
        ns_per_op: Some(ns),
        instructions_per_op: Some(instructions),
        note: note.to_owned(),
        ratio: None,
    };
    let at_8000 = |size: usize| if size > 520 { "MAX_SCRIPT_ELEMENT_SIZE set to 8000" } else { "" };
    let sha256 = SHA256.map(|figure| row("sha256", figure, at_8000(figure.0)));
    let dup = DUP_SHA256.map(|figure| row("dup-sha256", figure, at_8000(figure.0)));
    sha256.into_iter().chain(dup).collect()
}
