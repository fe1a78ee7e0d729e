//! `dumptxoutset`: writes the UTXO set in the format of Bitcoin Core's `loadtxoutset`.

use std::fs::{self, File, OpenOptions};
use std::io::BufWriter;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use assay_engine::{DumpError, KeyForms};
use assay_wire::BlockHash;
use secp256k1::PublicKey;

use super::method::Call;
use super::statistics::{Which, find};
use super::{Node, bad};
use crate::jsonrpc::{Code, Json, RpcError, Value};

enum Target {
    Tip,
    Block(Which),
}

pub(super) const DUMPTXOUTSET: Call = |node, args, out| {
    let path = PathBuf::from(args.string(0)?.into_owned());
    let kind = args.optional_string(1)?.unwrap_or_default();
    args.option_or(2, "in_memory", false)?;
    let rollback = args.option(2, "rollback");
    let target = match (rollback, kind.as_ref()) {
        (Some(block), "" | "rollback") => Target::Block(which(block)?),
        (Some(_), kind) => {
            return Err(bad(format!(
                "Invalid snapshot type \"{kind}\" specified with rollback option"
            )));
        }
        (None, "rollback") => {
            let height = node.rpc.params.assume_utxo.last().map(|known| known.height);
            let height = height.and_then(|height| i32::try_from(height).ok()).ok_or_else(|| {
                RpcError::new(Code::InternalError, "no snapshot can be loaded on this chain")
            })?;
            Target::Block(Which::Height(height))
        }
        (None, "latest") => Target::Tip,
        (None, kind) => {
            return Err(bad(format!(
                "Invalid snapshot type \"{kind}\" specified. Please specify \"rollback\" or \"latest\""
            )));
        }
    };
    dump(node, &path, &target, out)
};

fn which(value: Value<'_>) -> Result<Which, RpcError> {
    Which::of(value, "hash_or_height")
}

fn dump(node: &Node<'_>, path: &Path, target: &Target, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let hash = match target {
        Target::Tip => node.engine.chain().tip().hash,
        Target::Block(which) => find(node, which)?.hash,
    };
    let path = node.engine.config().datadir.join(path);
    let found = fs::metadata(&path).ok();
    // A pipe receives the coins as they are written.
    let is_pipe = found.as_ref().is_some_and(|found| found.file_type().is_fifo());
    if found.is_some() && !is_pipe {
        return Err(bad(format!(
            "{} already exists. If you are sure this is what you want, move it out of the way first",
            path.display()
        )));
    }
    let mut incomplete = path.clone().into_os_string();
    if !is_pipe {
        incomplete.push(".incomplete");
    }
    let incomplete = PathBuf::from(incomplete);
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(&incomplete);
    let file =
        file.map_err(|_| bad(format!("Couldn't open file {} for writing.", incomplete.display())))?;
    let written = write(node, &hash, file, out, &path);
    if is_pipe {
        return written;
    }
    let renamed = written.and_then(|()| {
        fs::rename(&incomplete, &path).map_err(|error| {
            let text = format!("cannot rename {}: {error}", incomplete.display());
            RpcError::new(Code::Misc, text)
        })
    });
    if renamed.is_err() {
        // Best effort.
        let _ = fs::remove_file(&incomplete);
    }
    renamed
}

fn write(
    node: &Node<'_>,
    hash: &BlockHash,
    file: File,
    out: &mut Vec<u8>,
    path: &Path,
) -> Result<(), RpcError> {
    let goes_on = || !node.context.interrupted();
    let coins = node.engine.chain().coins_at(hash, &goes_on).map_err(failed)?;
    let file = coins.write(BufWriter::new(file), KEYS, &goes_on).map_err(failed)?;
    let file = file.into_inner().map_err(|error| failed(DumpError::Write(error.into_error())))?;
    file.sync_all()
        .or_else(|error| {
            // A pipe cannot be synced.
            if error.kind() == std::io::ErrorKind::InvalidInput { Ok(()) } else { Err(error) }
        })
        .map_err(|error| failed(DumpError::Write(error)))?;
    let mut object = Json::new(out).object();
    object.key("coins_written").int(coins.count);
    object.key("base_hash").text(coins.block.hash);
    object.key("base_height").int(coins.block.height);
    object.key("path").string(&path.to_string_lossy());
    object.key("txoutset_hash").text(BlockHash(coins.hash));
    object.key("nchaintx").int(coins.block.chain_txs);
    Ok(())
}

fn failed(error: DumpError) -> RpcError {
    match error {
        DumpError::Engine(error) => error.into(),
        error @ DumpError::Pruned => RpcError::new(Code::Misc, error.to_string()),
        error => RpcError::new(Code::InternalError, error.to_string()),
    }
}

/// Key compression with libsecp256k1.
pub const KEYS: KeyForms = KeyForms {
    is_point: |key| PublicKey::from_slice(key).is_ok(),
    expand: |key| PublicKey::from_slice(key).ok().map(|key| key.serialize_uncompressed()),
};
