//! SOCKS5 client (RFC 1928; user and password by RFC 1929), as in Core (`netbase.cpp`, `Socks5`): the proxy
//! resolves the host.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::ended::is_timeout;
use super::rng::random;

#[derive(Clone, Copy)]
pub(super) struct ProxyOptions<'a> {
    pub(super) proxy: SocketAddr,
    /// Use a unique user name, for which Tor uses a separate circuit.
    pub(super) isolates: bool,
    /// Timeout of the proxy's TCP connection.
    pub(super) patience: Duration,
    /// True when the node stops, which ends the attempt.
    pub(super) is_stopping: &'a dyn Fn() -> bool,
}

/// Connects to a host and port through a proxy.
///
/// # Errors
/// The proxy is unreachable, not SOCKS5 or unable to connect, or the node stops.
pub(super) fn connect(way: &ProxyOptions<'_>, host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&way.proxy, way.patience)?;
    stream.set_read_timeout(Some(LOOK))?;
    stream.set_write_timeout(Some(ANSWER))?;
    let mut connection = ProxyStream { stream, is_stopping: way.is_stopping };
    agree(&mut connection, way.isolates)?;
    let length = u8::try_from(host.len()).map_err(|_| failed("the host's name is too long"))?;
    let mut request = vec![VERSION, CONNECT, 0, NAME, length];
    request.extend_from_slice(host.as_bytes());
    request.extend_from_slice(&port.to_be_bytes());
    connection.stream.write_all(&request)?;
    let [version, reply, _, kind] = connection.read()?;
    if version != VERSION {
        return Err(failed("proxy failed to accept request"));
    }
    if reply != 0 {
        let why = why(reply);
        return Err(io::Error::other(format!("Socks5() connect to {host}:{port} failed: {why}")));
    }
    // The bound address is irrelevant.
    let length = match kind {
        V4 => 4,
        V6 => 16,
        NAME => usize::from(connection.read::<1>()?[0]),
        _ => return Err(failed("malformed proxy response")),
    };
    let mut address = [0; u8::MAX as usize + 2];
    connection.fill(&mut address[..length + 2])?;
    let stream = connection.stream;
    stream.set_read_timeout(None)?;
    stream.set_write_timeout(None)?;
    Ok(stream)
}

/// Connection to a proxy, interruptible by the node's stop.
struct ProxyStream<'a> {
    stream: TcpStream,
    is_stopping: &'a dyn Fn() -> bool,
}

impl ProxyStream<'_> {
    fn read<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads exactly `out.len()` bytes.
    fn fill(&mut self, mut out: &mut [u8]) -> io::Result<()> {
        let deadline = Instant::now() + ANSWER;
        while !out.is_empty() {
            match self.stream.read(out) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => out = &mut out[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if !is_timeout(&error) => return Err(error),
                Err(_) if (self.is_stopping)() => return Err(failed("the node stops")),
                Err(error) if Instant::now() >= deadline => return Err(error),
                Err(_) => {}
            }
        }
        Ok(())
    }
}

fn agree(connection: &mut ProxyStream<'_>, isolates: bool) -> io::Result<()> {
    let methods: &[u8] = if isolates { &[VERSION, 2, NONE, PASSWORD] } else { &[VERSION, 1, NONE] };
    connection.stream.write_all(methods)?;
    match connection.read()? {
        [VERSION, NONE] => Ok(()),
        [VERSION, PASSWORD] if isolates => {
            let name = format!("{:016x}", random(u64::MAX));
            let length = name.len() as u8;
            let name = [&[length], name.as_bytes()].concat();
            connection.stream.write_all(&[&[1], name.as_slice(), name.as_slice()].concat())?;
            match connection.read()? {
                [1, 0] => Ok(()),
                _ => Err(failed("proxy authentication unsuccessful")),
            }
        }
        [VERSION, _] => Err(failed("proxy requested wrong authentication method")),
        _ => Err(failed("proxy failed to initialize")),
    }
}

fn failed(text: &'static str) -> io::Error {
    io::Error::other(text)
}

