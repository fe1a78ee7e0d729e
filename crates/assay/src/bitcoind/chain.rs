//! Options that select a chain and its rules (Core `common/args.cpp`, `GetChainArg`; `chainparams.cpp`).

use anyhow::{anyhow, bail};
use assay_engine::{BlockHash, ChainParams, U256};

use super::numbers::hash;
use super::settings::{MAIN, Settings};

/// Core's names of its chains.
pub(crate) const NAMES: [&str; 5] = ["regtest", "signet", "test", "testnet4", MAIN];

/// Core's flags that select a chain.
pub(crate) const SWITCHES: [&str; 4] = ["regtest", "signet", "testnet", "testnet4"];

/// Name of the selected chain.
pub(crate) fn name(settings: &Settings) -> anyhow::Result<String> {
    // No section applies until the chain is known.
    let on: Vec<&str> = SWITCHES.into_iter().filter(|name| settings.chain_flag(name)).collect();
    let named = settings.text("chain");
    match (named, on.as_slice()) {
        (None, []) => Ok(MAIN.to_owned()),
        (None, ["testnet"]) => Ok("test".to_owned()),
        (None, [one]) => Ok((*one).to_owned()),
        (Some(name), []) => Ok(name),
        _ => bail!(
            "Invalid combination of -regtest, -signet, -testnet, -testnet4 and -chain. Can use at most one."
        ),
    }
}

/// True if Core supports this chain too.
pub(crate) fn is_known_to_core(params: &ChainParams) -> bool {
    NAMES.contains(&params.name)
}

/// Parameters of one of Core's chains, by Core's name.
pub(crate) fn known(name: &str) -> anyhow::Result<ChainParams> {
    let params = NAMES.contains(&name).then(|| ChainParams::by_name(name)).flatten();
    params.ok_or_else(|| anyhow!("Unknown chain {name}."))
}

/// Selects the chain and its section, and returns its parameters.
pub(crate) fn params(settings: &mut Settings) -> anyhow::Result<ChainParams> {
    let name = name(settings)?;
    let mut params = known(&name)?;
    settings.section = name;
    if params.name == "signet" {
        params = signet(settings)?.unwrap_or(params);
    }
    let heights = settings.list("testactivationheight");
    params = with_activation_heights(params, "-testactivationheight", &heights)?;
    let tests = settings.list("test");
    if params.name != "regtest" && !tests.is_empty() {
        bail!("-test=<option> can only be used with regtest");
    }
    params.pow.enforce_bip94 |= tests.iter().any(|option| option == "bip94");
    if let Some(work) = settings.text("minimumchainwork") {
        let bytes = hash(&work).ok_or_else(|| {
            anyhow!("Invalid minimum work specified ({work}), must be up to 64 hex digits")
        })?;
        params.minimum_chain_work = U256::from_le_bytes(&bytes);
    }
    if let Some(block) = settings.text("assumevalid") {
        let bytes = hash(&block).ok_or_else(|| {
            anyhow!(
                "Invalid assumevalid block hash specified ({block}), must be up to 64 hex digits (or 0 to disable)"
            )
        })?;
        params.assume_valid = BlockHash(bytes);
    }
    Ok(params)
}

fn signet(settings: &Settings) -> anyhow::Result<Option<ChainParams>> {
    let challenges = settings.list("signetchallenge");
    let challenge = match challenges.as_slice() {
        [] => return Ok(None),
        [challenge] => challenge,
        _ => bail!("-signetchallenge cannot be multiple values."),
    };
    let mut bytes = vec![0; challenge.len() / 2];
    faster_hex::hex_decode(challenge.as_bytes(), &mut bytes)
        .map_err(|_| anyhow!("-signetchallenge must be hex, not '{challenge}'."))?;
    Ok(Some(ChainParams::custom_signet(bytes)))
}

/// Sets the activation heights of soft forks, given as `name@height`.
pub(crate) fn with_activation_heights(
    params: ChainParams,
    option: &str,
    heights: &[String],
) -> anyhow::Result<ChainParams> {
    if params.name == MAIN && !heights.is_empty() {
        bail!("The {option} option may not be used on mainnet.");
    }
    heights.iter().try_fold(params, |params, height| with_height(params, option, height))
}

fn with_height(params: ChainParams, option: &str, text: &str) -> anyhow::Result<ChainParams> {
    let form = format!("for {option}=name@height.");
    let Some((name, height)) = text.split_once('@') else {
        bail!("Invalid format ({text}) {form}");
    };
    let number = height.parse::<i32>().ok().filter(|number| (0..i32::MAX).contains(number));
    let Some(number) = number else { bail!("Invalid height value ({text}) {form}") };
    let changed = params.with_activation_height(name, number.unsigned_abs());
    changed.ok_or_else(|| anyhow!("Invalid name ({text}) {form}"))
}
