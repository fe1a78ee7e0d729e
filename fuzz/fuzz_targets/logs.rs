//! Logs: nothing panics, lines are counted, and how a log is cut into pieces makes no difference.

#![no_main]

use assay_lab::logs::{Found, Parser, Sessions};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((piece, text)) = data.split_first() else { return };
    let whole = parse(text, text.len().max(1));
    assert_eq!(whole, parse(text, usize::from(*piece).max(1)));
    let lines = text.split(|byte| *byte == b'\n').count() as u64;
    let mut sessions = Sessions::new();
    for found in whole {
        assert!((1..=lines).contains(&found.line));
        if let Some(row) = sessions.take(found) {
            assert!(row.elapsed_s.is_none_or(|seconds| seconds >= 0.0));
        }
    }
    sessions.finish();
});

fn parse(text: &[u8], piece: usize) -> Vec<Found> {
    let (mut parser, mut all) = (Parser::new(), Vec::new());
    text.chunks(piece).for_each(|piece| parser.feed(piece, &mut |found| all.push(found)));
    parser.finish(&mut |found| all.push(found));
    all
}
