//! `assay electrum`.

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use anyhow::bail;
use assay_forge::ledger::scripts::ScriptLine;
use assay_forge::scripts::ScriptChoice;
use assay_lab::electrum::check::{LedgerCheck, compare};
use assay_lab::electrum::{Client, ElectrumError, HeaderTip};
use faster_hex::hex_string;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use super::chain::read_scripts;
use crate::Outcome;
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

/// Output of `--json`.
#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    server: &'a str,
    protocol: &'a str,
    height: u32,
    check: &'a LedgerCheck,
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
    let bar = bar(ledger.len() as u64);
    let expected = ledger.scripts().map(|script| Ok(ScriptLine::from(&script)));
    let compared = compare(&mut client, expected, ledger.tip_height, &mut |done| {
        bar.set_position(done);
        true
    });
    bar.finish_and_clear();
    let mut check = compared?;
    check.scripts_total = ledger.scripts_total;
    check.sample_seed = ledger.sample_seed();
    if arguments.json {
        let (server, protocol) = (&server.software, &server.protocol);
        let height = ledger.tip_height;
        output::print_json(&Report { schema: 1, server, protocol, height, check: &check })?;
    } else {
        let (server, protocol, height) = (&server.software, &server.protocol, ledger.tip_height);
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

fn bar(length: u64) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr_with_hz(10)
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(length), target);
    let style = ProgressStyle::with_template(
        "comparing    [{bar:30}] {human_pos}/{human_len} scripts  {per_sec}  ETA {eta}",
    );
    if let Ok(style) = style {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}
