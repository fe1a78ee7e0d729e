//! `assay node`.

mod status;

use std::net::{Ipv4Addr, SocketAddr};

use assay_electrum::server;
use assay_node::{IndexOptions, NodeConfig, P2pConfig};

use self::status::Status;
use super::mebibytes;
use crate::Outcome;
use crate::cli::{NodeArguments, P2pArguments, ServeArguments};

pub(crate) fn run(arguments: NodeArguments) -> anyhow::Result<Outcome> {
    let mut config = NodeConfig::new(&arguments.chain, arguments.datadir)?;
    if let Some(address) = arguments.rpc {
        config.rpc.bind = vec![address];
    }
    if let Some(block) = arguments.assume_valid {
        std::sync::Arc::make_mut(&mut config.engine.params).assume_valid = block;
    }
    config.rpc.allow = arguments.rpc_allow;
    config.rpc.password = arguments.rpc_user.zip(arguments.rpc_password);
    config.rpc.auth = arguments.rpc_auth;
    config.rpc.rest = arguments.rest;
    config.rpc.limits.body_bytes_max = mebibytes("--rpc-max-body", arguments.rpc_max_body)?;
    let engine = &mut config.engine;
    if let Some(count) = arguments.db_cache {
        engine.cache_bytes_max = mebibytes("--db-cache", count)?;
    }
    if let Some(megabytes) = arguments.max_mempool {
        engine.mempool_bytes_max = megabytes.saturating_mul(1_000_000);
    }
    if arguments.par > 0 {
        engine.threads = arguments.par;
    }
    engine.min_relay_fee_sat_per_kvb =
        arguments.min_relay_fee.unwrap_or(engine.min_relay_fee_sat_per_kvb);
    engine.sample_signatures = arguments.sample_signatures;
    engine.exact_near_tip = arguments.exact_near_tip;
    engine.tip_age_max_s = arguments.max_tip_age.unwrap_or(engine.tip_age_max_s);
    engine.persist_mempool = arguments.persist_mempool && !arguments.no_persist_mempool;
    let server = server(&arguments.electrum, &config);
    if arguments.index || server.is_some() {
        let memory = arguments.index_memory;
        let memory_bytes_max =
            memory.map(|count| mebibytes("--index-memory", count)).transpose()?;
        config.index = Some(IndexOptions { memory_bytes_max, server });
    }
    config.p2p = p2p(&arguments.p2p, &config);
    if let Some(log) = &mut config.log {
        log.stdout = arguments.print_to_console;
    }
    config.metrics = arguments.metrics;
    // Log lines on the terminal would interleave with the status line.
    let shows_status = !arguments.print_to_console;
    assay_node::run_with(&config, |node| shows_status.then(|| Status::of(node)).flatten())?;
    Ok(Outcome::Good)
}

fn p2p(arguments: &P2pArguments, node: &NodeConfig) -> Option<P2pConfig> {
    let default = SocketAddr::from((Ipv4Addr::LOCALHOST, node.engine.params.p2p_port));
    let mut config = P2pConfig::new(arguments.p2p?.unwrap_or(default));
    config.expose = arguments.p2p_expose;
    config.connect = Some(arguments.connect.clone());
    config.peers_max = arguments.p2p_peers;
    config.whitelist.clone_from(&arguments.p2p_whitelist);
    config.rate = arguments.p2p_rate.map(|megabytes| (megabytes * 1e6).max(1.0) as u64);
    Some(config)
}

/// Configuration of the Electrum server; `None` if the flags name no address for it.
fn server(arguments: &ServeArguments, node: &NodeConfig) -> Option<server::Config> {
    let is_main = node.engine.params.name == "main";
    let addresses = |given: Option<Option<SocketAddr>>, main: u16, other: u16| -> Vec<SocketAddr> {
        let port = if is_main { main } else { other };
        let default = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        given.map(|address| address.unwrap_or(default)).into_iter().collect()
    };
    let tcp = addresses(arguments.electrum, 50001, 60001);
    let tls = addresses(arguments.electrum_tls, 50002, 60002);
    if tcp.is_empty() && tls.is_empty() && arguments.electrum_metrics.is_none() {
        return None;
    }
    let files = arguments.electrum_cert.clone().zip(arguments.electrum_key.clone());
    let certificate = match files {
        Some((certificate, key)) => server::Certificate::Files { certificate, key },
        None => server::Certificate::Own { directory: node.chain_dir() },
    };
    let mut defaults = server::Config::default();
    defaults.proxies.extend(&arguments.electrum_proxy);
    Some(server::Config {
        tcp,
        tls,
        certificate,
        metrics: arguments.electrum_metrics,
        expose: arguments.electrum_expose,
        banner: arguments.electrum_banner.clone().unwrap_or(defaults.banner),
        block_vsize: node.engine.params.block_vsize_max(),
        limits: server::Limits {
            units_per_second: arguments.electrum_rate,
            entries_max: arguments.electrum_entries,
            connections_max: arguments.electrum_clients,
            subscriptions_max: arguments.electrum_subscriptions,
            subscriptions_per_ip_max: arguments.electrum_per_address,
            ..defaults.limits
        },
        ..defaults
    })
}
