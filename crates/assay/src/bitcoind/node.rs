//! Conversion of settings to the configuration of a node (Core `init.cpp`,
//! `AppInitParameterInteraction` and its callees).

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::thread::available_parallelism;

use anyhow::{anyhow, bail};
use assay_engine::{ChainCheck, Obfuscation, Pruning, XorKey};
use assay_node::http::Whitelist;
use assay_node::{HIGH_WATER_MARK_DEFAULT, LogConfig, NodeConfig, Notify, Publication, Topic};

use super::config::Loaded;
use super::logging;
use super::mining;
use super::notes::Notes;
use super::numbers::{bind_address, not_negative, seconds_of, subnet};
use super::options::{self, Fate};
use super::p2p;
use super::settings::{MAIN, Settings};

pub(crate) fn config(loaded: &mut Loaded, notes: &mut Notes) -> anyhow::Result<NodeConfig> {
    reject_misplaced(&loaded.settings)?;
    look_up_fates(&loaded.settings, notes)?;
    imply(&mut loaded.settings, notes)?;
    let settings = &loaded.settings;
    let mut config = NodeConfig::new(loaded.params.name, &loaded.datadir)?;
    config.engine.params = loaded.params.clone();
    if loaded.params.name == "signet" {
        let magic = faster_hex::hex_string(&loaded.params.magic);
        notes.info(format!("Signet derived magic (message start): {magic}"));
    }
    config.log = Some(logging::config(settings, notes)?);
    engine(settings, &mut config)?;
    mempool(settings, &mut config)?;
    let is_on_demand = config.engine.params.pow.no_retargeting;
    config.engine.mining = mining::config(settings, config.engine.mining, is_on_demand)?;
    rpc(settings, &mut config, notes)?;
    config.p2p = Some(p2p::config(settings, &config, notes)?);
    config.zmq = zmq(settings);
    config.metrics = metrics(settings)?;
    if let Some(path) = path(settings, "pid") {
        config.pid_file = path;
    }
    Ok(config)
}

/// Adds the log lines to a finished configuration; returns the lines for standard error.
pub(crate) fn log_first(config: &mut NodeConfig, notes: Notes) -> Vec<String> {
    let (lines, printed) = notes.into_parts();
    config.log.get_or_insert_with(LogConfig::default).first_lines = lines;
    printed
}

fn metrics(settings: &Settings) -> anyhow::Result<Option<SocketAddr>> {
    let Some(text) = settings.text("metrics").filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let address = text.parse::<SocketAddr>().ok().filter(|address| address.ip().is_loopback());
    let failed = || {
        anyhow!(
            "Invalid -metrics address '{text}': it must be of this machine, like 127.0.0.1:9332"
        )
    };
    address.map(Some).ok_or_else(failed)
}

fn reject_misplaced(settings: &Settings) -> anyhow::Result<()> {
    let chain = &settings.section;
    let lines: Vec<String> = settings
        .misplaced()
        .into_iter()
        .map(|name| {
            format!(
                "Config setting for -{name} only applied on {chain} network when in [{chain}] section."
            )
        })
        .collect();
    if lines.is_empty() { Ok(()) } else { bail!(lines.join("\n")) }
}

/// Checks options without effect: some are errors, and those that Core removed get a warning.
fn look_up_fates(settings: &Settings, notes: &mut Notes) -> anyhow::Result<()> {
    for name in settings.names() {
        let Some(option) = options::find(name) else { continue };
        match option.fate {
            Fate::Rejected { default, reason }
                if settings.text(name).is_some_and(|value| value != default) =>
            {
                bail!("-{name} is not available: {reason}.")
            }
            Fate::Dropped if REMOVED.contains(&name) => notes.warn_aloud(format!(
                "Option '-{name}' is set but was removed. This option has no effect."
            )),
            Fate::Dropped => notes.debug(format!("Option -{name} makes no difference here.")),
            Fate::Works(_) | Fate::Rejected { .. } => {}
        }
    }
    Ok(())
}

