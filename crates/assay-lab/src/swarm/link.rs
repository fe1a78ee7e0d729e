//! A non-blocking connection to a server: bytes out, lines in; plain or TLS.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;

use mio::net::TcpStream;
use rustls::{ClientConfig, ClientConnection, pki_types::ServerName};

use super::source::{self, Source};

/// Bytes per write: loopback delivers them before the call returns, which blocks the core. Over a network they arrive in pieces,
/// too.
const WRITE_BYTES: usize = 16 * 1024;
const READ_BYTES: usize = 64 * 1024;
/// Capacity above which an empty input buffer shrinks.
const INPUT_KEPT: usize = 1 << 20;

/// A connection. No call blocks.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) tcp: TcpStream,
    tls: Option<Box<ClientConnection>>,
    out: Vec<u8>,
    out_at: usize,
    /// Bytes of one read.
    piece: Box<[u8]>,
    input: Vec<u8>,
    input_at: usize,
    scanned: usize,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
}

impl Link {
    /// Starts to connect, from the address `source` if given.
    pub(crate) fn connect(
        address: SocketAddr,
        source: Source,
        tls: Option<&Arc<ClientConfig>>,
    ) -> io::Result<Self> {
        let tcp = source::dial(address, source)?;
        let name = ServerName::IpAddress(address.ip().into());
        let tls = tls
            .map(|config| ClientConnection::new(Arc::clone(config), name))
            .transpose()
            .map_err(io::Error::other)?
            .map(Box::new);
        Ok(Self {
            tcp,
            tls,
            out: Vec::new(),
            out_at: 0,
            piece: vec![0; READ_BYTES].into(),
            input: Vec::new(),
            input_at: 0,
            scanned: 0,
            bytes_in: 0,
            bytes_out: 0,
        })
    }

    /// True if connected; `Err` if rejected.
    pub(crate) fn is_open(&self) -> io::Result<bool> {
        if let Some(error) = self.tcp.take_error()? {
            return Err(error);
        }
        match self.tcp.peer_addr() {
            Ok(_) => {
                // Small requests must not wait for each other; a failure only worsens figures.
                let _ = self.tcp.set_nodelay(true);
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::NotConnected => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Appends to the queue through `write`; the appended bytes count as sent. [`Link::flush`] sends them.
    pub(crate) fn compose<R>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let before = self.out.len();
        let result = write(&mut self.out);
        self.bytes_out += (self.out.len() - before) as u64;
        result
    }

    /// Unsent bytes.
    pub(crate) fn unsent(&self) -> usize {
        self.out.len() - self.out_at
    }

    /// Sends as much as the socket accepts.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            None => {
                while self.out_at < self.out.len() {
                    let end = self.out.len().min(self.out_at + WRITE_BYTES);
                    match self.tcp.write(&self.out[self.out_at..end]) {
                        Ok(0) => return Err(ErrorKind::WriteZero.into()),
                        Ok(count) => self.out_at += count,
                        Err(error) if is_not_now(&error) => break,
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        Err(error) => return Err(error),
                    }
                }
            }
            Some(tls) => {
                while self.out_at < self.out.len() || tls.wants_write() {
                    self.out_at += tls.writer().write(&self.out[self.out_at..])?;
                    match tls.write_tls(&mut self.tcp) {
                        Ok(_) => {}
                        Err(error) if is_not_now(&error) => break,
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        Err(error) => return Err(error),
                    }
                    if tls.is_handshaking() && !tls.wants_write() {
                        break;
                    }
                }
            }
        }
        if self.out_at == self.out.len() {
            self.out.clear();
            self.out_at = 0;
        }
        Ok(())
    }

    /// Reads all available bytes; `false` if the other side has closed.
    pub(crate) fn fill(&mut self) -> io::Result<bool> {
        loop {
            if let Some(tls) = &mut self.tls {
                let is_open = match tls.read_tls(&mut self.tcp) {
                    Ok(count) => count > 0,
                    Err(error) if is_not_now(&error) => return Ok(true),
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error),
                };
                let state = tls.process_new_packets().map_err(io::Error::other)?;
                let waiting = state.plaintext_bytes_to_read();
                let before = self.input.len();
                self.input.resize(before + waiting, 0);
                tls.reader().read_exact(&mut self.input[before..])?;
                self.bytes_in += waiting as u64;
                if !is_open || state.peer_has_closed() {
                    return Ok(false);
                }
                continue;
            }
            match self.tcp.read(&mut self.piece) {
                Ok(0) => return Ok(false),
                Ok(count) => {
                    self.input.extend_from_slice(&self.piece[..count]);
                    self.bytes_in += count as u64;
                }
                Err(error) if is_not_now(&error) => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// True if TLS has data to send, as during the handshake.
    pub(crate) fn wants_flush(&self) -> bool {
        self.unsent() > 0 || self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Range of the next complete line in [`Link::line`]; consumes it.
    pub(crate) fn next_line(&mut self) -> Option<Range<usize>> {
        if let Some(length) = memchr::memchr(b'\n', &self.input[self.scanned..]) {
            let line = self.input_at..self.scanned + length;
            self.input_at = line.end + 1;
            self.scanned = self.input_at;
            return Some(line);
        }
        self.input.drain(..self.input_at);
        self.input_at = 0;
        self.scanned = self.input.len();
        if self.input.is_empty() && self.input.capacity() > INPUT_KEPT {
            self.input = Vec::new();
        }
        None
    }

    /// Discards all input.
    pub(crate) fn discard(&mut self) {
        self.input.clear();
        (self.input_at, self.scanned) = (0, 0);
    }

    /// The bytes of a line, valid until the next call.
    pub(crate) fn line(&self, place: Range<usize>) -> &[u8] {
        &self.input[place]
    }
}

fn is_not_now(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected)
}
