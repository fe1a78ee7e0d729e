//! Conversion of P2P options (Core `init.cpp`, `AppInitMain`).

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{anyhow, bail};
use assay_node::{NetworkKind, NodeConfig, P2pConfig, Proxies, Resolve};

use super::notes::Notes;
use super::numbers::{AddressError, address, bind_address, bytes, not_negative, seconds_of};
use super::settings::Settings;

pub(crate) fn config(
    settings: &Settings,
    config: &NodeConfig,
    notes: &mut Notes,
) -> anyhow::Result<P2pConfig> {
    let default = settings.port("port")?.unwrap_or(config.engine.params.p2p_port);
    let mut p2p = P2pConfig::new(SocketAddr::from((Ipv4Addr::LOCALHOST, default)));
    p2p.expose = true;
    p2p.listens = settings.flag("listen") != Some(false);
    binds(settings, default, &mut p2p, notes)?;
    if settings.flag("dns") == Some(false) {
        p2p.resolver = Arc::new(NobodyIsAsked);
    }
    networks(settings, &mut p2p)?;
    p2p.external_addresses = settings.list("externalip");
    p2p.discovers = settings.flag("discover") != Some(false);
    seeds(settings, &mut p2p)?;
    p2p.fixed_places = settings.list("test").iter().any(|option| option == "addrman");
    let checks = settings.int("checkaddrman").unwrap_or(0);
    p2p.check_addresses = not_negative(checks).min(CHECK_RATIO_MAX) as u32;
    connection_limits(settings, config, &mut p2p)?;
    p2p.connect = connect(settings);
    p2p.opens = p2p.connect.is_none();
    p2p.add_nodes = settings.list("addnode");
    let named = p2p.add_nodes.len();
    p2p.add_nodes.retain(|name| !name.trim_ascii().is_empty());
    if p2p.add_nodes.len() < named {
        notes.warn("Ignoring empty -addnode value".to_owned());
    }
    if let Some(peers) = &p2p.connect {
        if !peers.is_empty() && !p2p.seed_nodes.is_empty() {
            notes.info("-seednode is ignored when -connect is used".to_owned());
        }
        if p2p.asks_dns && settings.is_set("dnsseed") && settings.is_set("proxy") {
            let text = "-dnsseed is ignored when -connect is used and -proxy is specified";
            notes.info(text.to_owned());
        }
    }
    p2p.whitelist = settings.list("whitelist");
    p2p.whitelist_relay = settings.flag("whitelistrelay") != Some(false);
    p2p.whitelist_force_relay = settings.flag("whitelistforcerelay") == Some(true);
    p2p.encrypted = settings.flag("v2transport") != Some(false);
    p2p.is_active = settings.flag("networkactive") != Some(false);
    p2p.serves_filters = settings.flag("peerblockfilters") == Some(true);
    p2p.bloom_filters = settings.flag("peerbloomfilters") == Some(true);
    if let Some(text) = settings.text("maxuploadtarget") {
        p2p.upload_target_bytes = bytes(&text, 'M')
            .ok_or_else(|| anyhow!("Unable to parse -maxuploadtarget: '{text}'"))?;
    }
    p2p.blocks_only = settings.flag("blocksonly") == Some(true);
    p2p.ban_s = settings.int("bantime").map_or(p2p.ban_s, not_negative);
    if let Some(rate) = settings.int("txsendrate") {
        p2p.txs_per_s = rate.clamp(1, 1000) as u32;
    }
    p2p.log_addresses = settings.flag("logips") == Some(true);
    if let Some(seconds) = settings.int("peertimeout") {
        if seconds <= 0 {
            bail!("peertimeout must be a positive integer.");
        }
        p2p.peer_timeout = seconds_of(seconds);
    }
    p2p.user_agent_comments = comments(settings)?;
    let length = p2p.user_agent(&config.engine.params).len();
    if length > USER_AGENT_BYTES_MAX {
        bail!(
            "Total length of network version string ({length}) exceeds maximum length ({USER_AGENT_BYTES_MAX}). Reduce the \
             number or size of uacomments."
        );
    }
    Ok(p2p)
}