/// Sets options that follow from others (Core `InitParameterInteraction`).
fn imply(settings: &mut Settings, notes: &mut Notes) -> anyhow::Result<()> {
    let mut set = |settings: &mut Settings, cause: &str, name: &str, value: bool| {
        if settings.imply(name, value) {
            let value = u8::from(value);
            notes.info(format!("parameter interaction: {cause} -> setting -{name}={value}"));
        }
    };
    if !settings.list("bind").is_empty() {
        set(settings, "-bind set", "listen", true);
    }
    if !settings.list("whitebind").is_empty() {
        set(settings, "-whitebind set", "listen", true);
    }
    let is_isolated = !settings.list("connect").is_empty() || settings.is_negated("connect");
    if is_isolated || settings.int("maxconnections").is_some_and(|count| count <= 0) {
        let cause = "-connect or -maxconnections=0 set";
        set(settings, cause, "dnsseed", false);
        set(settings, cause, "listen", false);
    }
    if settings.text("proxy").is_some_and(|proxy| !proxy.is_empty() && proxy != "0") {
        for name in ["listen", "natpmp", "discover"] {
            set(settings, "-proxy set", name, false);
        }
    }
    if settings.flag("listen") == Some(false) {
        for name in ["natpmp", "discover", "listenonion", "i2pacceptincoming"] {
            set(settings, "-listen=0", name, false);
        }
        if !settings.list("bind").is_empty() || !settings.list("whitebind").is_empty() {
            bail!("Cannot set -bind or -whitebind together with -listen=0");
        }
        if settings.flag("listenonion") == Some(true) {
            bail!("Cannot set -listen=0 together with -listenonion=1");
        }
    }
    if !settings.list("externalip").is_empty() {
        set(settings, "-externalip set", "discover", false);
    }
    if settings.flag("blocksonly") == Some(true) {
        set(settings, "-blocksonly=1", "whitelistrelay", false);
    }
    if settings.flag("whitelistforcerelay") == Some(true) {
        set(settings, "-whitelistforcerelay=1", "whitelistrelay", true);
    }
    let only = settings.list("onlynet");
    let has_internet =
        only.iter().any(|name| ["ipv4", "ipv6"].contains(&name.to_ascii_lowercase().as_str()));
    if !only.is_empty() && !has_internet {
        set(settings, "-onlynet excludes IPv4 and IPv6", "dnsseed", false);
    }
    if settings.flag("peerblockfilters") == Some(true) && !filter_index(settings)? {
        bail!("Cannot set -peerblockfilters without -blockfilterindex.");
    }
    if settings.flag("forcednsseed") == Some(true) && settings.flag("dnsseed") == Some(false) {
        bail!("Cannot set -forcednsseed to true when setting -dnsseed to false.");
    }
    Ok(())
}

fn engine(settings: &Settings, config: &mut NodeConfig) -> anyhow::Result<()> {
    let cache_mib =
        settings.int("dbcache").unwrap_or(CACHE_MIB).clamp(CACHE_MIB_MIN, CACHE_MIB_MAX);
    let engine = &mut config.engine;
    engine.cache_bytes_max = (cache_mib.unsigned_abs() as usize) << 20;
    engine.threads = threads(settings.int("par").unwrap_or(0));
    engine.rebuild_coins = settings.flag("reindex-chainstate").unwrap_or(false);
    engine.reindex = settings.flag("reindex").unwrap_or(false);
    config.load_blocks = settings.list("loadblock").into_iter().map(PathBuf::from).collect();
    let height = settings.int("stopatheight").map(not_negative).filter(|height| *height > 0);
    config.stop_at_height = height.map(|height| u32::try_from(height).unwrap_or(u32::MAX));
    config.notify = notify(settings);
    config.tx_index = settings.flag("txindex").unwrap_or(false);
    config.filter_index = filter_index(settings)?;
    let engine = &mut config.engine;
    engine.tip_age_max_s = settings.int("maxtipage").map_or(engine.tip_age_max_s, not_negative);
    if let Some(time_s) = settings.int("mocktime") {
        let Ok(time_s) = u32::try_from(time_s) else {
            bail!("-mocktime={time_s} must be from 0 to {}", u32::MAX);
        };
        engine.clock.set(time_s.into());
    }
    if settings.flag("fastprune") == Some(true) {
        engine.block_file_bytes_max = FAST_PRUNE_BYTES;
        if engine.params.name == "regtest" {
            engine.prune_after_height = FAST_PRUNE_HEIGHT;
        }
    }
    config.engine.prune = prune(settings, config)?;
    block_files(settings, config)
}

