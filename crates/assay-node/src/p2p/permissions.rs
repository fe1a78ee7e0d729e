//! Permissions by peer address or listening address (Core `net_permissions.cpp`, `-whitelist`, `-whitebind`).

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use crate::http::Subnet;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Permissions(u32);

impl Permissions {
    pub(crate) const BLOOM_FILTER: Self = Self(1 << 1);
    pub(crate) const RELAY: Self = Self(1 << 3);
    /// Implies [`Permissions::RELAY`].
    pub(crate) const FORCE_RELAY: Self = Self(1 << 2 | 1 << 3);
    pub(crate) const DOWNLOAD: Self = Self(1 << 6);
    /// Not disconnected for misbehaviour; implies [`Permissions::DOWNLOAD`].
    pub(crate) const NO_BAN: Self = Self(1 << 4 | 1 << 6);
    pub(crate) const MEMPOOL: Self = Self(1 << 5);
    pub(crate) const ADDR: Self = Self(1 << 7);
    /// Placeholder for a rule without names; see [`Permissions::resolved`].
    const IMPLICIT: Self = Self(1 << 31);

    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Replaces the placeholder of a rule without names (Core `net.cpp`, `AddWhitelistPermissionFlags`).
    fn resolved(mut self, implied: Implied) -> Self {
        if self.has(Self::IMPLICIT) {
            self.0 &= !Self::IMPLICIT.0;
            self.add(Self(Self::NO_BAN.0 | Self::MEMPOOL.0));
            if implied.force_relay {
                self.add(Self::FORCE_RELAY);
            }
            if implied.relay {
                self.add(Self::RELAY);
            }
        }
        self
    }

    /// Names as in Core's `getpeerinfo`.
    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        NAMED.iter().filter(move |(_, bits)| self.has(*bits)).map(|(name, _)| *name)
    }
}

/// Options of rules without names (Core's `-whitelistrelay`, `-whitelistforcerelay`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Implied {
    pub(super) relay: bool,
    pub(super) force_relay: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sides {
    inbound: bool,
    outbound: bool,
}

/// Permissions of an address range.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    permissions: Permissions,
    sides: Sides,
    subnet: Subnet,
}

impl FromStr for Rule {
    type Err = String;

    /// `[permissions@]address[/bits]`; permissions are comma-separated names, `in` and `out` restrict the direction.
    fn from_str(text: &str) -> Result<Self, String> {
        let (permissions, sides, address) = split(text, true)?;
        let subnet = address
            .parse()
            .map_err(|_| format!("Invalid netmask specified in -whitelist: '{address}'"))?;
        Ok(Self { permissions, sides, subnet })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WhiteBind {
    pub(super) permissions: Permissions,
    pub(super) address: SocketAddr,
}

impl FromStr for WhiteBind {
    type Err = String;

    /// `[permissions@]address:port`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (permissions, _, address) = split(text, false)?;
        match address.parse::<SocketAddr>() {
            Ok(address) if address.port() != 0 => Ok(Self { permissions, address }),
            Err(_) if address.trim_matches(['[', ']']).parse::<IpAddr>().is_err() => {
                Err(format!("Cannot resolve -whitebind address: '{address}'"))
            }
            _ => Err(format!("Need to specify a port with -whitebind: '{address}'")),
        }
    }
}

/// Splits `[permissions@]rest`.
fn split(text: &str, may_be_outbound: bool) -> Result<(Permissions, Sides, &str), String> {
    let mut sides = Sides { inbound: false, outbound: false };
    let Some((names, rest)) = text.split_once('@') else {
        return Ok((Permissions::IMPLICIT, Sides { inbound: true, ..sides }, text));
    };
    let mut permissions = Permissions::default();
    for name in names.split(',').filter(|name| !name.is_empty()) {
        match name {
            "in" => sides.inbound = true,
            "out" if may_be_outbound => sides.outbound = true,
            "out" => {
                return Err(
                    "whitebind may only be used for incoming connections (\"out\" was passed)"
                        .to_owned(),
                );
            }
            "all" => NAMED.iter().for_each(|(_, bits)| permissions.add(*bits)),
            "bloom" => permissions.add(Permissions::BLOOM_FILTER),
            _ => {
                let named = NAMED.iter().find(|(known, _)| *known == name);
                let (_, bits) = named.ok_or_else(|| format!("Invalid P2P permission: '{name}'"))?;
                permissions.add(*bits);
            }
        }
    }
    if (sides.inbound || sides.outbound) && permissions == Permissions::default() {
        return Err(format!("Only direction was set, no permissions: '{text}'"));
    }
    // Without a direction, inbound is meant.
    sides.inbound |= !sides.outbound;
    Ok((permissions, sides, rest))
}

/// Permissions of a peer: `given` by the listening address, plus those of matching rules if its address is known.
pub(super) fn permissions(
    given: Permissions,
    rules: &[Rule],
    address: Option<IpAddr>,
    is_inbound: bool,
    implied: Implied,
) -> Permissions {
    let mut permissions = given;
    for rule in rules {
        let is_meant = if is_inbound { rule.sides.inbound } else { rule.sides.outbound };
        if is_meant && address.is_some_and(|address| rule.subnet.contains(address)) {
            permissions.add(rule.permissions);
        }
    }
    permissions.resolved(implied)
}

const NAMED: [(&str, Permissions); 7] = [
    ("bloomfilter", Permissions::BLOOM_FILTER),
    ("noban", Permissions::NO_BAN),
    ("forcerelay", Permissions::FORCE_RELAY),
    ("relay", Permissions::RELAY),
    ("mempool", Permissions::MEMPOOL),
    ("download", Permissions::DOWNLOAD),
    ("addr", Permissions::ADDR),
];

#[cfg(test)]
mod tests {
    use super::*;

