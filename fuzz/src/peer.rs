//! A node on a chain of its own, and a peer that sends it the messages of an input: over a socket, on either version of the
//! transport, and on a connection that either side makes.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use assay_forge::{ForgeOptions, Ledger, Recipe, forge};
use assay_node::bip324::{
    GARBAGE_BYTES_MAX, HEAD_BYTES, Handshake, KEY_BYTES, LENGTH_BYTES, Session, TAG_BYTES,
    TERMINATOR_BYTES, name_bytes, split,
};
use assay_node::{Node, NodeConfig, P2pConfig};
use assay_wire::Header;
use assay_wire::p2p::{Command, FrameHeader, Message, NetAddress, Version};

use crate::input::{Input, folder};
use crate::messages::{self, MAGIC};

/// The chain that node and seeds share: the node knows all blocks but the last [`UNKNOWN_BLOCKS`].
pub const RECIPE: &str = "bitcoin-scaling";
/// Blocks that only seeds hold.
pub const UNKNOWN_BLOCKS: usize = 4;

/// Forges the chain in a folder; gives its blocks in order.
pub fn blocks(folder: &std::path::Path) -> Vec<Vec<u8>> {
    let recipe = Recipe::builtin(RECIPE).expect("a recipe of the program");
    let options =
        ForgeOptions { seed: 1, scale: 0.01, stop_height: Some(112), ..ForgeOptions::default() };
    forge(&recipe, &options, folder, &mut ()).expect("a forged chain");
    let ledger = Ledger::read(folder).expect("its ledger");
    let block = |line: &assay_forge::BlockLine| {
        let file = std::fs::read(folder.join(&line.file)).expect("its block file");
        let start = line.offset as usize;
        file[start..start + line.bytes as usize].to_vec()
    };
    ledger.blocks.iter().map(block).collect()
}

/// The node, started at first use.
pub fn node() -> &'static Node {
    static NODE: LazyLock<Node> = LazyLock::new(|| {
        let chain = folder().join("chain");
        let blocks = blocks(&chain);
        let mut config = NodeConfig::new("regtest", folder().join("data")).expect("a known chain");
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        config.rpc.bind = vec![local];
        config.rpc.password = Some(("u".to_owned(), "p".to_owned()));
        config.log = None;
        config.handle_signals = false;
        config.engine.persist_mempool = false;
        config.engine.tip_age_max_s = u64::from(u32::MAX);
        config.engine.threads = 1;
        let mut p2p = P2pConfig::new(local);
        p2p.connect = Some(Vec::new());
        p2p.bloom_filters = true;
        p2p.whitelist = vec!["noban,mempool,addr,download,relay@127.0.0.1".to_owned()];
        config.p2p = Some(p2p);
        let node = Node::start(&config).expect("a node");
        let known = blocks.len() - UNKNOWN_BLOCKS;
        for block in blocks.into_iter().take(known) {
            let outcome = node.engine().blocks().submit(block);
            assert!(
                !matches!(outcome, assay_engine::SubmitOutcome::Rejected { .. }),
                "{outcome:?}"
            );
        }
        assert!(node.engine().chain().tip().height > 100);
        node
    });
    &NODE
}

/// A peer of a running node: messages of every kind in any order, on both versions of the transport and on connections that
/// either side makes. The node answers a ping behind them or ends the connection, what it sends is well formed, and it ends a
/// connection that the peer has ended.
pub fn peer(data: &[u8]) {
    let mut input = Input(data);
    let (manner, key, words) = (Manner(input.byte()), input.byte(), input.byte());
    let garbage = input.counted();
    let Some(mut talk) = Talk::open(manner, key, garbage) else { return };
    if !manner.is_correct() && talk.send_raw(garbage).is_err() {
        return;
    }
    let said = say(&mut talk, manner, words, &mut input);
    if matches!(said, Ok(true)) {
        // The node reports an error by ending the connection.
        let _ = talk.settle();
    }
    talk.close();
}

/// Sends the whole input; true if the node can still find the message boundaries.
fn say(talk: &mut Talk, manner: Manner, words: u8, input: &mut Input<'_>) -> io::Result<bool> {
    if manner.opens() {
        talk.greet(words)?;
    }
    let mut is_framed = manner.opens() && manner.is_correct();
    while !input.0.is_empty() {
        let kind = input.byte();
        let payload = input.counted();
        let command = messages::command(kind & 0x3f);
        match kind >> 6 {
            1 => talk.send(command, &on_tip(payload, command), false)?,
            2 => talk.send(command, payload, true)?,
            3 if kind & 0x3f == 0x3f => {
                is_framed = false;
                talk.send_raw(payload)?;
            }
            _ => talk.send(command, payload, false)?,
        }
    }
    Ok(is_framed)
}

