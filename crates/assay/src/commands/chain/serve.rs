//! `assay chain serve`: the chain of a ledger, given to peers.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context, ensure};
use assay_engine::{BlockHash, ChainParams};
use assay_forge::{BlockLine, Ledger};
use assay_node::{BlockArchive, ServeConfig, serve_blocks};
use assay_stats::BlockSet;
use serde::Serialize;

use crate::cli::ServeChainArguments;
use crate::commands::stop_flag;
use crate::output;

/// What `--json` prints once peers can connect.
#[derive(Serialize)]
struct Up<'a> {
    schema: u32,
    address: SocketAddr,
    chain: &'a str,
    height: u32,
    tip: &'a str,
}

pub(super) fn run(arguments: &ServeChainArguments) -> anyhow::Result<()> {
    let ledger = Ledger::read(&arguments.folder)?;
    let params = crate::commands::chain(&ledger.chain.chain)?;
    let address = arguments.p2p.unwrap_or((Ipv4Addr::LOCALHOST, params.p2p_port).into());
    ensure!(
        address.ip().is_loopback(),
        "--p2p {address}: blocks are served on the loopback interface alone, such as 127.0.0.1:{}",
        address.port()
    );
    let archive = Arc::new(Files { set: open(arguments, &ledger, Arc::clone(&params))? });
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
            let up = Up { schema: 1, address, chain, height, tip: &tip.hash };
            serde_json::to_string(&up)
                .context("cannot write JSON")
                .and_then(|line| output::print(&format!("{line}\n")))
        } else {
            output::complain(&format!("serving {chain} up to height {height} on {address}"));
            Ok(())
        };
    })
    .with_context(|| format!("cannot listen on {address}"))?;
    said
}

/// The blocks of a ledger; forged ones lie in the folder of the ledger.
fn open(
    arguments: &ServeChainArguments,
    ledger: &Ledger,
    params: Arc<ChainParams>,
) -> anyhow::Result<BlockSet> {
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
    Ok(BlockSet::known(path, params, blocks.into_iter())?)
}

struct Files {
    set: BlockSet,
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
        read(self.set.read_into(height, raw))
    }
}

fn read<T>(found: Option<Result<T, assay_stats::ReadError>>) -> io::Result<T> {
    match found {
        Some(read) => read.map_err(io::Error::other),
        None => Err(io::Error::other("there is no block at this height")),
    }
}