/// Folder and obfuscation of block files, and the number of blocks checked at the start.
fn block_files(settings: &Settings, config: &mut NodeConfig) -> anyhow::Result<()> {
    if let Some(given) = settings.text("blocksdir") {
        let missing = || anyhow!("Specified blocks directory \"{given}\" does not exist.");
        let path = std::path::absolute(&given).map_err(|_| missing())?;
        if !path.is_dir() {
            return Err(missing());
        }
        config.blocks_base = Some(path);
    }
    config.engine.obfuscation = if settings.flag("blocksxor") == Some(false) {
        Obfuscation::Forbidden
    } else {
        let mut key = [0; 8];
        getrandom::fill(&mut key).map_err(|error| anyhow!("no random numbers: {error}"))?;
        Obfuscation::New(XorKey::new(key))
    };
    let (level, blocks) = (settings.int("checklevel"), settings.int("checkblocks"));
    let number = |given: Option<i64>, default: u32| {
        given.map_or(default, |number| u32::try_from(not_negative(number)).unwrap_or(u32::MAX))
    };
    let default = ChainCheck::default();
    config.engine.check = Some(ChainCheck {
        level: number(level, default.level),
        blocks: number(blocks, default.blocks),
        must_be_whole: level.is_some() || blocks.is_some(),
    });
    Ok(())
}

/// True if block filters are indexed (Core `init.cpp`, `-blockfilterindex`): for an empty value or
/// 1 all types, for 0 none, otherwise the named types.
fn filter_index(settings: &Settings) -> anyhow::Result<bool> {
    let first = settings.text("blockfilterindex").unwrap_or_else(|| "0".to_owned());
    if first.is_empty() || first == "1" {
        return Ok(true);
    }
    if first == "0" {
        return Ok(false);
    }
    let names = settings.list("blockfilterindex");
    match names.iter().find(|name| *name != "basic") {
        Some(name) => bail!("Unknown -blockfilterindex value {name}."),
        None => Ok(!names.is_empty()),
    }
}

/// Configuration of pruning, and checks of conflicting options (Core `init.cpp`, `node/blockmanager_args.cpp`).
fn prune(settings: &Settings, config: &NodeConfig) -> anyhow::Result<Option<Pruning>> {
    let mib = settings.int("prune").unwrap_or(0);
    if mib != 0 && config.tx_index {
        bail!("Prune mode is incompatible with -txindex.");
    }
    if mib != 0 && config.engine.rebuild_coins {
        bail!("Prune mode is incompatible with -reindex-chainstate. Use full -reindex instead.");
    }
    let Ok(count) = u64::try_from(mib) else {
        bail!("Prune cannot be configured with a negative value.");
    };
    Ok(match count {
        0 => None,
        1 => Some(Pruning::Manual),
        2..PRUNE_MIB_MIN => bail!(
            "Prune configured below the minimum of {PRUNE_MIB_MIN} MiB.  Please use a higher number."
        ),
        count => Some(Pruning::Automatic { bytes_max: count.saturating_mul(1 << 20) }),
    })
}

