//! Addresses that clients connect from.
//!
//! A server that accounts for what an address uses would take all our clients for one. On Linux any address of 127.0.0.0/8 may be
//! bound, so that each honest client has an address of its own, as users at home have, and hostile ones share a few.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use mio::net::TcpStream;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, connect, ipproto, socket_with, sockopt,
};

/// Hostile clients of one address.
const HOSTILE_PER_ADDRESS: usize = 16;

/// Where a client connects from; `None` leaves it to the system.
pub(crate) type Source = Option<Ipv4Addr>;

/// Whether clients of a server at `address` can have addresses of their own.
pub(crate) fn is_possible(address: SocketAddr) -> bool {
    cfg!(target_os = "linux")
        && matches!(address.ip(), IpAddr::V4(address) if address.is_loopback())
}

/// The address of an honest client: one for each of the first 62,500, which is more than there are ports.
pub(crate) const fn honest(index: usize) -> Ipv4Addr {
    Ipv4Addr::new(127, 1, (index / 250 % 250) as u8, (1 + index % 250) as u8)
}

/// The address of a hostile client, which it shares with others.
pub(crate) const fn hostile(index: usize) -> Ipv4Addr {
    let index = index / HOSTILE_PER_ADDRESS;
    Ipv4Addr::new(127, 66, (index / 250 % 250) as u8, (1 + index % 250) as u8)
}

/// Begins to connect without waiting, from `source` where one is given.
pub(crate) fn dial(address: SocketAddr, source: Source) -> io::Result<TcpStream> {
    let Some(source) = source else { return TcpStream::connect(address) };
    let socket = bound(source, SocketFlags::NONBLOCK)?;
    match connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(TcpStream::from_std(socket.into())),
        Err(error) => Err(error.into()),
    }
}

/// Connects and waits for it.
pub(crate) fn dial_and_wait(
    address: SocketAddr,
    source: Source,
) -> io::Result<std::net::TcpStream> {
    let Some(source) = source else { return std::net::TcpStream::connect(address) };
    let socket = bound(source, SocketFlags::empty())?;
    connect(&socket, &address)?;
    Ok(socket.into())
}

/// A socket that connects from `source`.
fn bound(source: Ipv4Addr, flags: SocketFlags) -> io::Result<OwnedFd> {
    let flags = flags | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    // A server may have closed a connection from the same port a moment ago.
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
