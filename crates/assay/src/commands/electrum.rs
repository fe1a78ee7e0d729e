//! `assay electrum`.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::bail;
use assay_forge::scripts::ScriptChoice;
use assay_lab::electrum::check::compare;
use assay_lab::electrum::{Client, ElectrumError, HeaderTip};
use faster_hex::hex_string;
use serde_json::json;

use super::chain::read_scripts;
use crate::Outcome;
use crate::bar::Bar;
use crate::cli::{ElectrumArguments, ElectrumCheckArguments, ElectrumCommand};
use crate::output;

const ANSWER_TIMEOUT: Duration = Duration::from_mins(10);
/// Polling interval for a server that is behind.
const LOOK_PERIOD: Duration = Duration::from_millis(200);

pub(crate) fn run(arguments: &ElectrumArguments) -> anyhow::Result<Outcome> {
    match &arguments.command {
        ElectrumCommand::Check(arguments) => check(arguments),
    }
}

fn check(arguments: &ElectrumCheckArguments) -> anyhow::Result<Outcome> {
    let choice = ScriptChoice {
        scripts_max: arguments.sample,
        seed: arguments.seed,
        ..ScriptChoice::default()
    };
    let ledger = read_scripts(&arguments.chain_dir, choice)?;
    let mut client = Client::connect(arguments.address, ANSWER_TIMEOUT)?;
    let server = client.hello()?;
    let wanted = HeaderTip { hex: hex_string(&ledger.tip_header), height: ledger.tip_height };
    wait_for_tip(&mut client, &wanted, Duration::from_secs(arguments.wait))?;
    let (bar, scripts) = (
        Bar::new("comparing [{bar:25}] {human_pos}/{human_len} scripts  {per_sec}  ETA {eta}"),
        ledger.len() as u64,
    );
    let expected = ledger.scripts().map(Ok);
    let compared = compare(&mut client, expected, ledger.tip_height, &mut |done| {
        bar.set(done, scripts);
        true
    });
    drop(bar);
    let mut check = compared?;
    check.scripts_total = ledger.scripts_total;
    check.sample_seed = ledger.sample_seed();
    let (server, protocol, height) = (&server.software, &server.protocol, ledger.tip_height);
    if arguments.json {
        output::print_json(&json!({
            "schema": 1, "server": server, "protocol": protocol, "height": height, "check": check,
        }))?;
    } else {
        let mut text =
            format!("{server}, protocol {protocol}, height {height}\n{}", check.summary());
        // Writing to a string cannot fail.
        let _ = writeln!(text, ", {:.1} s", check.seconds);
        for told in &check.told {
            let _ = writeln!(text, "  {told}");
        }
        output::print(&text)?;
    }
    Ok(if check.is_good() { Outcome::Good } else { Outcome::Negative })
}

/// Waits until the server's tip is the chain's.
fn wait_for_tip(client: &mut Client, wanted: &HeaderTip, wait: Duration) -> anyhow::Result<()> {
    let start = Instant::now();
    loop {
        let tip = match client.subscribe_headers() {
            // A freshly started server may have no block yet.
            Err(ElectrumError::Refused { .. }) if start.elapsed() < wait => {
                std::thread::sleep(LOOK_PERIOD);
                continue;
            }
            tip => tip?,
        };
        if tip.height == wanted.height && tip.hex.eq_ignore_ascii_case(&wanted.hex) {
            return Ok(());
        }
        if tip.height >= wanted.height || start.elapsed() >= wait {
            bail!(
                "the server is at height {}, header {}; the chain ends at height {}, header {}",
                tip.height,
                tip.hex,
                wanted.height,
                wanted.hex
            );
        }
        std::thread::sleep(LOOK_PERIOD);
    }
}
