//! RPC of unspent outputs.

use assay_engine::UNCONFIRMED_HEIGHT;
use assay_wire::{BlockHash, OutPoint};

use super::bad;
use super::method::Call;
use super::script::write_script_pubkey;
use crate::jsonrpc::Json;

pub(super) const GETTXOUT: Call = |node, args, out| {
    let txid = args.txid(0, "txid")?;
    let vout: u32 = args.integer(1)?;
    let include_mempool = args.bool_or(2, true)?;
    let outpoint = OutPoint { txid, vout };
    let Some((coin, tip)) = node.engine.chain().coin(&outpoint, include_mempool)? else {
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
    Ok(())
};

pub(super) const GETTXOUTSETINFO: Call = |node, args, out| {
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
    let stats = if serialized {
        node.engine.chain().utxo_stats_serialized()?
    } else {
        node.engine.chain().utxo_stats(muhash)?
    };
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
    Ok(())
};
