//! What some peers may do that others may not, by their address (Core `net_permissions.h`, `-whitelist`).

use std::net::IpAddr;
use std::str::FromStr;

use crate::http::Subnet;

/// Permissions of one peer, bit by bit.
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
    /// What a rule without names stands for.
    const IMPLICIT: Self = Self(Self::RELAY.0 | Self::NO_BAN.0 | Self::MEMPOOL.0);

    /// Whether all of `other` are among these.
    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    fn add(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Their names, as Core's `getpeerinfo` lists them.
    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        NAMED.iter().filter(move |(_, bits)| self.has(*bits)).map(|(name, _)| *name)
    }
}

/// Which side made the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sides {
    inbound: bool,
    outbound: bool,
}

/// One rule: these addresses have these permissions.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    permissions: Permissions,
    sides: Sides,
    subnet: Subnet,
}

impl FromStr for Rule {
    type Err = String;

    /// `[permissions@]address[/bits]`; permissions are names with commas between, `in` and `out` say of which connections.
    fn from_str(text: &str) -> Result<Self, String> {
        let (names, address) = match text.split_once('@') {
            Some((names, address)) => (Some(names), address),
            None => (None, text),
        };
        let mut permissions = Permissions::default();
        let mut sides = Sides { inbound: names.is_none(), outbound: false };
        match names {
            None => permissions = Permissions::IMPLICIT,
            Some(names) => {
                for name in names.split(',').filter(|name| !name.is_empty()) {
                    match name {
                        "in" => sides.inbound = true,
                        "out" => sides.outbound = true,
                        "all" => NAMED.iter().for_each(|(_, bits)| permissions.add(*bits)),
                        "bloom" => permissions.add(Permissions::BLOOM_FILTER),
                        _ => {
                            let named = NAMED.iter().find(|(known, _)| *known == name);
                            let (_, bits) =
                                named.ok_or_else(|| format!("Invalid P2P permission: '{name}'"))?;
                            permissions.add(*bits);
                        }
                    }
                }
                // Without a word about it, those who connect to us are meant.
                sides.inbound |= !sides.outbound;
            }
        }
        let subnet = address
            .parse()
            .map_err(|_| format!("Invalid netmask specified in -whitelist: '{address}'"))?;
        Ok(Self { permissions, sides, subnet })
    }
}

/// What a peer of this address may do.
pub(crate) fn permissions(rules: &[Rule], address: IpAddr, is_inbound: bool) -> Permissions {
    let mut permissions = Permissions::default();
    for rule in rules {
        let is_meant = if is_inbound { rule.sides.inbound } else { rule.sides.outbound };
        if is_meant && rule.subnet.contains(address) {
            permissions.add(rule.permissions);
        }
    }
    permissions
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

    fn of(rule: &str, address: &str, is_inbound: bool) -> Vec<&'static str> {
        let rules = [rule.parse().unwrap()];
        permissions(&rules, address.parse().unwrap(), is_inbound).names().collect()
    }

    #[test]
    fn rules_name_permissions_sides_and_addresses() {
        assert_eq!(of("127.0.0.1", "127.0.0.1", true), ["noban", "relay", "mempool", "download"]);
        assert!(of("127.0.0.1", "127.0.0.1", false).is_empty());
        assert!(of("noban@127.0.0.1", "127.0.0.2", true).is_empty());
        assert_eq!(of("noban,in,out@127.0.0.1", "127.0.0.1", false), ["noban", "download"]);
        assert!(of("noban,out@127.0.0.1", "127.0.0.1", true).is_empty());
        assert_eq!(of("forcerelay@10.0.0.0/8", "10.1.2.3", true), ["forcerelay", "relay"]);
        assert!(of("@1.2.3.4", "1.2.3.4", true).is_empty());
        assert!("oink@1.2.3.4".parse::<Rule>().is_err());
        assert!("noban@1.2.3.4:32".parse::<Rule>().is_err());
    }
}
