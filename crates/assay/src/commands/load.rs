//! `assay load`.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use assay_bench::p2p::P2pOptions;
use assay_forge::scripts::{ScriptChoice, ScriptLedger};
use assay_lab::load::{
    Attack, Expected, ExpectedCoin, ExpectedScript, ExpectedTx, FeedOptions, LeavingOptions,
    LoadError, LoadOptions, Mix, run as run_load, run_leaving,
};

use super::{hostile, stop_flag};
use crate::Outcome;
use crate::cli::{
    AttackArgument, LoadArguments, LoadCommand, LoadElectrumArguments, LoadP2pArguments,
    MixArgument,
};
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
    let options = P2pOptions {
        address: arguments.address.clone().unwrap_or_default(),
        chain: arguments.chain.clone(),
        time: arguments.time,
        window: arguments.window,
        with_witnesses: !arguments.stripped,
    };
    let report = assay_bench::p2p::run(&options, &stop)?;
    output::print_as(arguments.json, &report, || report.text())?;
    Ok(Outcome::Good)
}

fn electrum(arguments: &LoadElectrumArguments) -> anyhow::Result<Outcome> {
    if let Some(subscriptions) = arguments.leaving {
        return leaving(arguments, subscriptions);
    }
    let options = options(arguments)?;
    let expected = arguments.chain_dir.as_deref().map(Ledger::read).transpose()?;
    let expected = expected.as_ref().map(|ledger| ledger as &dyn Expected);
    let stop = stop_flag();
    let report = match run_load(&options, expected, &stop) {
        Err(LoadError::Stopped) => return Ok(Outcome::Interrupted),
        other => other?,
    };
    output::print_as(arguments.json, &report, || report.text())?;
    Ok(if report.is_good() { Outcome::Good } else { Outcome::Negative })
}

fn leaving(arguments: &LoadElectrumArguments, subscriptions: usize) -> anyhow::Result<Outcome> {
    let (address, rounds) = (arguments.address.clone(), arguments.pairs);
    let options = LeavingOptions { address, subscriptions, rounds };
    let report = match run_leaving(&options, &stop_flag()) {
        Err(LoadError::Stopped) => return Ok(Outcome::Interrupted),
        other => other?,
    };
    output::print_as(arguments.json, &report, || report.text())?;
    Ok(Outcome::Good)
}

fn attack(argument: AttackArgument) -> Attack {
    match argument {
        AttackArgument::Oversized => Attack::Oversized,
        AttackArgument::Garbage => Attack::Garbage,
        AttackArgument::Deaf => Attack::Deaf,
        AttackArgument::Flood => Attack::Flood,
        AttackArgument::HalfOpen => Attack::HalfOpen,
        AttackArgument::Churn => Attack::Churn,
        AttackArgument::Nesting => Attack::Nesting,
        AttackArgument::Batch => Attack::Batch,
        AttackArgument::Outpoints => Attack::Outpoints,
        AttackArgument::Reconnect => Attack::Reconnect,
    }
}

fn options(arguments: &LoadElectrumArguments) -> anyhow::Result<LoadOptions> {
    let mix = match arguments.mix {
        MixArgument::Wallet => Mix::Wallet,
        MixArgument::Heavy => Mix::Heavy,
        MixArgument::Subscribe => Mix::Subscribe,
    };
    let honest = arguments.clients as f64 * (1.0 - arguments.hostile);
    let rate = match (arguments.rate, mix) {
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
        mix,
        seconds: arguments.time,
        subscriptions: arguments.subscriptions,
        rate,
        depth: arguments.depth,
        hostile: arguments.hostile,
        attacks: arguments.attacks.iter().copied().map(attack).collect(),
        one_address: arguments.one_address,
        pairs: arguments.pairs,
        seed: arguments.seed,
        chain_dir: arguments.chain_dir.clone(),
        scripts: scripts.lines().map(script_hash).collect::<Result<_, _>>()?,
        feed,
        server_pid: arguments.server_pid,
        server_metrics: arguments.server_metrics.clone(),
        assay_version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// Electrum prints a script hash in reverse byte order.
fn script_hash(line: &str) -> anyhow::Result<[u8; 32]> {
    let line = line.trim();
    if line.len() != 64 || !line.is_ascii() {
        bail!("{line:?} is no script hash of 64 hexadecimal digits");
    }
    let mut hash = [0; 32];
    for (index, byte) in hash.iter_mut().rev().enumerate() {
        *byte = u8::from_str_radix(&line[2 * index..2 * index + 2], 16)
            .with_context(|| format!("{line:?} is no script hash"))?;
    }
    Ok(hash)
}

/// The forge's script ledger, adapted to the interface of the lab.
struct Ledger(ScriptLedger);

impl Ledger {
    fn read(dir: &Path) -> anyhow::Result<Self> {
        output::complain(&format!("reading the scripts of {}", dir.display()));
        let ledger = ScriptLedger::read(dir, ScriptChoice::default(), &mut |_, _| true)?;
        Ok(Self(ledger))
    }
}

impl Expected for Ledger {
    fn scripts(&self) -> Box<dyn Iterator<Item = ExpectedScript> + '_> {
        let tx = |height, txid| ExpectedTx { height, txid };
        Box::new(self.0.scripts().map(move |script| {
            ExpectedScript {
                hash: script.script_hash,
                history: script
                    .history
                    .iter()
                    .map(|entry| tx(entry.height, entry.txid.0))
                    .collect(),
                coins: script
                    .coins
                    .iter()
                    .map(|coin| ExpectedCoin {
                        tx: tx(coin.tx.height, coin.tx.txid.0),
                        vout: coin.vout,
                        value: coin.value,
                        spent: coin.spent,
                    })
                    .collect(),
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_hashes_are_written_in_reverse() {
        let hash = script_hash(&format!(" 01{}\n", "00".repeat(31))).expect("64 digits");
        assert_eq!((hash[31], hash[0]), (1, 0));
        for wrong in ["", "01", &"zz".repeat(32), &"é".repeat(32)] {
            assert!(script_hash(wrong).is_err(), "{wrong:?}");
        }
    }
}
