//! Options of block templates (Core `node/mining_args.cpp`).

use anyhow::bail;
use assay_engine::MiningConfig;

use super::numbers::not_negative;
use super::settings::Settings;

/// Configuration of block templates; `is_on_demand` for chains that mine blocks on demand.
pub(crate) fn config(
    settings: &Settings,
    defaults: MiningConfig,
    is_on_demand: bool,
) -> anyhow::Result<MiningConfig> {
    let weight_limit = defaults.weight_max;
    let mut config = defaults;
    if let Some(rate) = settings.fee_rate("blockmintxfee")? {
        config.min_fee_sat_per_kvb = rate;
    }
    let weight = |name| settings.int(name).map(not_negative);
    config.reserved_weight = weight("blockreservedweight").unwrap_or(config.reserved_weight);
    config.weight_max = weight("blockmaxweight").unwrap_or(weight_limit);
    config.print_fee_rates = settings.flag("printpriority") == Some(true);
    if is_on_demand {
        config.version = settings.int("blockversion").map(|version| version as i32);
    }
    let MiningConfig { reserved_weight, weight_max, .. } = config;
    if reserved_weight < RESERVED_WEIGHT_MIN {
        bail!(
            "-blockreservedweight ({reserved_weight}) is lower than minimum safety value of ({RESERVED_WEIGHT_MIN})"
        );
    }
    for (name, weight) in [("blockreservedweight", reserved_weight), ("blockmaxweight", weight_max)]
    {
        if weight > weight_limit {
            bail!("-{name} ({weight}) exceeds consensus maximum block weight ({weight_limit})");
        }
    }
    if reserved_weight > weight_max {
        bail!("-blockreservedweight ({reserved_weight}) exceeds -blockmaxweight ({weight_max})");
    }
    Ok(config)
}

/// Core's `MINIMUM_BLOCK_RESERVED_WEIGHT` (`policy/policy.h`).
const RESERVED_WEIGHT_MIN: u64 = 2000;

#[cfg(test)]
mod tests {
    use super::super::settings::tests::settings;
    use super::*;

    fn config_of(arguments: &[&str], is_on_demand: bool) -> Result<MiningConfig, String> {
        let settings = settings(arguments, "");
        let defaults = MiningConfig::new(4_000_000);
        config(&settings, defaults, is_on_demand).map_err(|error| error.to_string())
    }

    #[test]
    fn values() {
        assert_eq!(config_of(&[], true), Ok(MiningConfig::new(4_000_000)));
        let all = ["-blockmintxfee=0.00001", "-blockmaxweight=9000", "-blockversion=7"];
        let given = config_of(&all, true).unwrap();
        assert_eq!(
            (given.min_fee_sat_per_kvb, given.weight_max, given.version),
            (1000, 9000, Some(7))
        );
        assert_eq!(config_of(&all, false).unwrap().version, None, "for tests alone");
    }

    #[test]
    fn errors_are_those_of_core() {
        for (argument, expected) in [
            (
                "-blockreservedweight=1999",
                "-blockreservedweight (1999) is lower than minimum safety value of (2000)",
            ),
            (
                "-blockreservedweight=4000001",
                "-blockreservedweight (4000001) exceeds consensus maximum block weight (4000000)",
            ),
            (
                "-blockmaxweight=4000001",
                "-blockmaxweight (4000001) exceeds consensus maximum block weight (4000000)",
            ),
            ("-blockmaxweight=7999", "-blockreservedweight (8000) exceeds -blockmaxweight (7999)"),
            ("-blockmintxfee=x", "Invalid amount for -blockmintxfee=<amount>: 'x'"),
        ] {
            assert_eq!(config_of(&[argument], true), Err(expected.to_owned()));
        }
    }
}
