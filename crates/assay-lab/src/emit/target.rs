//! Target nodes of an emission, parsed from the command line.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::plan::Delivery;

/// A running node: `VIA@HOST:PORT`, followed by comma-separated settings.
#[derive(Debug, Clone, PartialEq)]
pub struct EmitTarget {
    /// Name in output.
    pub name: String,
    pub via: Delivery,
    /// Address of RPC or P2P, depending on `via`.
    pub address: SocketAddr,
    /// RPC of a node that is fed as a peer: reports its mempool and its tip.
    pub rpc: Option<SocketAddr>,
    pub login: Login,
    /// Simulated link: one-way delay.
    pub delay: Duration,
    /// Rate of that link, Mbit/s each way.
    pub rate_mbit: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    Cookie(PathBuf),
    /// User and password.
    Password(String),
    None,
}

impl EmitTarget {
    pub(crate) fn rpc_address(&self) -> Option<SocketAddr> {
        if self.via == Delivery::Rpc { Some(self.address) } else { self.rpc }
    }
}

impl FromStr for EmitTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let error = |why: &str| format!("{text}: {why}");
        let (via, rest) = text
            .split_once('@')
            .ok_or_else(|| error("write rpc@HOST:PORT, p2p@HOST:PORT or compact@HOST:PORT"))?;
        let via = [Delivery::Rpc, Delivery::P2p, Delivery::Compact]
            .into_iter()
            .find(|delivery| delivery.as_str() == via)
            .ok_or_else(|| error("use rpc, p2p or compact before the @"))?;
        let mut parts = rest.split(',');
        let address = parts.next().and_then(address_of);
        let address = address
            .ok_or_else(|| error("behind the @ comes an address such as 127.0.0.1:18444"))?;
        let mut target = Self {
            name: format!("{}-{}", via.as_str(), address.port()),
            via,
            address,
            rpc: None,
            login: Login::None,
            delay: Duration::ZERO,
            rate_mbit: None,
        };
        for part in parts {
            target.set(part).map_err(|why| error(&why))?;
        }
        if target.rpc_address().is_some() && target.login == Login::None {
            return Err(error("RPC needs cookie=FILE or user=NAME:PASSWORD"));
        }
        if via == Delivery::Rpc && (!target.delay.is_zero() || target.rate_mbit.is_some()) {
            return Err(error("delay and rate are for peers"));
        }
        Ok(target)
    }
}

impl EmitTarget {
    fn set(&mut self, part: &str) -> Result<(), String> {
        let (key, value) = part.split_once('=').ok_or_else(|| format!("{part} is no KEY=VALUE"))?;
        let bad = |rule: &str| format!("{part}: {rule}");
        match key {
            "name" if !value.is_empty() => value.clone_into(&mut self.name),
            "rpc" if self.via != Delivery::Rpc => {
                self.rpc = Some(address_of(value).ok_or_else(|| bad("use HOST:PORT"))?);
            }
            "cookie" => self.login = Login::Cookie(PathBuf::from(value)),
            "user" if value.contains(':') => self.login = Login::Password(value.to_owned()),
            "delay" => {
                let number = value.strip_suffix("ms").and_then(|number| number.parse().ok());
                let number = number.filter(|number: &f64| (0.0..=10_000.0).contains(number));
                let milliseconds = number.ok_or_else(|| bad("use 0ms to 10000ms"))?;
                self.delay = Duration::from_secs_f64(milliseconds / 1000.0);
            }
            "rate" => {
                let number = value.parse().ok().filter(|number: &f64| *number > 0.0);
                self.rate_mbit = Some(number.ok_or_else(|| bad("use a number of Mbit/s"))?);
            }
            _ => {
                let keys = "the keys are name, rpc (for p2p and compact), cookie, user (NAME:PASSWORD), delay and rate";
                return Err(bad(keys));
            }
        }
        Ok(())
    }
}

impl fmt::Display for EmitTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.via.as_str(), self.address)
    }
}

/// Parses an address; `localhost` is a loopback address.
fn address_of(text: &str) -> Option<SocketAddr> {
    let local =
        |port: &str| Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port.parse().ok()?));
    match text.strip_prefix("localhost:") {
        Some(port) => local(port),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read() {
        let text = "compact@127.0.0.1:18444,rpc=localhost:18443,cookie=/tmp/.cookie,name=a,delay=50ms,rate=40";
        let target: EmitTarget = text.parse().unwrap();
        assert_eq!((target.via, target.name.as_str()), (Delivery::Compact, "a"));
        assert_eq!(target.rpc_address().map(|address| address.port()), Some(18443));
        assert_eq!(target.delay, Duration::from_millis(50));
        assert_eq!(target.to_string(), "compact@127.0.0.1:18444");
        let plain: EmitTarget = "p2p@[::1]:18444".parse().unwrap();
        assert_eq!((plain.name.as_str(), plain.rpc_address()), ("p2p-18444", None));
    }

    #[test]
    fn errors_name_the_syntax() {
        let errors = [
            "127.0.0.1:1",
            "peer@127.0.0.1:1",
            "p2p@nowhere",
            "rpc@127.0.0.1:1",
            "p2p@127.0.0.1:1,delay=5s",
            "p2p@127.0.0.1:1,speed=5",
            "p2p@127.0.0.1:1,name",
            "p2p@127.0.0.1:1,rate=-1",
            "rpc@127.0.0.1:1,user=a:b,delay=5ms",
        ]
        .map(|text| text.parse::<EmitTarget>().unwrap_err());
        insta::assert_snapshot!(errors.join("\n"), @"
        127.0.0.1:1: write rpc@HOST:PORT, p2p@HOST:PORT or compact@HOST:PORT
        peer@127.0.0.1:1: use rpc, p2p or compact before the @
        p2p@nowhere: behind the @ comes an address such as 127.0.0.1:18444
        rpc@127.0.0.1:1: RPC needs cookie=FILE or user=NAME:PASSWORD
        p2p@127.0.0.1:1,delay=5s: delay=5s: use 0ms to 10000ms
        p2p@127.0.0.1:1,speed=5: speed=5: the keys are name, rpc (for p2p and compact), cookie, user (NAME:PASSWORD), delay and rate
        p2p@127.0.0.1:1,name: name is no KEY=VALUE
        p2p@127.0.0.1:1,rate=-1: rate=-1: use a number of Mbit/s
        rpc@127.0.0.1:1,user=a:b,delay=5ms: delay and rate are for peers
        ");
    }
}
