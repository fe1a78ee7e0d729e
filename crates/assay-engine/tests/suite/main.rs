//! Integration tests of the engine in one program, so that linking is paid for once.

mod real_blocks;
mod shard;
mod validate;

/// The engine over a simulated disk: failures of a step, crashes, power cuts and bit rot. The guarantees: `docs/formats.md`,
/// "What survives what".
mod faults {
    mod chain;
    mod disk;
    mod long;
    mod prune;
    mod repair;
    mod rot;
    mod sweep;
}

/// The engine on forged chains: complete syncs, pre-relayed transactions, restarts, kills, reorgs, bad blocks.
///
/// A forged chain is a differential test: libsecp256k1 signed it over hashes that the forge computed itself, and the forge kept
/// its own UTXO set, whose hash the engine must reach.
mod forged {
    mod bad_blocks;
    pub(crate) mod chain;
    mod control;
    mod deep_reorg;
    mod defect;
    mod fixture;
    mod follow;
    mod mempool;
    mod mempool_file;
    mod mempool_hostile;
    mod mempool_limits;
    mod mempool_reorg;
    pub(crate) mod mint;
    mod packages;
    mod reorg;
    mod snapshot;
    mod sync;
    mod trials;
}

/// Rules that need a chain, tested with hand-built blocks.
mod rules {
    mod bip54;
    mod chain;
    mod order;
    mod overwrites;
    mod own_coins;
}
