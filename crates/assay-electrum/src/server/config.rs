//! How a server is set up, and how much memory that may take.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::address::Subnet;

/// Everything a server needs to know before it starts.
#[derive(Clone, Debug)]
pub struct Config {
    /// Addresses to serve TCP on.
    pub tcp: Vec<SocketAddr>,
    /// Addresses to serve TLS on.
    pub tls: Vec<SocketAddr>,
    /// Certificate and key for TLS.
    pub certificate: Certificate,
    /// Where to serve metrics over HTTP; loopback unless [`Config::expose`] says otherwise.
    pub metrics: Option<SocketAddr>,
    /// Whether addresses that other machines reach are allowed.
    pub expose: bool,
    /// What `server.banner` answers.
    pub banner: String,
    /// What `server.donation_address` answers.
    pub donation_address: String,
    /// Names or addresses under which `server.features` says that this server can be reached.
    pub hosts: Vec<Host>,
    /// Virtual size of a block, for fee estimates.
    pub block_vsize: u64,
    /// Addresses that many users share, such as those of a Tor daemon, a TLS proxy or a provider
    /// that has few: connections from there are each an address of their own to the limits. By
    /// default 127.0.0.1 and `::1`.
    pub proxies: Vec<Subnet>,
    /// Threads that answer questions which read from disk.
    pub workers: usize,
    /// What clients may use.
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

/// Where certificate and key come from. Both are PEM files.
#[derive(Clone, Debug)]
pub enum Certificate {
    /// Files that somebody else made.
    Files {
        /// The chain of certificates, the server's own first.
        certificate: PathBuf,
        /// Its private key.
        key: PathBuf,
    },
    /// `electrum-cert.pem` and `electrum-key.pem` in a directory; made at the first start, signed
    /// by itself.
    Own {
        /// The directory.
        directory: PathBuf,
    },
}

/// A name under which a server can be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Host name or address.
    pub name: String,
    /// Port for TCP.
    pub tcp_port: Option<u16>,
    /// Port for TLS.
    pub ssl_port: Option<u16>,
}

/// What clients may use. `docs/electrum.md` lists the defaults with their reasons.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Open connections.
    pub connections_max: usize,
    /// Open connections of one IPv4 address or one /64 of IPv6. [`Config::proxies`] are exempt.
    pub connections_per_ip_max: usize,
    /// Bytes of a line from a client.
    pub request_bytes_max: usize,
    /// Bytes of lines longer than 16 KiB that are received at once, all clients together.
    pub request_bytes_total_max: usize,
    /// Bytes of an answer; of a batch, all answers together.
    pub response_bytes_max: usize,
    /// Bytes that wait to be sent, all clients together.
    pub output_bytes_total_max: usize,
    /// Entries of a history or of a list of unspent outputs.
    pub entries_max: usize,
    /// Requests in a batch.
    pub batch_max: usize,
    /// Subscriptions of a client: scripts and outpoints.
    pub subscriptions_max: usize,
    /// Subscriptions of one IPv4 address or one /64 of IPv6, over all its connections.
    pub subscriptions_per_ip_max: usize,
    /// Subscriptions of all clients.
    pub subscriptions_total_max: usize,
    /// What an address may use per second in the long run, over all its connections, in units: one
    /// per request, one per 100 µs of work, one per 4 KiB received or sent. 0 switches the budget
    /// off.
    pub units_per_second: u32,
    /// What an address may use at once.
    pub units_burst: u32,
    /// How long a client that is over its budget is kept waiting at most; after that it gets
    /// errors.
    pub throttle_max: Duration,
    /// Errors of that kind, and lines that are no requests, in a row before the connection is
    /// closed.
    pub refusals_max: u32,
    /// Time from the connection to the first request, the TLS handshake included.
    pub first_request: Duration,
    /// Time without any request, after which the connection is closed.
    pub idle: Duration,
    /// Time in which a client must take 64 KiB that wait for it.
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
    /// Bytes that may wait for one client: two answers of the largest size.
    pub(super) fn output_bytes_max(&self) -> usize {
        2 * self.response_bytes_max + (64 << 10)
    }
}