fn binds(
    settings: &Settings,
    default: u16,
    p2p: &mut P2pConfig,
    notes: &mut Notes,
) -> anyhow::Result<()> {
    let mut binds = Vec::new();
    for text in settings.list("bind") {
        match text.rsplit_once('=') {
            None => binds.push(bind_address("bind", &text, default)?),
            Some((address, "onion")) => {
                p2p.onion_binds.push(bind_address("bind", address, default.saturating_add(1))?);
            }
            Some(_) => bail!("Cannot resolve -bind address: '{text}'"),
        }
    }
    p2p.white_binds = settings.list("whitebind");
    for text in &p2p.white_binds {
        let parsed = address(text.split_once('@').map_or(text.as_str(), |(_, rest)| rest), 0);
        if parsed == Err(AddressError::Port) {
            bail!("Invalid port specified in -whitebind: '{text}'");
        }
    }
    let is_any_named = !settings.list("bind").is_empty() || !p2p.white_binds.is_empty();
    if is_any_named {
        p2p.binds = binds;
    } else if p2p.listens {
        notes.info("Listening for peers on this machine alone: -bind lets others in.".to_owned());
    }
    Ok(())
}

/// Limits on connections (Core `net.h`, `CConnman::Init`): some slots are reserved for outbound peers.
fn connection_limits(
    settings: &Settings,
    config: &NodeConfig,
    p2p: &mut P2pConfig,
) -> anyhow::Result<()> {
    if let Some(count) = settings.int("maxconnections") {
        if count < 0 {
            bail!("-maxconnections must be greater or equal than zero");
        }
        p2p.peers_max = not_negative(count).min(PEERS_MAX) as usize;
    }
    let relay = p2p.peers_max.min(FULL_RELAY_MAX);
    let blocks_alone = (p2p.peers_max - relay).min(BLOCK_RELAY_MAX);
    p2p.inbound_max = Some(p2p.peers_max.saturating_sub(relay + blocks_alone + FEELERS));
    if let Some(percent) = settings.int("inboundrelaypercent") {
        p2p.inbound_relay_percent = not_negative(percent).min(100) as usize;
    }
    if config.engine.params.name == "regtest" {
        // All peers of a functional test share one address.
        p2p.peers_per_address_max = Some(p2p.peers_max);
    }
    Ok(())
}

fn networks(settings: &Settings, p2p: &mut P2pConfig) -> anyhow::Result<()> {
    if settings.flag("cjdnsreachable") == Some(true) {
        p2p.networks.push(NetworkKind::Cjdns);
    }
    p2p.isolates_streams = settings.flag("proxyrandomize") != Some(false);
    let mut only = Vec::new();
    for name in settings.list("onlynet") {
        let unknown = |_| anyhow!("Unknown network specified in -onlynet: '{name}'");
        only.push(name.parse::<NetworkKind>().map_err(unknown)?);
    }
    let needs = |network| only.contains(&network);
    p2p.proxies = proxies(settings, &*p2p.resolver)?;
    match settings.text("onion").filter(|text| !text.is_empty()) {
        None => {}
        Some(text) if text == "0" => {
            p2p.proxies.onion = None;
            if needs(NetworkKind::Onion) {
                bail!(
                    "Outbound connections restricted to Tor (-onlynet=onion) but the proxy for reaching the Tor network is \
                     explicitly forbidden: -onion=0"
                );
            }
        }
        Some(text) => p2p.proxies.onion = Some(proxy_address(&*p2p.resolver, "onion", &text)?),
    }
    if p2p.proxies.onion.is_some() {
        p2p.networks.push(NetworkKind::Onion);
    } else if needs(NetworkKind::Onion) {
        bail!(
            "Outbound connections restricted to Tor (-onlynet=onion) but the proxy for reaching the Tor network is not \
             provided: none of -proxy, -onion or -listenonion is given"
        );
    }
    if needs(NetworkKind::Cjdns) && !p2p.networks.contains(&NetworkKind::Cjdns) {
        bail!(
            "Outbound connections restricted to CJDNS (-onlynet=cjdns) but -cjdnsreachable is not provided"
        );
    }
    if needs(NetworkKind::I2p) {
        bail!("Outbound connections restricted to i2p (-onlynet=i2p) but -i2psam is not provided");
    }
    if !only.is_empty() {
        p2p.networks.retain(|network| only.contains(network));
    }
    Ok(())
}

