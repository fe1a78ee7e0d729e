//! Texts that laboratory and forge read.

use assay_forge::{Ledger, Recipe};
use assay_lab::logs::{Found, Parser, Sessions};
use assay_lab::plan::Plan;

use crate::input::{folder, write};

/// Plans: any text is a plan or an explanation.
pub fn plan(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Plan::parse(text, "input") {
        Ok(plan) => drop(plan.phase_title("steady-1")),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Recipes: any text is a recipe or an explanation.
pub fn recipe(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Recipe::from_toml(text) {
        Ok(recipe) => {
            // One that extends a built-in history hashes that as well, so only that the text is hashed can be asked.
            assert_eq!(
                Recipe::from_toml(text).map(|again| again.sha256()).ok(),
                Some(recipe.sha256())
            );
            let longer = format!("{text}\n#");
            assert_ne!(
                Recipe::from_toml(&longer).map(|longer| longer.sha256()).ok(),
                Some(recipe.sha256())
            );
            let _ = (recipe.name(), recipe.network());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Ledgers of chains: the tip of one that is read is its last block.
pub fn ledger(data: &[u8]) {
    write("ledger.jsonl", data);
    match Ledger::read(folder()) {
        Ok(ledger) => {
            assert_eq!(Some(ledger.tip.height), ledger.blocks.last().map(|block| block.height));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Logs: nothing panics, lines are counted, and how a log is cut into pieces makes no difference.
pub fn logs(data: &[u8]) {
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
}

fn parse(text: &[u8], piece: usize) -> Vec<Found> {
    let (mut parser, mut all) = (Parser::new(), Vec::new());
    text.chunks(piece).for_each(|piece| parser.feed(piece, &mut |found| all.push(found)));
    parser.finish(&mut |found| all.push(found));
    all
}
