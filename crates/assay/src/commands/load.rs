//! `assay load`.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use assay_forge::scripts::ScriptChoice;
use assay_lab::load::{
    FeedOptions, LeavingOptions, LoadOptions, Mix, Scripts, run as run_load, run_leaving,
};
use assay_lab::p2p::download::{self, P2pOptions};

use super::bench::software;
use super::chain::read_scripts;
use super::{hostile, stop_flag};
use crate::Outcome;
use crate::cli::{LoadArguments, LoadCommand, LoadElectrumArguments, LoadP2pArguments};
use crate::invocation::rerun;
use crate::output;

/// Default requests per second of a client that only has subscriptions.
const SUBSCRIBER_RATE: f64 = 1.0;

pub(crate) fn run(arguments: &LoadArguments) -> anyhow::Result<Outcome> {
    match &arguments.command {
        LoadCommand::Electrum(arguments) => electrum(arguments),
        LoadCommand::P2p(arguments) => p2p(arguments),
    }
}

fn p2p(arguments: &LoadP2pArguments) -> anyhow::Result<Outcome> {
    if let Some(peers) = arguments.hostile {
        return hostile::run(arguments, usize::from(peers));
    }
    let stop = stop_flag();
    let params = super::chain(&arguments.chain)?;
    let options = P2pOptions {
        address: arguments.address.clone().unwrap_or_default(),
        magic: params.magic,
        genesis: params.genesis_hash,
        block_bytes_max: params.block_bytes_max(),
        time: arguments.time,
        window: arguments.window,
        with_witnesses: !arguments.stripped,
    };
    let report = download::run(&options, &stop)?;
    output::print_as(arguments.json, &report, || report.text())?;
    Ok(Outcome::Good)
}

fn electrum(arguments: &LoadElectrumArguments) -> anyhow::Result<Outcome> {
    if let Some(subscriptions) = arguments.leaving {
        let (address, rounds) = (arguments.address.clone(), arguments.pairs as u32);
        let (software, rerun) = (software(), rerun());
        let options = LeavingOptions { address, subscriptions, rounds, software, rerun };
        return output::print_record(&run_leaving(&options, &stop_flag())?, arguments.json);
    }
    let options = options(arguments)?;
    let dir = arguments.chain_dir.as_deref();
    let ledger = dir.map(|dir| read_scripts(dir, ScriptChoice::default())).transpose()?;
    let expected = ledger.as_ref().map(|ledger| -> Scripts<'_> { Box::new(ledger.scripts()) });
    output::print_record(&run_load(&options, expected, &stop_flag())?, arguments.json)
}

fn options(arguments: &LoadElectrumArguments) -> anyhow::Result<LoadOptions> {
    let honest = arguments.clients as f64 * (1.0 - arguments.hostile);
    let rate = match (arguments.rate, arguments.mix) {
        (None, Mix::Subscribe) => Some(honest * SUBSCRIBER_RATE),
        (rate, _) => rate,
    };
    let read = |path: &Path| {
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
    };
    let feed = match (arguments.feed, &arguments.feed_cookie) {
        (Some(port), Some(cookie)) => Some(FeedOptions {
            port,
            credentials: read(cookie)?.trim().to_owned(),
            every: arguments.feed_every,
        }),
        _ => None,
    };
    let scripts = arguments.scripts.as_deref().map(read).transpose()?.unwrap_or_default();
    Ok(LoadOptions {
        address: arguments.address.clone(),
        tls: arguments.tls,
        clients: arguments.clients,
        mix: arguments.mix,
        seconds: arguments.time,
        subscriptions: arguments.subscriptions,
        rate,
        depth: arguments.depth,
        hostile: arguments.hostile,
        attacks: arguments.attacks.clone(),
        one_address: arguments.one_address,
        pairs: arguments.pairs,
        seed: arguments.seed,
        chain_dir: arguments.chain_dir.clone(),
        scripts: scripts.lines().map(script_hash).collect::<Result<_, _>>()?,
        feed,
        server_pid: arguments.server_pid,
        server_metrics: arguments.server_metrics.clone(),
        software: software(),
        rerun: rerun(),
    })
}

/// A script hash as in the protocol.
fn script_hash(line: &str) -> anyhow::Result<String> {
    let line = line.trim();
    if line.len() != 64 || !line.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        bail!("{line:?} is no script hash of 64 hexadecimal digits");
    }
    Ok(line.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_hashes_have_64_digits() {
        let hash = script_hash(&format!(" AB{}\n", "00".repeat(31))).expect("64 digits");
        assert_eq!(hash, format!("ab{}", "00".repeat(31)));
        for wrong in ["", "01", &"zz".repeat(32), &"é".repeat(32)] {
            assert!(script_hash(wrong).is_err(), "{wrong:?}");
        }
    }
}
