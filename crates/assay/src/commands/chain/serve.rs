//! `assay chain serve`: serves the chain of a ledger to peers.

use std::error::Error;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use anyhow::{Context, ensure};
use assay_engine::{BlockHash, ChainParams};
use assay_forge::{BlockLine, Ledger};
use assay_node::{BlockArchive, ServeConfig, serve_blocks};
use assay_stats::{BlockSet, listing_sha256};
use faster_hex::hex_string;
use serde_json::json;

use crate::cli::ServeChainArguments;
use crate::commands::stop_flag;
use crate::output;

pub(super) fn run(arguments: &ServeChainArguments) -> anyhow::Result<()> {
    let ledger = Ledger::read(&arguments.folder)?;
    let params = crate::commands::chain(&ledger.chain.chain)?;
    let address = arguments.p2p.unwrap_or((Ipv4Addr::LOCALHOST, params.p2p_port).into());
    ensure!(
        address.ip().is_loopback(),
        "--p2p {address}: blocks are served on the loopback interface alone, such as 127.0.0.1:{}",
        address.port()
    );
    let archive = Arc::new(open(arguments, &ledger, Arc::clone(&params))?);
    let config = ServeConfig {
        address,
        params: Arc::clone(&params),
        bytes_per_s: arguments.p2p_rate.map(|megabytes| (megabytes * 1e6).max(1.0) as u64),
    };
    let (stop, tip) = (stop_flag(), &ledger.tip);
    let mut said = Ok(());
    serve_blocks(archive, &config, &stop, |address| {
        let (chain, height) = (params.name, tip.height);
        said = if arguments.json {
            let up = json!({
                "schema": 1, "address": address, "chain": chain, "height": height, "tip": tip.hash,
            });
            output::print(&format!("{up}\n"))
        } else {
            output::complain(&format!("serving {chain} up to height {height} on {address}"));
            Ok(())
        };
    })
    .with_context(|| format!("cannot listen on {address}"))?;
    said
}

/// Opens the blocks of a ledger; forged blocks are in its folder.
pub(super) fn open(
    arguments: &ServeChainArguments,
    ledger: &Ledger,
    params: Arc<ChainParams>,
) -> anyhow::Result<Files> {
    let place = |block: &BlockLine| {
        let hash = block.hash.parse::<BlockHash>().ok()?;
        Some((hash, u32::try_from(block.bytes).ok()?))
    };
    let mut blocks = Vec::with_capacity(ledger.blocks.len());
    for (height, block) in (1..).zip(&ledger.blocks) {
        let (hash, bytes) = place(block).filter(|_| block.height == height).with_context(|| {
            format!("{}: the line of height {height} is damaged", arguments.folder.display())
        })?;
        let name = block.file.rsplit('/').next().unwrap_or_default();
        blocks.push((hash, name, block.offset, bytes));
    }
    let forged = arguments.folder.join("blocks");
    let path = ledger.chain.files.as_ref().map_or(&forged, |files| &files.path);
    // A ledger is made from complete blocks: they are checked again only if the files have changed.
    let is_checked = match &ledger.chain.files {
        Some(files) => files.listing_sha256 == hex_string(&listing_sha256(path, &params)?),
        None => true,
    };
    if !is_checked {
        output::complain(&format!(
            "{}: the block files have changed since their ledger was made; each block is checked as it is read",
            path.display()
        ));
    }
    Ok(Files { set: BlockSet::known(path, params, blocks.into_iter())?, is_checked })
}

/// Block source of the server.
pub(super) struct Files {
    set: BlockSet,
    /// True if the blocks were already checked.
    is_checked: bool,
}

impl BlockArchive for Files {
    fn tip(&self) -> u32 {
        self.set.heights().last
    }

    fn hash(&self, height: u32) -> BlockHash {
        self.set.hash(height).unwrap_or_default()
    }

    fn header(&self, height: u32) -> io::Result<[u8; 80]> {
        read(self.set.header(height))
    }

    fn read(&self, height: u32, raw: &mut Vec<u8>) -> io::Result<()> {
        if self.is_checked {
            read(self.set.read_into(height, raw))
        } else {
            read(self.set.read_checked(height, raw))
        }
    }
}

fn read<T, E: Into<Box<dyn Error + Send + Sync>>>(found: Option<Result<T, E>>) -> io::Result<T> {
    match found {
        Some(read) => read.map_err(io::Error::other),
        None => Err(io::Error::other("there is no block at this height")),
    }
}