fn notify(settings: &Settings) -> Notify {
    let command = |name| settings.text(name).filter(|text| !text.is_empty());
    Notify {
        startup: command("startupnotify"),
        shutdown: settings.list("shutdownnotify"),
        block: command("blocknotify"),
        alert: command("alertnotify"),
    }
}

/// Number of script verification threads: one per core for 0, all but some cores for a negative number.
fn threads(par: i64) -> usize {
    let cores = available_parallelism().map_or(1, usize::from);
    match usize::try_from(par) {
        Ok(0) => cores,
        Ok(count) => count.min(THREADS_MAX),
        Err(_) => {
            let free = usize::try_from(par.unsigned_abs()).unwrap_or(usize::MAX);
            cores.saturating_sub(free).max(1)
        }
    }
}

fn mempool(settings: &Settings, config: &mut NodeConfig) -> anyhow::Result<()> {
    let number = |name| settings.int(name).map(not_negative);
    let engine = &mut config.engine;
    if let Some(megabytes) = number("maxmempool") {
        engine.mempool_bytes_max = megabytes.saturating_mul(1_000_000);
    }
    if let Some(rate) = settings.fee_rate("minrelaytxfee")? {
        engine.min_relay_fee_sat_per_kvb = rate;
    }
    if let Some(hours) = number("mempoolexpiry") {
        engine.mempool_expiry_s = hours.saturating_mul(3600);
    }
    if let Some(count) = number("limitclustercount") {
        engine.cluster_count_max = Some(usize::try_from(count).unwrap_or(usize::MAX));
    }
    if let Some(kvb) = number("limitclustersize") {
        engine.cluster_vsize_max = Some(kvb.saturating_mul(1000));
    }
    check_mempool_size(engine)?;
    config.rpc.deprecated = settings.list("deprecatedrpc");
    config.engine.persist_mempool = settings.flag("persistmempool").unwrap_or(true);
    if settings.section == MAIN && settings.flag("acceptnonstdtxn") == Some(true) {
        bail!("acceptnonstdtxn is not currently supported for main chain");
    }
    policy(settings, &mut config.engine)
}

/// Rejects a mempool too small for some of the largest clusters (Core `txmempool.cpp`, `Flatten`).
fn check_mempool_size(engine: &assay_engine::Config) -> anyhow::Result<()> {
    let least = engine.cluster_vsize_max.map_or(0, |vsize| vsize.saturating_mul(40));
    if engine.mempool_bytes_max > 0 && engine.mempool_bytes_max < least {
        bail!("-maxmempool must be at least {} MB", least.div_ceil(1_000_000));
    }
    Ok(())
}

fn policy(settings: &Settings, engine: &mut assay_engine::Config) -> anyhow::Result<()> {
    let policy = &mut engine.policy;
    policy.require_standard = settings.flag("acceptnonstdtxn") != Some(true);
    if let Some(bytes) = settings.int("datacarriersize") {
        policy.data_carrier_bytes_max = usize::try_from(not_negative(bytes)).unwrap_or(usize::MAX);
    }
    if settings.flag("datacarrier") == Some(false) {
        policy.data_carrier_bytes_max = 0;
    }
    if let Some(bytes) = settings.int("bytespersigop") {
        policy.bytes_per_sigop = not_negative(bytes);
    }
    if let Some(rate) = settings.fee_rate("incrementalrelayfee")? {
        policy.incremental_fee_sat_per_kvb = rate;
        // One option raises both rates (Core `node/mempool_args.cpp`).
        if settings.fee_rate("minrelaytxfee")?.is_none() {
            let least = engine.min_relay_fee_sat_per_kvb;
            engine.min_relay_fee_sat_per_kvb = least.max(rate);
        }
    }
    policy.permit_bare_multisig = settings.flag("permitbaremultisig") != Some(false);
    if let Some(rate) = settings.fee_rate("dustrelayfee")? {
        policy.dust_fee_sat_per_kvb = rate;
    }
    Ok(())
}