/// Puts a header in the payload on the node's tip and gives it proof of work, which no mutation would find.
fn on_tip(payload: &[u8], command: Command) -> Vec<u8> {
    let mut payload = payload.to_vec();
    let start = usize::from(command.as_str() == "headers");
    let Some(header) = payload.get_mut(start..start + 80) else { return payload };
    let tip = node().engine().chain().tip();
    header[4..36].copy_from_slice(&tip.hash.0);
    header[68..72].copy_from_slice(&(tip.time + 1).to_le_bytes());
    header[72..76].copy_from_slice(&0x207f_ffff_u32.to_le_bytes());
    for nonce in 0..64_u32 {
        header[76..80].copy_from_slice(&nonce.to_le_bytes());
        let bytes: &[u8; 80] = (&*header).try_into().expect("80 bytes");
        if Header::parse(bytes).hash().0[31] < 0x7f {
            break;
        }
    }
    payload
}

/// Options of a connection, as bits.
#[derive(Clone, Copy, Debug)]
pub struct Manner(pub u8);

impl Manner {
    fn is_dialled(self) -> bool {
        self.0 & 1 != 0
    }
    fn is_encrypted(self) -> bool {
        self.0 & 2 != 0
    }
    fn is_trusted(self) -> bool {
        self.0 & 4 != 0
    }
    /// Type of a connection that the node makes.
    fn kind(self) -> &'static str {
        ["outbound-full-relay", "block-relay-only", "addr-fetch", "feeler"]
            [usize::from(self.0 >> 3 & 3)]
    }
    /// True if the peer begins with the version handshake.
    pub fn opens(self) -> bool {
        self.0 & 0x20 == 0
    }
    /// True if the peer agrees on keys by BIP324.
    pub fn is_correct(self) -> bool {
        self.0 & 0x40 == 0
    }
}

/// A connection with the node.
pub struct Talk {
    stream: TcpStream,
    session: Option<Box<Session>>,
    /// AAD of the next packet, which authenticates the garbage.
    aad: Vec<u8>,
}

impl Talk {
    /// Connects or accepts. `None` if an incorrect peer spoilt the connection, or the machine is out of ports.
    pub fn open(manner: Manner, key: u8, garbage: &[u8]) -> Option<Self> {
        let stream = if manner.is_dialled() { dialled(manner) } else { connected(manner) }.ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.set_nodelay(true).ok()?;
        let mut talk = Self { stream, session: None, aad: Vec::new() };
        if manner.is_encrypted() && manner.is_correct() {
            talk.agree(key, garbage, !manner.is_dialled()).ok()?;
        }
        Some(talk)
    }

    /// Exchanges keys, garbage and the first packets.
    fn agree(&mut self, key: u8, garbage: &[u8], is_initiator: bool) -> io::Result<()> {
        let garbage = garbage[..garbage.len().min(GARBAGE_BYTES_MAX)].to_vec();
        // Neither zero nor above the order.
        let own = Handshake::new([key & 0x7f | 1; 32], [key; 32], garbage, is_initiator);
        let own = own.expect("a secret key");
        self.stream.write_all(&own.opening())?;
        let mut theirs = [0; KEY_BYTES];
        self.stream.read_exact(&mut theirs)?;
        let mut session = own.finish(theirs, MAGIC);
        self.stream.write_all(&session.version_packet())?;
        let mut found = session.garbage();
        let mut byte = [0];
        for _ in 0..=GARBAGE_BYTES_MAX + TERMINATOR_BYTES {
            self.stream.read_exact(&mut byte)?;
            if found.push(&byte).expect("the node ends its garbage").1 {
                break;
            }
        }
        self.aad = found.into_aad();
        self.session = Some(Box::new(session));
        let version = self.packet()?;
        assert_eq!(version, Some(Vec::new()), "the node's version packet is empty");
        Ok(())
    }

    /// Sends a message with a valid frame.
    pub fn send(&mut self, command: Command, payload: &[u8], is_decoy: bool) -> io::Result<()> {
        let bytes = match &mut self.session {
            None => {
                let head = FrameHeader::of(MAGIC, command, payload).to_bytes();
                [&head[..], payload].concat()
            }
            Some(session) => {
                let (name, length) = name_bytes(command);
                let mut packet = [&[0; HEAD_BYTES][..], &name[..length], payload].concat();
                session.sealer.seal(&mut packet, 0, &[], is_decoy);
                packet
            }
        };
        self.stream.write_all(&bytes)
    }

