//! Source addresses of clients.
//!
//! A server with per-address accounting would treat all clients as one. On Linux any address of 127.0.0.0/8 can be bound, so each
//! honest client gets its own address, as home users have, and hostile clients share a few.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use mio::net::TcpStream;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, connect, ipproto, socket_with, sockopt,
};

/// Hostile clients per address.
const HOSTILE_PER_ADDRESS: usize = 16;

/// Source address; `None` leaves it to the system.
pub(crate) type Source = Option<Ipv4Addr>;

/// True if clients of a server at `address` can have addresses of their own.
pub(crate) fn is_possible(address: SocketAddr) -> bool {
    cfg!(target_os = "linux")
        && matches!(address.ip(), IpAddr::V4(address) if address.is_loopback())
}

/// Address of an honest client: distinct for the first 62,500, which exceeds the number of ports.
pub(crate) const fn honest(index: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 1, (index / 250 % 250) as u8, (1 + index % 250) as u8)
}

/// Address of a hostile client, shared with others.
pub(crate) const fn hostile(index: usize) -> Ipv4Addr {
    let index = index / HOSTILE_PER_ADDRESS;
    Ipv4Addr::new(127, 66, (index / 250 % 250) as u8, (1 + index % 250) as u8)
}

/// Starts a non-blocking connection, from `source` if given.
pub(crate) fn dial(address: SocketAddr, source: Source) -> io::Result<TcpStream> {
    let Some(source) = source else { return TcpStream::connect(address) };
    let socket = bound(source, SocketFlags::NONBLOCK)?;
    match connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(TcpStream::from_std(socket.into())),
        Err(error) => Err(error.into()),
    }
}

/// Connects and waits.
pub(crate) fn dial_and_wait(
    address: SocketAddr,
    source: Source,
) -> io::Result<std::net::TcpStream> {
    let Some(source) = source else { return std::net::TcpStream::connect(address) };
    let socket = bound(source, SocketFlags::empty())?;
    connect(&socket, &address)?;
    Ok(socket.into())
}

/// A socket bound to `source`.
fn bound(source: Ipv4Addr, flags: SocketFlags) -> io::Result<OwnedFd> {
    let flags = flags | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    // A server may have just closed a connection from the same port.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &SocketAddr::from((source, 0)))?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn honest_clients_share_no_address_and_hostile_ones_do() {
        let all: std::collections::HashSet<_> = (0..1000).map(honest).collect();
        assert_eq!(all.len(), 1000);
        assert_eq!(hostile(0), hostile(HOSTILE_PER_ADDRESS - 1));
        assert_ne!(hostile(0), hostile(HOSTILE_PER_ADDRESS));
        assert!(!all.contains(&hostile(7)));
    }

    #[test]
    fn a_server_sees_where_a_client_connects_from() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("it is bound");
        if !is_possible(address) {
            return;
        }
        let client = dial(address, Some(honest(3))).expect("loopback");
        let (mut stream, peer) = listener.accept().expect("a client");
        assert_eq!(peer.ip(), IpAddr::V4(honest(3)));
        drop(client);
        assert_eq!(stream.read(&mut [0; 1]).expect("it ends"), 0);
    }
}
