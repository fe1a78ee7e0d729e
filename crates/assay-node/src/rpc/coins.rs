//! RPC of unspent outputs.

use assay_engine::UNCONFIRMED_HEIGHT;
use assay_wire::{BlockHash, OutPoint};

use super::args::Args;
use super::method::{Kind, Method, Need, optional, required};
use super::script::write_script_pubkey;
use super::{Job, Node, Rpc, bad, engine_failed};
use crate::jsonrpc::{Json, RpcError};

pub(super) const GETTXOUT: Method = Method {
    name: "gettxout",
    category: "blockchain",
    about: "An unspent transaction output, or null when there is none.",
    args: &[
        required("txid", Kind::Text, "The transaction id"),
        required("n", Kind::Number, "The output's index"),
        optional(
            "include_mempool",
            Kind::Bool,
            Need::Default("true"),
            "Count unconfirmed transactions: their outputs exist, and what they spend is spent",
        ),
    ],
    result: "\
{                              (json object)
  \"bestblock\" : \"hex\",         (string) The tip this is true of
  \"confirmations\" : n,         (numeric) Confirmations; 0 when unconfirmed
  \"value\" : n,                 (numeric) The amount
  \"scriptPubKey\" : {           (json object)
    \"asm\" : \"str\",             (string) The script, disassembled
    \"desc\" : \"str\",            (string) A descriptor of the output
    \"hex\" : \"hex\",             (string) The script
    \"address\" : \"str\",         (string, optional) The address, if there is one
    \"type\" : \"str\"             (string) The type, such as pubkeyhash
  },
  \"coinbase\" : true|false      (boolean) Whether a coinbase made it
}",
    example: "\"txid\", 1",
    prepare: |_, args| {
        let txid = args.txid(0, "txid")?;
        let vout: u32 = args.integer(1)?;
        let include_mempool = args.bool_or(2, true)?;
        let outpoint = OutPoint { txid, vout };
        Ok(Job::call(args, move |node, out| coin(node, &outpoint, include_mempool, out)))
    },
};

pub(super) const GETTXOUTSETINFO: Method = Method {
    name: "gettxoutsetinfo",
    category: "blockchain",
    about: "Figures over all unspent outputs of the active chain. It reads the whole set, which may take a while.",
    args: &[
        optional(
            "hash_type",
            Kind::Text,
            Need::Default("hash_serialized_3"),
            "The hash of the set to compute: \"hash_serialized_3\", \"muhash\" or \"none\"",
        ),
        optional(
            "hash_or_height",
            Kind::HashOrHeight,
            Need::Optional,
            "Not available: figures are those of the tip",
        ),
        optional(
            "use_index",
            Kind::Bool,
            Need::Default("true"),
            "Without effect: there is no index",
        ),
    ],
    result: "\
{                            (json object)
  \"height\" : n,              (numeric) Height of the tip
  \"bestblock\" : \"hex\",       (string) Hash of the tip
  \"txouts\" : n,              (numeric) Number of unspent outputs
  \"bogosize\" : n,            (numeric) A measure of size that depends on no database
  \"hash_serialized_3\" : \"hex\", (string, optional) Hash over the set in its order
  \"muhash\" : \"hex\",          (string, optional) MuHash3072 of the set
  \"total_amount\" : n,        (numeric) Sum of all amounts
  \"transactions\" : n,        (numeric) Number of transactions with unspent outputs
  \"disk_size\" : n            (numeric) Bytes the set takes on disk
}",
    example: "\"muhash\"",
    prepare: set_info,
};

fn coin(
    node: &Node<'_>,
    outpoint: &OutPoint,
    include_mempool: bool,
    out: &mut Vec<u8>,
) -> Result<(), RpcError> {
    let found = node.engine.coin(outpoint, include_mempool);
    let Some((coin, tip)) = found.map_err(|error| engine_failed(&error))? else {
        Json::new(out).null();
        return Ok(());
    };
    let confirmations = match coin.height {
        UNCONFIRMED_HEIGHT => 0,
        height => i64::from(tip.height) - i64::from(height) + 1,
    };
    let mut object = Json::new(out).object();
    object.key("bestblock").text(tip.hash);
    object.key("confirmations").int(confirmations);
    object.key("value").amount(coin.value);
    let mut script = object.key("scriptPubKey").object();
    write_script_pubkey(&node.rpc.params, &coin.script_pubkey, &mut script);
    script.end();
    object.key("coinbase").bool(coin.coinbase);
    object.end();
    Ok(())
}

fn set_info(_: &Rpc, args: &Args<'_>) -> Result<Job, RpcError> {
    let (muhash, serialized) = match args.optional_string(0)?.as_deref() {
        None | Some("hash_serialized_3") => (false, true),
        Some("muhash") => (true, false),
        Some("none") => (false, false),
        Some(other) => return Err(bad(format!("'{other}' is not a valid hash_type"))),
    };
    if args.value(1).is_some() {
        return Err(bad("Querying specific block heights requires coinstatsindex"));
    }
    args.bool_or(2, true)?;
    Ok(Job::call(args, move |node, out| {
        let stats = if serialized {
            node.engine.utxo_stats_serialized()
        } else {
            node.engine.utxo_stats(muhash)
        };
        let stats = stats.map_err(|error| engine_failed(&error))?;
        let mut object = Json::new(out).object();
        object.key("height").int(stats.height);
        object.key("bestblock").text(stats.hash);
        object.key("txouts").int(stats.txouts);
        object.key("bogosize").int(stats.bogosize);
        if let Some(hash) = stats.hash_serialized {
            object.key("hash_serialized_3").text(BlockHash(hash));
        }
        if let Some(muhash) = stats.muhash {
            // Displayed like every 256-bit number: last byte first.
            object.key("muhash").text(BlockHash(muhash));
        }
        object.key("total_amount").amount(stats.total_amount_sat.cast_signed());
        object.key("transactions").int(stats.transactions);
        object.key("disk_size").int(stats.disk_size);
        object.end();
        Ok(())
    }))
}
