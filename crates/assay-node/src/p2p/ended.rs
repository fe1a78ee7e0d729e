//! Reasons why a connection ends, in the words of Core's log (`net_processing.cpp`).

use std::io;
use std::time::Duration;

use assay_wire::p2p::{Command, FrameError};
use assay_wire::{BlockHash, Txid};

use crate::bip324::{MissingTerminator, Undecryptable};

#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    #[error("the peer has gone")]
    Gone,
    #[error("the node stops")]
    Stopping,
    #[error("{0}")]
    Io(io::Error),
    #[error("it took nothing for {} s", patience.as_secs_f32())]
    Stalled { patience: Duration },
    #[error("byte {} of a message: {fault}", fault.offset())]
    Frame {
        #[from]
        fault: FrameError,
    },
    #[error("{fault}")]
    Transport {
        #[from]
        fault: TransportError,
    },
    #[error("peer using obsolete version {version}")]
    Old { version: i32 },
    #[error("{command} received despite not offering bloom services")]
    NotOffered { command: Command },
    #[error("filtered block request received when NODE_BLOOM service disabled")]
    FilteredNotOffered,
    #[error("mempool request with bloom filters disabled")]
    MempoolNotOffered,
    #[error("mempool request with bandwidth limit reached")]
    MempoolTooMuch,
    #[error("historical block serving limit reached")]
    OldBlockTooMuch,
    #[error("Ignore block request below NODE_NETWORK_LIMITED threshold")]
    BlockTooDeep,
    #[error("{command} received after verack")]
    Late { command: Command },
    #[error("transaction sent in violation of protocol")]
    UnwantedTx,
    #[error("transaction ({hash}) inv sent in violation of protocol")]
    UnwantedInv { hash: Txid },
    #[error("peer requested unsupported block filter type: {kind}")]
    FilterKind { kind: u8 },
    #[error("peer requested invalid block hash: {stop}")]
    FilterStop { stop: BlockHash },
    #[error(
        "peer sent invalid getcfilters/getcfheaders with start height {start_height} and stop height {stop_height}"
    )]
    FilterRange { start_height: u32, stop_height: u32 },
    #[error("peer requested too many cfilters/cfheaders: {count} / {count_max}")]
    TooManyFilters { count: u64, count_max: u32 },
    #[error("getblocktxn received with no transaction indexes")]
    AskedNothing,
    #[error("feeler connection completed")]
    Reached,
    #[error("it is this node itself")]
    Itself,
    #[error(
        "peer does not offer the expected services ({offered:08x} offered, {expected:08x} expected)"
    )]
    WrongServices { offered: u64, expected: u64 },
    #[error("feature received with incompatible version {version}")]
    FeatureVersion { version: i32 },
    #[error("invalid feature payload")]
    FeaturePayload,
    #[error("too many peers hear of transactions")]
    TooManyRelay,
}

impl Ended {
    pub(super) fn is_fault(&self) -> bool {
        !matches!(self, Self::Gone | Self::Stopping | Self::Reached | Self::Io(_))
    }
}

/// BIP324 error, in Core's log wording (`net.cpp`, `V2Transport`).
#[derive(Debug, thiserror::Error)]
pub(super) enum TransportError {
    #[error(
        "V2 transport error: V1 peer with wrong MessageStart {}",
        faster_hex::hex_string(magic)
    )]
    WrongMagic { magic: [u8; 4] },
    #[error("V2 transport error: {fault}")]
    Garbage {
        #[from]
        fault: MissingTerminator,
    },
    #[error("V2 transport error: packet too large ({length} bytes)")]
    TooLong { length: usize },
    #[error("V2 transport error: {fault} ({length} bytes)")]
    Packet { length: usize, fault: Undecryptable },
}

pub(super) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}
