//! `savemempool` and `importmempool`.

use std::path::PathBuf;

use assay_engine::MempoolImport;

use super::method::Call;
use crate::jsonrpc::{Code, Json, RpcError};

pub(super) const SAVEMEMPOOL: Call = |node, _, out| {
    let failed = |text: &'static str| RpcError::new(Code::Misc, text);
    if !node.engine.mempool().is_loaded() {
        return Err(failed("The mempool was not loaded yet"));
    }
    let path = node.engine.mempool().save().map_err(|error| {
        tracing::error!("RPC call failed: {error}");
        failed("Unable to dump mempool to disk")
    })?;
    let mut object = Json::new(out).object();
    object.key("filename").string(&path.to_string_lossy());
    Ok(())
};

pub(super) const IMPORTMEMPOOL: Call = |node, args, out| {
    let path = PathBuf::from(args.string(0)?.into_owned());
    let use_current_time = args.option_or(1, "use_current_time", true)?;
    let apply_fee_deltas = args.option_or(1, "apply_fee_delta_priority", false)?;
    let apply_unbroadcast = args.option_or(1, "apply_unbroadcast_set", false)?;
    let import = MempoolImport { use_current_time, apply_fee_deltas, apply_unbroadcast };
    if node.engine.chain().is_initial_block_download() {
        let text = "Can only import the mempool after the block download and sync is done.";
        return Err(RpcError::new(Code::ClientInInitialDownload, text));
    }
    let failed = "Unable to import mempool file, see debug log for details.";
    let failed = || RpcError::new(Code::Misc, failed);
    let load = node.engine.mempool().import(&path, import);
    let load = load.map_err(|error| {
        tracing::error!("RPC call failed: {error}");
        failed()
    })?;
    if load.damage.is_some() || load.is_interrupted {
        return Err(failed());
    }
    Json::new(out).object().end();
    Ok(())
};
