//! `assay node`.

use assay_node::{IndexOptions, NodeConfig};

use super::mebibytes;
use crate::Outcome;
use crate::cli::NodeArguments;

pub(crate) fn run(arguments: NodeArguments) -> anyhow::Result<Outcome> {
    let mut config = NodeConfig::new(&arguments.chain, arguments.datadir)?;
    if let Some(address) = arguments.rpc {
        config.rpc.bind = vec![address];
    }
    config.rpc.allow = arguments.rpc_allow;
    config.rpc.password = arguments.rpc_user.zip(arguments.rpc_password);
    config.rpc.auth = arguments.rpc_auth;
    config.rpc.limits.body_bytes_max = mebibytes("--rpc-max-body", arguments.rpc_max_body)?;
    config.cache_bytes_max =
        arguments.db_cache.map(|count| mebibytes("--db-cache", count)).transpose()?;
    config.mempool_bytes_max =
        arguments.max_mempool.map(|megabytes| megabytes.saturating_mul(1_000_000));
    config.threads = (arguments.par > 0).then_some(arguments.par);
    config.min_relay_fee_sat_per_kvb = arguments.min_relay_fee;
    if arguments.index {
        let memory = arguments.index_memory;
        let memory_bytes_max =
            memory.map(|count| mebibytes("--index-memory", count)).transpose()?;
        config.index = Some(IndexOptions { memory_bytes_max });
    }
    config.persist_mempool = arguments.persist_mempool && !arguments.no_persist_mempool;
    if let Some(log) = &mut config.log {
        log.stdout = arguments.print_to_console;
    }
    assay_node::run(&config)?;
    Ok(Outcome::Good)
}
