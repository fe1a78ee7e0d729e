//! `loadtxoutset` and `getchainstates`.

use std::fs::File;
use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};

use assay_consensus::params::ChainParams;
use assay_engine::{ChainState, LoadError, SnapshotError, SnapshotHeader, SnapshotReader};

use super::chain::{difficulty, historical_progress, progress, target};
use super::dump::KEYS;
use super::method::{Kind, Method, required};
use super::{Job, Node, engine_failed};
use crate::jsonrpc::{Code, Json, RpcError};

pub(super) const LOADTXOUTSET: Method = Method {
    name: "loadtxoutset",
    category: "blockchain",
    about: "Loads the UTXO set of a block from a file and goes on from that block; the blocks below it are validated meanwhile. \
            Only sets whose hash the program knows are loaded, and the headers up to the block must be there. It takes long: \
            give the client no timeout.",
    args: &[required("path", Kind::Text, "The file, relative to the chain's folder")],
    result: "\
{                          (json object)
  \"coins_loaded\" : n,      (numeric) Number of coins
  \"tip_hash\" : \"hex\",      (string) The block
  \"base_height\" : n,       (numeric) Its height
  \"path\" : \"str\"          (string) The file, with its folder
}",
    example: "\"utxo.dat\"",
    prepare: |_, args| {
        let path = PathBuf::from(args.string(0)?.into_owned());
        Ok(Job::call(args, move |node, out| load(node, &path, out)))
    },
};

pub(super) const GETCHAINSTATES: Method = Method {
    name: "getchainstates",
    category: "blockchain",
    about: "The chains that the node keeps coins for: one, or two while blocks below a snapshot are validated.",
    args: &[],
    result: "\
{                                        (json object)
  \"headers\" : n,                         (numeric) Height of the valid header with the most work
  \"chainstates\" : [                      (json array) The chains, the one with the most work last
    {                                    (json object)
      \"blocks\" : n,                      (numeric) Height of its tip
      \"bestblockhash\" : \"hex\",           (string) Hash of its tip
      \"bits\" : \"hex\",                    (string) Target of its tip in compact form
      \"target\" : \"hex\",                  (string) The target
      \"difficulty\" : n,                  (numeric) Difficulty of its tip
      \"verificationprogress\" : n,        (numeric) Share of the way to where it goes, 0 to 1
      \"snapshot_blockhash\" : \"hex\",      (string, optional) The block whose coins it began with
      \"coins_db_cache_bytes\" : n,        (numeric) Memory for the files of its coins
      \"coins_tip_cache_bytes\" : n,       (numeric) Memory for its coins
      \"validated\" : true|false           (boolean) Whether all of it has been validated
    }, ...
  ]
}",
    example: "",
    prepare: |_, args| Ok(Job::call(args, chain_states)),
};

fn load(node: &Node<'_>, path: &Path, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let path = node.engine.config().datadir.join(path);
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
    let base = node.engine.load_snapshot(reader, &goes_on).map_err(|error| match error {
        LoadError::Engine(error) => engine_failed(&error),
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
    object.end();
    Ok(())
}

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

#[expect(clippy::unnecessary_wraps, reason = "the shape of every call")]
fn chain_states(node: &Node<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let base = node.engine.historical_chain().map(|chain| chain.base);
    let mut object = Json::new(out).object();
    object.key("headers").int(node.engine.header_height());
    let mut list = object.key("chainstates").array();
    let states = node.engine.chain_states();
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
        object.end();
    }
    list.end();
    object.end();
    Ok(())
}
