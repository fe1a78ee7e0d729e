//! Server configuration.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::address::Subnet;

#[derive(Clone, Debug)]
pub struct Config {
    pub tcp: Vec<SocketAddr>,
    pub tls: Vec<SocketAddr>,
    pub certificate: Certificate,
    /// Listening address of the metrics endpoint (HTTP); loopback only, unless [`Config::expose`] is set.
    pub metrics: Option<SocketAddr>,
    /// Permits addresses that are reachable from other machines.
    pub expose: bool,
    /// Response of `server.banner`.
    pub banner: String,
    /// Response of `server.donation_address`.
    pub donation_address: String,
    /// Public host names or addresses for `server.features`.
    pub hosts: Vec<Host>,
    pub block_vsize: u64,
    /// Addresses shared by many users, such as a Tor daemon, a TLS proxy or a NAT. Limits treat each connection from them as an
    /// address of its own. Default: 127.0.0.1 and `::1`.
    pub proxies: Vec<Subnet>,
    /// Threads for requests that read from disk.
    pub workers: usize,
    pub limits: Limits,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            tcp: Vec::new(),
            tls: Vec::new(),
            certificate: Certificate::Own { directory: PathBuf::from(".") },
            metrics: None,
            expose: false,
            banner: "Welcome. This is Assay, a validating node with an Electrum server.".to_owned(),
            donation_address: String::new(),
            hosts: Vec::new(),
            block_vsize: 1_000_000,
            proxies: [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)]
                .map(Subnet::one)
                .to_vec(),
            workers: std::thread::available_parallelism().map_or(2, usize::from).max(2),
            limits: Limits::default(),
        }
    }
}

/// Source of certificate and key, both PEM files.
#[derive(Clone, Debug)]
pub enum Certificate {
    Files {
        /// Certificate chain, the server's own first.
        certificate: PathBuf,
        key: PathBuf,
    },
    /// `electrum-cert.pem` and `electrum-key.pem` in a directory; self-signed, generated at the first start.
    Own { directory: PathBuf },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    pub name: String,
    pub tcp_port: Option<u16>,
    pub ssl_port: Option<u16>,
}

/// Limits of clients. `docs/electrum.md` lists the defaults and their rationale.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    pub connections_max: usize,
    /// Open connections per IPv4 address or IPv6 /64. [`Config::proxies`] are exempt.
    pub connections_per_ip_max: usize,
    pub request_bytes_max: usize,
    /// Bytes of lines longer than 16 KiB in reception, over all clients.
    pub request_bytes_total_max: usize,
    /// Bytes per response; for a batch, of all responses together.
    pub response_bytes_max: usize,
    /// Bytes queued for sending, over all clients.
    pub output_bytes_total_max: usize,
    /// Entries per history or list of unspent outputs.
    pub entries_max: usize,
    pub batch_max: usize,
    /// Script and outpoint subscriptions per client.
    pub subscriptions_max: usize,
    /// Subscriptions per IPv4 address or IPv6 /64, over all its connections.
    pub subscriptions_per_ip_max: usize,
    pub subscriptions_total_max: usize,
    /// Rate limit per address, over all its connections, in units per second: one unit per request, per 100 µs of work, and per 4
    /// KiB received or sent. 0 disables the rate limit.
    pub units_per_second: u32,
    /// Burst per address, in units.
    pub units_burst: u32,
    /// Maximum delay of a client over its rate limit; beyond it requests get errors.
    pub throttle_max: Duration,
    /// Consecutive rejected or malformed requests before the server disconnects the client.
    pub refusals_max: u32,
    /// Timeout from connection to first request, including the TLS handshake.
    pub first_request: Duration,
    pub idle: Duration,
    /// Timeout for a client to read 64 KiB of queued output.
    pub write_stall: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            connections_per_ip_max: 32,
            request_bytes_max: 4 << 20,
            request_bytes_total_max: 64 << 20,
            response_bytes_max: 20 << 20,
            output_bytes_total_max: 256 << 20,
            entries_max: 125_000,
            batch_max: 1_000,
            subscriptions_max: 50_000,
            subscriptions_per_ip_max: 100_000,
            subscriptions_total_max: 1_000_000,
            units_per_second: 500,
            units_burst: 10_000,
            throttle_max: Duration::from_secs(5),
            refusals_max: 50,
            first_request: Duration::from_secs(15),
            idle: Duration::from_mins(10),
            write_stall: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// Maximum bytes queued for one client: two responses of maximum size.
    pub(super) fn output_bytes_max(&self) -> usize {
        2 * self.response_bytes_max + (64 << 10)
    }
}