    const IMPLIED: Implied = Implied { relay: true, force_relay: false };

    fn of(rule: &str, address: &str, is_inbound: bool) -> Vec<&'static str> {
        let rules = [rule.parse().unwrap()];
        let address = address.parse().ok();
        permissions(Permissions::default(), &rules, address, is_inbound, IMPLIED).names().collect()
    }

    #[test]
    fn parses_permission_rules() {
        assert_eq!(of("127.0.0.1", "127.0.0.1", true), ["noban", "relay", "mempool", "download"]);
        assert!(of("127.0.0.1", "127.0.0.1", false).is_empty());
        assert!(of("noban@127.0.0.1", "127.0.0.2", true).is_empty());
        assert_eq!(of("noban,in,out@127.0.0.1", "127.0.0.1", false), ["noban", "download"]);
        assert!(of("noban,out@127.0.0.1", "127.0.0.1", true).is_empty());
        assert_eq!(of("forcerelay@10.0.0.0/8", "10.1.2.3", true), ["forcerelay", "relay"]);
        assert!(of("@1.2.3.4", "1.2.3.4", true).is_empty());
        assert!("oink@1.2.3.4".parse::<Rule>().is_err());
        assert!("noban@1.2.3.4:32".parse::<Rule>().is_err());
        assert_eq!(
            "in,out@1.2.3.4".parse::<Rule>().unwrap_err(),
            "Only direction was set, no permissions: 'in,out@1.2.3.4'"
        );
    }

    #[test]
    fn rules_without_names_follow_the_settings() {
        let named = |relay, force_relay| {
            let rules = ["127.0.0.1".parse().unwrap(), "noban@127.0.0.1".parse().unwrap()];
            let implied = Implied { relay, force_relay };
            let address = "127.0.0.1".parse().ok();
            let all = permissions(Permissions::default(), &rules, address, true, implied);
            all.names().collect::<Vec<_>>()
        };
        assert_eq!(named(false, false), ["noban", "mempool", "download"]);
        assert_eq!(named(true, false), ["noban", "relay", "mempool", "download"]);
        assert_eq!(named(false, true), ["noban", "forcerelay", "relay", "mempool", "download"]);
    }

    #[test]
    fn listening_addresses_have_permissions() {
        let bind = |text: &str| text.parse::<WhiteBind>();
        let parsed = bind("forcerelay,bloom@[::1]:7").unwrap();
        let rules = ["noban@127.0.0.1".parse().unwrap()];
        let of = |address: Option<&str>| {
            let address = address.map(|text| text.parse().unwrap());
            permissions(parsed.permissions, &rules, address, true, IMPLIED).names().count()
        };
        assert_eq!(of(Some("127.0.0.1")), 5);
        assert_eq!(of(Some("127.0.0.2")), 3);
        assert_eq!(of(None), 3, "a peer behind Tor has no address");
        for (text, expected) in [
            ("noban@127.0.0.1/10", "Cannot resolve -whitebind address: '127.0.0.1/10'"),
            ("noban@127.0.0.1", "Need to specify a port with -whitebind: '127.0.0.1'"),
            ("[::1]:0", "Need to specify a port with -whitebind: '[::1]:0'"),
            ("out,noban@1.2.3.4:5", "whitebind may only be used"),
            ("oink@1.2.3.4:5", "Invalid P2P permission: 'oink'"),
        ] {
            let fault = bind(text).unwrap_err();
            assert!(fault.starts_with(expected), "{fault}");
        }
    }
}
