//! The first 14,131 blocks of the main network through the whole engine.
//!
//! The file is part of the Go module `github.com/btcsuite/btcd`. In those blocks every reward was 50 coins and no fee was lost,
//! so the final coins are known without a second program.

use std::sync::Arc;

use assay_consensus::amount::COIN;
use assay_consensus::params::ChainParams;
use assay_consensus::uint256::U256;
use assay_engine::{Config, Engine, SubmitOutcome};

use crate::data;
use crate::outcome::{Outcome, Report};

pub(crate) fn run(report: &mut Report) {
    let file = || {
        let folder = data::go_module("github.com/btcsuite/btcd@v0.26.2")?;
        std::fs::read(folder.join("blockchain/testdata/blk_0_to_14131.dat")).ok()
    };
    report.file("btcd: blk_0_to_14131.dat", file, |file, outcome| feed(file, outcome));
}

/// The blocks of a file in a node's format: magic, length, block; zeros to the end.
fn records(file: &[u8], magic: [u8; 4]) -> Vec<&[u8]> {
    let mut blocks = Vec::new();
    let mut rest = file;
    while let Some((length, body)) =
        rest.strip_prefix(&magic).and_then(|rest| rest.split_first_chunk())
    {
        let (block, behind) = body.split_at(u32::from_le_bytes(*length) as usize);
        blocks.push(block);
        rest = behind;
    }
    blocks
}

fn feed(file: &[u8], outcome: &mut Outcome) {
    let params = Arc::new(ChainParams::by_name("main").expect("a known chain"));
    let blocks = records(file, params.disk_magic);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let engine = Engine::open(Config::new(folder.path(), params)).expect("a new engine");
    for (height, block) in blocks.iter().enumerate().skip(1) {
        outcome.case(&format!("block {height}"), |log| {
            let answer = engine.blocks().submit(block.to_vec());
            log.check(matches!(answer, SubmitOutcome::Accepted), || format!("{answer:?}"));
        });
    }
    outcome.case("tip and coins", |log| {
        let last = blocks.len() as u32 - 1;
        let height = engine.chain().tip().height;
        log.check(last == 14_131 && height == last, || "another height".into());
        let stats = engine.chain().utxo_stats(false).expect("statistics");
        let created = 50 * COIN as u64 * u64::from(last);
        log.check(stats.total_amount_sat == created, || format!("{} sat", stats.total_amount_sat));
        // Every block represents 2^32 + 2^16 + 1 hashes at the first difficulty.
        let work = U256::from((u64::from(last) + 1) * 0x1_0001_0001);
        let mut claimed = engine.chain().tip().chain_work;
        claimed.reverse();
        let claimed = U256::from_le_bytes(&claimed);
        log.check(claimed == work, || format!("work {claimed}"));
    });
    engine.shutdown().expect("an orderly end");
}