    pub fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Sends the handshake; bits of `words` select its messages and values.
    pub fn greet(&mut self, words: u8) -> io::Result<()> {
        let version = Message::Version(Version {
            version: if words & 0x20 == 0 { 70016 } else { 70012 },
            services: 0xc09,
            time: 1_700_000_000,
            receiver: NetAddress::default(),
            sender: NetAddress::default(),
            nonce: 7,
            user_agent: b"/fuzz:1/",
            start_height: 1000,
            relay: Some(words & 0x40 == 0),
        });
        let words = [
            (true, version),
            (words & 1 == 0, Message::WtxidRelay),
            (words & 2 == 0, Message::SendAddrV2),
            (true, Message::Verack),
            (words & 4 != 0, Message::SendHeaders),
            (words & 8 == 0, Message::SendCompact { announce: words >> 7, version: 2 }),
            (words & 0x10 != 0, Message::GetAddr),
        ];
        for (_, message) in words.iter().filter(|(is_said, _)| *is_said) {
            let mut payload = Vec::new();
            message.encode(&mut payload);
            self.send(message.command(), &payload, false)?;
        }
        Ok(())
    }

    /// Reads until the node has answered a ping or ended the connection. It answers in order.
    ///
    /// # Panics
    /// On a malformed message, or without either.
    pub fn settle(&mut self) -> io::Result<()> {
        self.send(Command::new("ping"), &NONCE.to_le_bytes(), false)?;
        loop {
            let (command, payload) = self.receive()?;
            let message = Message::parse(command, &payload);
            let message =
                message.unwrap_or_else(|error| panic!("{command:?} of the node: {error}"));
            if message == Message::Pong(NONCE) {
                return Ok(());
            }
        }
    }

    /// Ends the connection and waits until the node does, too; it has then processed everything.
    ///
    /// # Panics
    /// If the node does not.
    pub fn close(mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
        let mut rest = [0; 4096];
        loop {
            match self.stream.read(&mut rest) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if is_timeout(&error) => {
                    panic!("the node keeps a connection that ended")
                }
                Err(_) => return,
            }
        }
    }

    fn receive(&mut self) -> io::Result<(Command, Vec<u8>)> {
        if self.session.is_some() {
            loop {
                if let Some(contents) = self.packet()? {
                    let (command, payload) = split(&contents).expect("contents have a name");
                    return Ok((command, payload.to_vec()));
                }
            }
        }
        let mut head = [0; FrameHeader::SIZE];
        self.fill(&mut head)?;
        let header = FrameHeader::parse(&head, MAGIC, u32::MAX).expect("a header of the node");
        let mut payload = vec![0; header.length as usize];
        self.fill(&mut payload)?;
        header.check(&payload).expect("a checksum of the node");
        Ok((header.command, payload))
    }

    /// Contents of the node's next packet; `None` for a decoy.
    fn packet(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut head = [0; LENGTH_BYTES];
        self.fill(&mut head)?;
        let session = self.session.as_mut().expect("there are keys");
        let length = session.opener.length(head);
        let mut rest = vec![0; HEAD_BYTES - LENGTH_BYTES + length + TAG_BYTES];
        self.fill(&mut rest)?;
        let aad = std::mem::take(&mut self.aad);
        let session = self.session.as_mut().expect("there are keys");
        let opened = session.opener.open(&aad, &mut rest).expect("a packet of the node opens");
        Ok(opened.map(<[u8]>::to_vec))
    }

    fn fill(&mut self, out: &mut [u8]) -> io::Result<()> {
        self.stream.read_exact(out).inspect_err(|error| {
            assert!(!is_timeout(error), "the node does not answer");
        })
    }
}

/// A connection to the node: from an address of its own, so that limits per address apply to it alone, or from a trusted one.
fn connected(manner: Manner) -> io::Result<TcpStream> {
    static NEXT: AtomicU32 = AtomicU32::new(0x7f01_0000);
    let address = node().p2p_address().expect("the node has peers");
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
    if !manner.is_trusted() {
        let own = Ipv4Addr::from_bits(NEXT.fetch_add(1, Ordering::Relaxed));
        socket.bind(&SocketAddr::new(IpAddr::V4(own), 0).into())?;
    }
    socket.connect(&address.into())?;
    Ok(socket.into())
}

/// A connection that the node makes.
fn dialled(manner: Manner) -> io::Result<TcpStream> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let (address, kind) = (listener.local_addr()?, manner.kind());
    let body = format!(
        r#"{{"id":1,"method":"addconnection","params":["{address}","{kind}",{}]}}"#,
        manner.is_encrypted()
    );
    let mut rpc = TcpStream::connect(node().rpc_addresses()[0])?;
    rpc.set_read_timeout(Some(PATIENCE))?;
    let head =
        "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Basic dTpw\r\n";
    write!(rpc, "{head}Content-Length: {}\r\n\r\n{body}", body.len())?;
    let mut answer = String::new();
    rpc.read_to_string(&mut answer)?;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    listener.set_nonblocking(true)?;
    let (stream, _) = listener.accept()?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Nonce of the final ping.
const NONCE: u64 = 0x0123_4567_89ab_cdef;
/// Every input ends sooner.
const PATIENCE: Duration = Duration::from_secs(8);