/// Proxies of other networks: `address`, or `address=network`; the last one applies.
fn proxies(settings: &Settings, resolver: &dyn Resolve) -> anyhow::Result<Proxies> {
    let mut proxies = Proxies::default();
    for given in settings.list("proxy") {
        let (text, network) = match given.rsplit_once('=') {
            Some((_, "")) => {
                bail!("Invalid -proxy address or hostname, ends with '=': '{given}'")
            }
            Some((text, network)) => (text, network.to_ascii_lowercase()),
            None => (given.as_str(), String::new()),
        };
        let is_none = text.is_empty() || text == "0";
        let proxy = if is_none { None } else { Some(proxy_address(resolver, "proxy", text)?) };
        match network.as_str() {
            "" => proxies = Proxies::all(proxy),
            "ipv4" => (proxies.ipv4, proxies.name) = (proxy, proxy),
            "ipv6" => (proxies.ipv6, proxies.name) = (proxy, proxy),
            "onion" => proxies.onion = proxy,
            "cjdns" => proxies.cjdns = proxy,
            _ => bail!("Unrecognized network in -proxy='{given}': '{network}'"),
        }
    }
    Ok(proxies)
}

fn proxy_address(resolver: &dyn Resolve, option: &str, text: &str) -> anyhow::Result<SocketAddr> {
    if text.starts_with("unix:") {
        bail!("-{option}={text}: a proxy must have an address of the internet here");
    }
    let named = || {
        let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
        let port = if port.is_empty() { PROXY_PORT } else { port.parse().ok()? };
        let found = resolver.look_up(host).ok()?;
        found.first().map(|ip| SocketAddr::new(*ip, port))
    };
    match address(text, PROXY_PORT) {
        Ok(address) => Ok(address),
        Err(AddressError::Port) => bail!("Invalid port specified in -{option}: '{text}'"),
        Err(AddressError::Host) => {
            named().ok_or_else(|| anyhow!("Invalid -{option} address or hostname: '{text}'"))
        }
    }
}

/// Sources of bootstrap addresses.
fn seeds(settings: &Settings, p2p: &mut P2pConfig) -> anyhow::Result<()> {
    let has_internet =
        [NetworkKind::Ipv4, NetworkKind::Ipv6].iter().any(|kind| p2p.networks.contains(kind));
    if settings.flag("dnsseed") == Some(true) && !has_internet {
        bail!(
            "Incompatible options: -dnsseed=1 was explicitly specified, but -onlynet forbids connections to IPv4/IPv6"
        );
    }
    p2p.asks_dns = settings.flag("dnsseed") != Some(false);
    p2p.forces_dns = settings.flag("forcednsseed") == Some(true);
    p2p.dns_seeds = settings.list("signetseednode");
    p2p.seed_nodes = settings.list("seednode");
    p2p.uses_fixed_seeds = settings.flag("fixedseeds") != Some(false);
    Ok(())
}

/// Resolver for `-dns=0`, which looks up no names.
#[derive(Debug)]
struct NobodyIsAsked;

impl Resolve for NobodyIsAsked {
    fn look_up(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        Err(io::Error::other("names are not looked up (-dns=0)"))
    }
}

/// The only outbound peers, if any are named; `-connect=0` names none.
fn connect(settings: &Settings) -> Option<Vec<String>> {
    let peers = settings.list("connect");
    match peers.as_slice() {
        [] if settings.is_negated("connect") => Some(Vec::new()),
        [] => None,
        [none] if none == "0" => Some(Vec::new()),
        _ => Some(peers),
    }
}