/// Core's wording (`netbase.cpp`, `Socks5ErrorString`); from 0xf0 on Tor's codes.
fn why(reply: u8) -> &'static str {
    match reply {
        1 => "general failure",
        2 => "connection not allowed",
        3 => "network unreachable",
        4 => "host unreachable",
        5 => "connection refused",
        6 => "TTL expired",
        7 => "protocol error",
        8 => "address type not supported",
        0xf0 => "onion service descriptor can not be found",
        0xf1 => "onion service descriptor is invalid",
        0xf2 => "onion service introduction failed",
        0xf3 => "onion service rendezvous failed",
        0xf4 => "onion service missing client authorization",
        0xf5 => "onion service wrong client authorization",
        0xf6 => "onion service invalid address",
        0xf7 => "onion service introduction timed out",
        _ => "unknown",
    }
}

const VERSION: u8 = 5;
const CONNECT: u8 = 1;
/// Authentication methods: none, user and password.
const NONE: u8 = 0;
const PASSWORD: u8 = 2;
/// Address types.
const V4: u8 = 1;
const NAME: u8 = 3;
const V6: u8 = 4;
/// Core `netbase.cpp`, `g_socks5_recv_timeout`.
const ANSWER: Duration = Duration::from_secs(20);
/// Poll interval for the node's stop.
const LOOK: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    fn way(proxy: SocketAddr, isolates: bool, is_stopping: &dyn Fn() -> bool) -> ProxyOptions<'_> {
        ProxyOptions { proxy, isolates, patience: Duration::from_secs(5), is_stopping }
    }

    /// Runs a scripted proxy; returns the bytes it received and the result of the connection.
    fn exchange(
        isolates: bool,
        answers: &'static [(usize, &'static [u8])],
    ) -> (Vec<u8>, io::Result<TcpStream>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = listener.local_addr().unwrap();
        let serving = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut heard = Vec::new();
            for (wanted, answer) in answers {
                let mut bytes = vec![0; *wanted];
                stream.read_exact(&mut bytes).unwrap();
                heard.extend(bytes);
                stream.write_all(answer).unwrap();
            }
            heard
        });
        let made = connect(&way(proxy, isolates, &|| false), "1.2.3.4", 8333);
        (serving.join().unwrap(), made)
    }

    #[test]
    fn proxy_receives_the_host_name() {
        let (heard, made) = exchange(false, &[(3, &[5, 0]), (14, &[5, 0, 0, 1, 9, 9, 9, 9, 0, 1])]);
        assert!(made.is_ok());
        assert_eq!(
            heard,
            [&[5, 1, 0, 5, 1, 0, 3, 7], b"1.2.3.4".as_slice(), &[0x20, 0x8d]].concat()
        );
    }

    #[test]
    fn each_connection_uses_separate_credentials() {
        let answers: &'static [(usize, &'static [u8])] =
            &[(4, &[5, 2]), (35, &[1, 0]), (14, &[5, 0, 0, 3, 1, b'x', 0, 1])];
        let (one, made) = exchange(true, answers);
        assert!(made.is_ok());
        let (other, _) = exchange(true, answers);
        assert_eq!(one[..6], [5, 2, 0, 2, 1, 16]);
        assert_eq!(one[6..22], one[23..39], "the password is the name");
        assert_ne!(one[6..22], other[6..22]);
    }

    #[test]
    fn reports_proxy_errors() {
        type Answers = &'static [(usize, &'static [u8])];
        let table: [(Answers, &str); 5] = [
            (&[(3, &[4, 0])], "failed to initialize"),
            (&[(3, &[5, 2])], "wrong authentication"),
            (&[(3, &[5, 0]), (14, &[5, 4, 0, 1])], "host unreachable"),
            (&[(3, &[5, 0]), (14, &[5, 0, 0, 9])], "malformed"),
            (&[(3, &[5, 0]), (14, &[5, 0, 0])], "unexpected end of file"),
        ];
        for (answers, expected) in table {
            let (_, made) = exchange(false, answers);
            let fault = made.unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        }
    }

    #[test]
    fn stop_interrupts_a_silent_proxy() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = listener.local_addr().unwrap();
        let start = Instant::now();
        let stops = || start.elapsed() > LOOK;
        let fault = connect(&way(proxy, true, &stops), "1.2.3.4", 8333).unwrap_err();
        assert_eq!(fault.to_string(), "the node stops");
        assert!(start.elapsed() < ANSWER / 2, "{:?}", start.elapsed());
    }
}