fn rpc(settings: &Settings, config: &mut NodeConfig, notes: &mut Notes) -> anyhow::Result<()> {
    let default = settings.port("rpcport")?.unwrap_or(config.engine.params.rpc_port);
    let rpc = &mut config.rpc;
    for text in settings.list("rpcallowip") {
        let subnet = subnet(&text).and_then(|text| text.parse().ok()).ok_or_else(|| {
            anyhow!(
                "Invalid -rpcallowip subnet specification: {text}. Valid values are a single IP (e.g. 1.2.3.4), a \
                 network/netmask (e.g. 1.2.3.4/255.255.255.0), a network/CIDR (e.g. 1.2.3.4/24), all ipv4 (0.0.0.0/0), or \
                 all ipv6 (::/0)."
            )
        })?;
        rpc.allow.push(subnet);
    }
    rpc.bind = rpc_addresses(settings, default, notes)?;
    let user = settings.text("rpcuser").unwrap_or_default();
    let password = settings.text("rpcpassword").unwrap_or_default();
    rpc.password = (!password.is_empty()).then_some((user, password));
    rpc.auth_texts = settings.list("rpcauth");
    rpc.rest = settings.flag("rest") == Some(true);
    if settings.is_negated("rpccookiefile") {
        rpc.cookie_file = None;
    } else if let Some(path) = path(settings, "rpccookiefile") {
        rpc.cookie_file = Some(path);
    }
    let lists = settings.list("rpcwhitelist");
    let is_closed = settings.flag("rpcwhitelistdefault").unwrap_or(!lists.is_empty());
    rpc.whitelist = Whitelist::new(lists.iter().map(String::as_str), is_closed);
    if let Some(readers) = settings.text("rpccookieperms") {
        rpc.cookie_mode = cookie_mode(&readers)?;
    }
    let count =
        |name| settings.int(name).map(|count| not_negative(count).clamp(1, 1 << 16) as usize);
    let limits = &mut rpc.limits;
    limits.threads = count("rpcthreads").unwrap_or(limits.threads);
    limits.body_bytes_max = BODY_BYTES_MAX;
    limits.queue_max = count("rpcworkqueue").unwrap_or(limits.queue_max);
    // A waiting call in Core blocks a thread, so their number is limited by that of calls.
    limits.waiters_max = limits.waiters_max.min(limits.threads.saturating_add(limits.queue_max));
    if let Some(seconds) = settings.int("rpcservertimeout") {
        limits.idle = seconds_of(seconds);
    }
    Ok(())
}

fn zmq(settings: &Settings) -> Vec<Publication> {
    let mut publications = Vec::new();
    for topic in Topic::ALL {
        let name = format!("zmqpub{}", topic.name());
        let waiting = settings.int(&format!("{name}hwm")).map(not_negative);
        let waiting = waiting.map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        let high_water_mark = waiting.unwrap_or(HIGH_WATER_MARK_DEFAULT);
        let addresses = settings.list(&name).into_iter();
        publications.extend(addresses.map(|address| Publication {
            topic,
            address,
            high_water_mark,
        }));
    }
    publications
}

/// File mode of the cookie (Core `util/fs_helpers.cpp`, `InterpretPermString`).
fn cookie_mode(readers: &str) -> anyhow::Result<u32> {
    Ok(match readers {
        "owner" => 0o600,
        "group" => 0o640,
        "all" => 0o644,
        _ => bail!("Invalid -rpccookieperms={readers}; must be one of 'owner', 'group', or 'all'."),
    })
}

