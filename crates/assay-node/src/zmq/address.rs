//! Listening addresses in ZeroMQ's notation.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    Tcp(SocketAddr),
    Ipc(PathBuf),
}

impl FromStr for Address {
    type Err = io::Error;

    /// `tcp://127.0.0.1:28332`, `tcp://[::1]:28332`, `tcp://*:28332` or `ipc:///path`.
    fn from_str(text: &str) -> io::Result<Self> {
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "invalid address");
        if let Some(path) = text.strip_prefix("ipc://").filter(|path| !path.is_empty()) {
            return Ok(Self::Ipc(PathBuf::from(path)));
        }
        let (host, port) = text
            .strip_prefix("tcp://")
            .and_then(|rest| rest.rsplit_once(':'))
            .ok_or_else(invalid)?;
        let port: u16 = port.parse().map_err(|_| invalid())?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let ip = match host {
            "*" => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
            host => host.parse().map_err(|_| invalid())?,
        };
        Ok(Self::Tcp(SocketAddr::new(ip, port)))
    }
}
