//! Built-in DNS seeds and addresses of long-lived nodes (Core `kernel/chainparams.cpp`, `chainparamsseeds.h`).

use assay_engine::ChainParams;
use assay_wire::p2p::PeerAddress;

use super::dns::numeric;
use super::{NODE_NETWORK, NODE_P2P_V2, NODE_WITNESS};

#[derive(Clone, Copy, Debug)]
pub(super) struct Seeds {
    pub(super) names: &'static [&'static str],
    /// Addresses, one per line.
    addresses: &'static str,
}

impl Seeds {
    /// Seeds of a chain; a custom signet has none.
    pub(super) fn of(params: &ChainParams) -> Self {
        let is_known =
            ChainParams::by_name(params.name).is_some_and(|known| known.magic == params.magic);
        let (names, addresses): (&[_], _) = match params.name {
            "main" => (MAIN, include_str!("seeds/main.txt")),
            "test" => (TEST, include_str!("seeds/test.txt")),
            "testnet4" => (TESTNET4, include_str!("seeds/testnet4.txt")),
            "signet" if is_known => (SIGNET, include_str!("seeds/signet.txt")),
            "regtest" => (REGTEST, ""),
            _ => (&[], ""),
        };
        Self { names, addresses }
    }

    /// Addresses with their ages in seconds from `age_s`, one to two weeks.
    pub(super) fn addresses(
        &self,
        now_s: u64,
        mut age_s: impl FnMut() -> u64,
    ) -> impl Iterator<Item = PeerAddress> {
        let endpoints = self.addresses.lines().filter_map(|line| numeric(line, 0));
        endpoints.map(move |mut endpoint| {
            endpoint.host = endpoint.host.or_cjdns();
            let time = u32::try_from(now_s.saturating_sub(age_s())).unwrap_or(u32::MAX);
            PeerAddress { time, services: ASSUMED, endpoint }
        })
    }
}

/// Assumed services of nodes from seeds (Core `protocol.h`, `SeedsAssumedServiceFlags`).
pub(super) const ASSUMED: u64 = NODE_NETWORK | NODE_WITNESS | NODE_P2P_V2;
/// Services requested in the name (`SeedsServiceFlags`).
pub(super) const ASKED: u64 = NODE_NETWORK | NODE_WITNESS;
const MAIN: &[&str] = &[
    "dnsseed.bluematt.me.",
    "seed.bitcoin.jonasschnelli.ch.",
    "seed.btc.petertodd.net.",
    "seed.bitcoin.sprovoost.nl.",
    "dnsseed.emzy.de.",
    "seed.bitcoin.wiz.biz.",
    "seed.mainnet.achownodes.xyz.",
];
const TEST: &[&str] = &[
    "testnet-seed.bitcoin.jonasschnelli.ch.",
    "seed.tbtc.petertodd.net.",
    "testnet-seed.bluematt.me.",
    "seed.testnet.achownodes.xyz.",
];
const TESTNET4: &[&str] = &["seed.testnet4.bitcoin.sprovoost.nl.", "seed.testnet4.wiz.biz."];
const SIGNET: &[&str] = &["seed.signet.bitcoin.sprovoost.nl.", "seed.signet.achownodes.xyz."];
/// Cannot resolve; used only through a proxy.
const REGTEST: &[&str] = &["dummySeed.invalid."];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_addresses_are_routable() {
        for (chain, names, least) in
            [("main", 7, 2000), ("test", 4, 100), ("testnet4", 2, 100), ("signet", 2, 100)]
        {
            let params = ChainParams::by_name(chain).unwrap();
            let seeds = Seeds::of(&params);
            assert_eq!(seeds.names.len(), names, "{chain}");
            let addresses: Vec<_> = seeds.addresses(1_000_000, || 5).collect();
            assert_eq!(addresses.len(), seeds.addresses.lines().count(), "{chain}");
            assert!(addresses.len() >= least, "{chain}");
            for address in addresses {
                assert!(address.endpoint.host.is_routable(), "{address:?}");
                assert_eq!((address.time, address.services), (999_995, 2057));
            }
        }
    }

    #[test]
    fn test_chains_have_no_seeds() {
        for chain in ["regtest", "bch-regtest", "bch-main"] {
            let Some(params) = ChainParams::by_name(chain) else { continue };
            assert_eq!(Seeds::of(&params).addresses(9, || 0).count(), 0, "{chain}");
        }
        let seeds = Seeds::of(&ChainParams::custom_signet(vec![0x51]));
        assert!(seeds.names.is_empty() && seeds.addresses.is_empty());
    }
}