/// Listening addresses of RPC. Other addresses than loopback need both options, so that none is exposed by mistake.
fn rpc_addresses(
    settings: &Settings,
    default: u16,
    notes: &mut Notes,
) -> anyhow::Result<Vec<SocketAddr>> {
    if settings.flag("server") == Some(false) {
        return Ok(Vec::new());
    }
    let given = settings.list("rpcbind");
    let is_allowed = settings.is_set("rpcallowip");
    if is_allowed && !given.is_empty() {
        return given.iter().map(|text| bind_address("rpcbind", text, default)).collect();
    }
    if is_allowed {
        notes.warn(
            "Option -rpcallowip was specified without -rpcbind; this doesn't usually make sense"
                .to_owned(),
        );
    }
    if !given.is_empty() {
        notes.warn(
            "Option -rpcbind was ignored because -rpcallowip was not specified, refusing to allow everyone to connect"
                .to_owned(),
        );
    }
    let mut addresses = vec![SocketAddr::from((Ipv4Addr::LOCALHOST, default))];
    // Skipped on machines without IPv6.
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
        addresses.push(SocketAddr::from((Ipv6Addr::LOCALHOST, default)));
    }
    Ok(addresses)
}

/// Path of an option; `None` if unset.
fn path(settings: &Settings, name: &str) -> Option<PathBuf> {
    let text = settings.text(name).filter(|text| !text.is_empty());
    text.filter(|_| !settings.is_negated(name)).map(PathBuf::from)
}

/// Options that Core has removed (`init.cpp`).
const REMOVED: [&str; 3] = ["checkpoints", "limitancestorsize", "limitdescendantsize"];
/// Core's `kernel/caches.h`, `DEFAULT_KERNEL_CACHE`.
const CACHE_MIB: i64 = 450;
/// Core's `MIN_DB_CACHE`.
const CACHE_MIB_MIN: i64 = 4;
const CACHE_MIB_MAX: i64 = 1 << 20;
/// Core's `-fastprune` (`node/blockstorage.cpp`).
const FAST_PRUNE_BYTES: u64 = 64 << 10;
/// Core's `nPruneAfterHeight` with `-fastprune` (`kernel/chainparams.cpp`).
const FAST_PRUNE_HEIGHT: u32 = 100;
/// Core's `MIN_DISK_SPACE_FOR_BLOCK_FILES` (`validation.h`).
const PRUNE_MIB_MIN: u64 = 550;
/// Core's `MAX_BODY_SIZE` (`httpserver.h`).
const BODY_BYTES_MAX: usize = 32 << 20;
const THREADS_MAX: usize = 1024;

#[cfg(test)]
mod tests {
    use super::super::settings::tests::settings;
    use super::*;

    fn fate(arguments: &[&str], file: &str) -> Result<(), String> {
        let result = look_up_fates(&settings(arguments, file), &mut Notes::default());
        result.map_err(|error| error.to_string())
    }

    #[test]
    fn options_without_their_effect_stop_the_start_unless_they_have_their_default() {
        for (option, default, other) in [
            ("blockreconstructionextratxn", "100", "50"),
            ("capturemessages", "0", "1"),
            ("coinstatsindex", "0", "1"),
            ("dbcrashratio", "0", "8"),
            ("stopafterblockimport", "0", "1"),
            ("timeout", "5000", "9000"),
            ("txospenderindex", "0", "1"),
            ("txreconciliation", "0", "1"),
            ("vbparams", "0", "testdummy:0:1"),
        ] {
            assert_eq!(fate(&[&format!("-{option}={default}")], ""), Ok(()), "{option}");
            for (arguments, file) in [
                (vec![format!("-{option}={other}")], String::new()),
                (Vec::new(), format!("{option}={other}\n")),
            ] {
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                let error = fate(&arguments, &file).unwrap_err();
                assert!(error.starts_with(&format!("-{option} is not available: ")), "{error}");
            }
            // The command line has precedence over the file.
            let line = format!("-{option}={default}");
            assert_eq!(fate(&[&line], &format!("{option}={other}\n")), Ok(()), "{option}");
        }
        assert!(fate(&["-coinstatsindex"], "").is_err());
        assert_eq!(fate(&["-nocoinstatsindex", "-nodbcrashratio"], ""), Ok(()));
    }
}
