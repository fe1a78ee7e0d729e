//! `loadtxoutset` and `getchainstates`.

use std::fs::File;
use std::io::{BufReader, ErrorKind};
use std::path::Path;

use assay_consensus::params::ChainParams;
use assay_engine::{ChainState, LoadError, SnapshotError, SnapshotHeader, SnapshotReader};

use super::chain::{difficulty, historical_progress, progress, target};
use super::dump::KEYS;
use super::method::Call;
use crate::jsonrpc::{Code, Json, RpcError};

pub(super) const LOADTXOUTSET: Call = |node, args, out| {
    let path = node.engine.config().datadir.join(&*args.string(0)?);
    let file = File::open(&path).map_err(|_| {
        let text = format!("Couldn't open file {} for reading.", path.display());
        RpcError::new(Code::InvalidParameter, text)
    })?;
    let reader = SnapshotReader::new(BufReader::new(file), KEYS).map_err(|error| {
        let text = match &error {
            SnapshotError::Io(error) if error.kind() == ErrorKind::UnexpectedEof => {
                "AutoFile::read: end of file".to_owned()
            }
            error => error.to_string(),
        };
        unparsable(&text, &path, error.offset())
    })?;
    check_network(&node.rpc.params, reader.header().magic, &path)?;
    let coins = reader.header().coins;
    let goes_on = || !node.context.interrupted();
    let base =
        node.engine.chain().load_snapshot(reader, &goes_on).map_err(|error| match error {
            LoadError::Engine(error) => error.into(),
            error => {
                // Core's wording and the file, plus the position in it, which Core omits.
                let place = error.place().map_or(String::new(), |place| format!(", {place}"));
                let text =
                    format!("Unable to load UTXO snapshot: {error}. ({}{place})", path.display());
                RpcError::new(Code::InternalError, text)
            }
        })?;
    let mut object = Json::new(out).object();
    object.key("coins_loaded").int(coins);
    object.key("tip_hash").text(base.hash);
    object.key("base_height").int(base.height);
    object.key("path").string(&path.to_string_lossy());
    Ok(())
};

pub(super) const GETCHAINSTATES: Call = |node, _, out| {
    let base = node.engine.chain().historical().map(|chain| chain.base);
    let mut object = Json::new(out).object();
    object.key("headers").int(node.engine.chain().header_height());
    let mut list = object.key("chainstates").array();
    let states = node.engine.chain().states();
    let count = states.len();
    for (index, ChainState { tip, snapshot, is_validated, tier_cache_bytes, cache_bytes }) in
        states.into_iter().enumerate()
    {
        let share = match base.filter(|_| index + 1 < count) {
            Some(base) => historical_progress(&tip, &base),
            None => progress(node, &tip),
        };
        let mut object = list.item().object();
        object.key("blocks").int(tip.height);
        object.key("bestblockhash").text(tip.hash);
        object.key("bits").text(format_args!("{:08x}", tip.bits));
        object.key("target").text(target(tip.bits));
        object.key("difficulty").real(difficulty(tip.bits));
        object.key("verificationprogress").real(share);
        object.key("coins_db_cache_bytes").int(tier_cache_bytes as u64);
        object.key("coins_tip_cache_bytes").int(cache_bytes as u64);
        if let Some(snapshot) = snapshot {
            object.key("snapshot_blockhash").text(snapshot);
        }
        object.key("validated").bool(is_validated);
    }
    Ok(())
};

fn unparsable(text: &str, path: &Path, offset: Option<u64>) -> RpcError {
    let place = offset.map_or(String::new(), |offset| format!(", byte offset {offset}"));
    let text = format!("Unable to parse metadata: {text} ({}{place})", path.display());
    RpcError::new(Code::Deserialization, text)
}

/// Core's wording (`node/utxo_snapshot.h`).
fn check_network(params: &ChainParams, magic: [u8; 4], path: &Path) -> Result<(), RpcError> {
    if magic == params.magic {
        return Ok(());
    }
    let known = ChainParams::NAMES.into_iter().filter_map(ChainParams::by_name);
    let text = match known.into_iter().find(|known| known.magic == magic) {
        Some(known) => format!(
            "The network of the snapshot ({}) does not match the network of this node ({}).",
            known.rpc_name, params.rpc_name
        ),
        None => "This snapshot has been created for an unrecognized network. This could be a custom signet, a new testnet or \
                 possibly caused by data corruption."
            .to_owned(),
    };
    Err(unparsable(&text, path, Some(SnapshotHeader::MAGIC_OFFSET)))
}