/// Comments of the user agent; delimiters of BIP14 are rejected.
fn comments(settings: &Settings) -> anyhow::Result<Vec<String>> {
    let comments = settings.list("uacomment");
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b" .,;-_?@".contains(&byte);
    match comments.iter().find(|comment| !comment.bytes().all(is_safe)) {
        Some(comment) => bail!("User Agent comment ({comment}) contains unsafe characters."),
        None => Ok(comments),
    }
}

const PEERS_MAX: u64 = 1 << 16;
/// Core `net.h`, `MAX_OUTBOUND_FULL_RELAY_CONNECTIONS`, `MAX_BLOCK_RELAY_ONLY_CONNECTIONS`, `MAX_FEELER_CONNECTIONS`.
const FULL_RELAY_MAX: usize = 8;
const BLOCK_RELAY_MAX: usize = 2;
const FEELERS: usize = 1;
/// Default port of `-proxy`, which is Tor's.
const PROXY_PORT: u16 = 9050;
/// Core `addrdb.cpp`.
const CHECK_RATIO_MAX: u64 = 1_000_000;
/// Core's `net.h`, `MAX_SUBVERSION_LENGTH`.
const USER_AGENT_BYTES_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::super::settings::tests::settings;
    use super::*;

    fn networks_of(arguments: &[&str]) -> anyhow::Result<P2pConfig> {
        let mut p2p = P2pConfig::new("127.0.0.1:1".parse().unwrap());
        networks(&settings(arguments, ""), &mut p2p).map(|()| p2p)
    }

    #[test]
    fn the_latest_proxy_of_each_network_counts() {
        let proxy = |text: &str| text.parse().ok();
        let of = |arguments| networks_of(arguments).unwrap().proxies;
        assert_eq!(of(&[]), Proxies::default());
        assert_eq!(of(&["-proxy=127.0.0.1"]), Proxies::all(proxy("127.0.0.1:9050")));
        let some = of(&["-proxy=1.2.3.4:5", "-proxy=0=ipv4", "-proxy=[::1]:6=OniOn"]);
        assert_eq!((some.ipv4, some.name), (None, None));
        assert_eq!((some.ipv6, some.onion), (proxy("1.2.3.4:5"), proxy("[::1]:6")));
        assert_eq!(of(&["-proxy=1.2.3.4:5", "-noonion"]).onion, None);
        assert_eq!(of(&["-onion=1.2.3.4"]).onion, proxy("1.2.3.4:9050"));
        for (argument, expected) in [
            ("-proxy=1.2.3.4=", "ends with '='"),
            ("-proxy=1.2.3.4=i2p", "Unrecognized network in -proxy"),
            ("-proxy=1.2.3.4:0", "Invalid port"),
            ("-onion=1.2.3.4:x", "Invalid port"),
        ] {
            let fault = networks_of(&[argument]).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        }
    }

    #[test]
    fn networks_need_a_way_to_them() {
        use NetworkKind::{Cjdns, Ipv4, Ipv6, Onion};
        let of = |arguments| networks_of(arguments).map(|p2p| p2p.networks);
        assert_eq!(of(&[]).unwrap(), [Ipv4, Ipv6]);
        assert_eq!(of(&["-proxy=1.2.3.4"]).unwrap(), [Ipv4, Ipv6, Onion]);
        let arguments = ["-onlynet=onion", "-onion=1.2.3.4", "-onlynet=cjdns", "-cjdnsreachable"];
        assert_eq!(of(&arguments).unwrap(), [Cjdns, Onion]);
        for arguments in [
            &["-onlynet=onion"][..],
            &["-onlynet=onion", "-noonion", "-proxy=1.2.3.4"],
            &["-onlynet=cjdns"],
            &["-onlynet=i2p"],
            &["-onlynet=abc"],
        ] {
            assert!(of(arguments).is_err(), "{arguments:?}");
        }
    }
}
