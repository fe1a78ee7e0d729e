//! Test node: chain, mempool, server and clients.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use assay_store::io::SimIo;
use assay_store::{CoinRef, UndoWriter};
use assay_wire::{Block, BlockHash, Coin, Encoding, OutPoint, Script, Transaction};
use serde_json::{Value, json};

use crate::chain::{Chain, MempoolChange, MempoolChanges, MempoolTx};
use crate::follow::{Listener as _, Touched};
use crate::index::{Index, IndexConfig, ScriptHash, View};
use crate::server::{Config, Publisher, Server};
use crate::testing::{FakeBlock, FakeChain, changes, coinbase, out, tx, unconfirmed};

/// Scripts of three users.
pub(super) const ALICE: &[u8] = b"alice";
pub(super) const BOB: &[u8] = b"bob";
pub(super) const CAROL: &[u8] = b"carol";

pub(super) fn hash(script: &[u8]) -> String {
    ScriptHash::of(script).to_string()
}

pub(super) use faster_hex::hex_string as hex;

pub(super) struct Node {
    pub(super) chain: Arc<FakeChain>,
    pub(super) blocks: Vec<Arc<FakeBlock>>,
    index: Index,
    pub(super) server: Server,
    pub(super) publisher: Arc<Publisher>,
    pool: Vec<MempoolTx>,
    tag: u32,
}

/// Listens on one TCP port of loopback.
pub(super) fn config() -> Config {
    Config {
        tcp: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))],
        workers: 2,
        ..Config::default()
    }
}

impl Node {
    /// With nothing published.
    pub(super) fn empty(config: Config) -> Self {
        let chain = Arc::new(FakeChain::default());
        let server = Server::start(config, Arc::clone(&chain) as Arc<dyn Chain>).unwrap();
        let publisher = server.publisher();
        let io = SimIo::new();
        io.set_cached(true);
        let genesis = FakeBlock::new(BlockHash::ZERO, vec![coinbase(&[(50, ALICE)], 1)], 1);
        let index = Index::open(IndexConfig::new("index", genesis.hash), Arc::new(io)).unwrap();
        Self { chain, blocks: Vec::new(), index, server, publisher, pool: Vec::new(), tag: 0 }
    }

    /// With ten blocks whose coinbases pay 50 to Alice.
    pub(super) fn new() -> Self {
        Self::with(config())
    }

    pub(super) fn with(config: Config) -> Self {
        let mut node = Self::empty(config);
        for _ in 0..10 {
            node.extend(Vec::new());
        }
        node.publish_from_scratch();
        node
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.server.addresses().tcp[0]
    }

    pub(super) fn client(&self) -> Client<TcpStream> {
        Client::new(TcpStream::connect(self.address()).unwrap())
    }

    /// A client with a negotiated protocol version.
    pub(super) fn client_of(&self, version: &str) -> Client<TcpStream> {
        let mut client = self.client();
        let agreed = client.call("server.version", &json!(["test", version]));
        assert_eq!(agreed[1], version);
        client
    }

    pub(super) fn coinbase(&self, height: usize) -> Transaction {
        self.blocks[height].txs[0].clone()
    }

    /// Adds an unpublished block; returns the touched items, as the follower would.
    pub(super) fn extend(&mut self, txs: Vec<Transaction>) -> Touched {
        self.tag += 1;
        let first = coinbase(&[(50, ALICE)], self.tag);
        let all: Vec<Transaction> = std::iter::once(first).chain(txs).collect();
        let prev = self.blocks.last().map_or(BlockHash::ZERO, |block| block.hash);
        let block = Arc::new(FakeBlock::new(prev, all, self.tag));
        self.blocks.push(Arc::clone(&block));
        let mut undo = UndoWriter::new();
        for input in block.txs[1..].iter().flat_map(|tx| tx.view().inputs()) {
            // The transaction that it spends may have been evicted.
            let lost = || Coin {
                value: 1,
                height: 1,
                coinbase: false,
                script_pubkey: Script::from(&b"lost"[..]),
            };
            undo.push(CoinRef::from(&self.coin(&input.prevout).unwrap_or_else(lost)));
        }
        let undo = undo.finish();
        let parsed = Block::parse(block.bytes.clone(), Encoding::Segwit).unwrap();
        let mut touched = Touched::default();
        let mut touch = |script: &ScriptHash| touched.scripts.push(*script);
        let rows = self.index.prepare(&parsed, &block.txids(), Some(&undo), &mut touch);
        self.index.connect(rows.unwrap()).unwrap();
        self.chain.blocks.lock().insert(block.hash, (block.bytes.clone(), undo));
        for tx in &block.txs {
            let view = tx.view();
            self.publisher.add_watched_outputs(&view.txid(), &view, &mut touched.outpoints);
        }
        touched
    }

    pub(super) fn view(&self) -> View {
        self.index.view()
    }

    pub(super) fn rewind(&mut self, count: usize) {
        self.blocks.truncate(self.blocks.len() - count);
        self.index.rewind(self.blocks.len() as u32 - 1).unwrap();
    }

    /// Publishes a block with `txs`, which leave the mempool.
    pub(super) fn mine(&mut self, txs: Vec<Transaction>) {
        let gone = txs.iter().map(|tx| MempoolChange::Removed(tx.view().txid())).collect();
        self.mine_with(txs, Some(changes(false, gone)));
    }

    /// Publishes a block with `txs` and these changes of the mempool, if they are known yet.
    pub(super) fn mine_with(&mut self, txs: Vec<Transaction>, mempool: Option<MempoolChanges>) {
        let ids: Vec<_> = txs.iter().map(|tx| tx.view().txid()).collect();
        let touched = self.extend(txs);
        self.pool.retain(|tx| !ids.contains(&tx.txid));
        self.publisher.publish(self.view(), mempool, touched, false).unwrap();
    }

    /// Replaces the last `count` blocks by one with `txs`.
    pub(super) fn reorganise(&mut self, count: usize, txs: Vec<Transaction>) {
        self.rewind(count);
        for _ in 0..count {
            self.extend(Vec::new());
        }
        let touched = self.extend(txs);
        let none = changes(false, Vec::new());
        self.publisher.publish(self.view(), Some(none), touched, true).unwrap();
    }

    pub(super) fn pool(&self) -> impl Iterator<Item = &Transaction> {
        self.pool.iter().map(|tx| &*tx.tx)
    }

    /// Removes a transaction and its descendants from the mempool.
    pub(super) fn evict(&mut self, tx: &Transaction) {
        let mut gone = vec![tx.view().txid()];
        let mut at = 0;
        while let Some(parent) = gone.get(at).copied() {
            let spends = |child: &&MempoolTx| {
                child.tx.view().inputs().any(|input| input.prevout.txid == parent)
            };
            gone.extend(self.pool.iter().filter(spends).map(|child| child.txid));
            at += 1;
        }
        self.pool.retain(|tx| !gone.contains(&tx.txid));
        self.change(gone.into_iter().rev().map(MempoolChange::Removed).collect());
    }

    #[cfg(target_os = "linux")]
    pub(super) fn client_from(&self, source: [u8; 4]) -> Client<TcpStream> {
        Client::new(connect_from(source, self.address()))
    }

    /// Waits until the metrics contain `line`.
    pub(super) fn wait_for(&self, line: &str) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !self.server.metrics().contains(line) {
            assert!(Instant::now() < deadline, "{line} in {}", self.server.metrics());
            std::thread::yield_now();
        }
    }

    /// Waits until all notifications are sent.
    pub(super) fn settle(&self) {
        while !self.server.shared.subscriptions.is_idle() {
            std::thread::yield_now();
        }
    }

    pub(super) fn accept(&mut self, tx: &Transaction, fee_sat: i64) {
        let spent: Vec<(i64, Vec<u8>)> = tx
            .view()
            .inputs()
            .map(|input| {
                let coin = self.coin(&input.prevout).expect("a coin");
                (coin.value, coin.script_pubkey.to_vec())
            })
            .collect();
        let spent: Vec<(i64, &[u8])> =
            spent.iter().map(|(value, script)| (*value, script.as_slice())).collect();
        let admitted = unconfirmed(tx, &spent, fee_sat);
        self.pool.push(admitted.clone());
        self.change(vec![MempoolChange::Added(admitted)]);
    }

    pub(super) fn change(&self, list: Vec<MempoolChange>) {
        self.publisher
            .publish(self.view(), Some(changes(false, list)), Touched::default(), false)
            .unwrap();
    }

    pub(super) fn publish_from_scratch(&self) {
        let list = self.pool.iter().cloned().map(MempoolChange::Added).collect();
        self.publisher
            .publish(self.view(), Some(changes(true, list)), Touched::default(), false)
            .unwrap();
    }

    fn coin(&self, outpoint: &OutPoint) -> Option<Coin> {
        let confirmed = self.blocks.iter().flat_map(|block| &block.txs);
        let all = confirmed.chain(self.pool.iter().map(|tx| &*tx.tx));
        let found = all.into_iter().find(|tx| tx.view().txid() == outpoint.txid)?;
        let output = found.view().output(outpoint.vout as usize);
        let script_pubkey = Script::from(output.script_pubkey);
        Some(Coin { value: output.value, height: 1, coinbase: false, script_pubkey })
    }

    fn script_of(&self, outpoint: &OutPoint) -> Option<Vec<u8>> {
        self.coin(outpoint).map(|coin| coin.script_pubkey.to_vec())
    }

    /// Reference script status, computed per the protocol specification.
    pub(super) fn status(&self, script: &[u8]) -> Value {
        let mut text = String::new();
        for (height, block) in self.blocks.iter().enumerate() {
            for tx in &block.txs {
                let view = tx.view();
                let pays = view.outputs().any(|output| output.script_pubkey == script);
                let spends =
                    |input: &OutPoint| self.script_of(input).is_some_and(|of| of == script);
                if pays || view.inputs().any(|input| spends(&input.prevout)) {
                    write!(text, "{}:{height}:", view.txid()).unwrap();
                }
            }
        }
        let mut unconfirmed: Vec<(i32, String)> = Vec::new();
        for tx in &self.pool {
            let view = tx.tx.view();
            let pays = view.outputs().any(|output| output.script_pubkey == script);
            let spends = tx.spent.iter().any(|coin| *coin.script_pubkey == *script);
            if pays || spends {
                let chained = view
                    .inputs()
                    .any(|input| self.pool.iter().any(|other| other.txid == input.prevout.txid));
                unconfirmed.push((i32::from(chained), tx.txid.to_string()));
            }
        }
        unconfirmed.sort();
        for (chained, txid) in unconfirmed {
            write!(text, "{txid}:{}:", -chained).unwrap();
        }
        if text.is_empty() {
            Value::Null
        } else {
            Value::String(hex(&assay_hash::sha256(text.as_bytes())))
        }
    }
}

#[cfg(target_os = "linux")]
pub(super) fn connect_from(source: [u8; 4], address: SocketAddr) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let connected = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind((source, 0).into())?;
        socket.connect(address).await?.into_std()
    });
    let stream = connected.unwrap();
    stream.set_nonblocking(false).unwrap();
    stream
}

/// A transaction that spends the coinbase of the block at `height`.
pub(super) fn pay(node: &Node, height: usize, outputs: &[(i64, &[u8])]) -> Transaction {
    tx(&[out(&node.coinbase(height), 0)], outputs, 0)
}

/// A client and its received notifications.
pub(super) struct Client<S: Read + Write> {
    pub(super) stream: BufReader<S>,
    next: u64,
    pub(super) notifications: Vec<Value>,
}

impl Client<TcpStream> {
    pub(super) fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_nodelay(true).unwrap();
        Self::over(stream)
    }

    /// True if nothing arrives for a short time. Meaningful only after an exchange that any pending message would have preceded.
    pub(super) fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

impl<S: Read + Write> Client<S> {
    pub(super) fn over(stream: S) -> Self {
        Self { stream: BufReader::new(stream), next: 0, notifications: Vec::new() }
    }

    pub(super) fn send(&mut self, text: &str) {
        let line = format!("{text}\n");
        self.stream.get_mut().write_all(line.as_bytes()).unwrap();
    }

    pub(super) fn line(&mut self) -> Value {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        assert!(line.ends_with('\n'), "the connection ended: {line:?}");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// The full response to a call, with `result` or `error`.
    pub(super) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(
            &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
        );
        loop {
            let line = self.line();
            if line.get("method").is_some() {
                self.notifications.push(line);
                continue;
            }
            assert_eq!(line["id"], id, "{line}");
            assert_eq!(line["jsonrpc"], "2.0");
            return line;
        }
    }

    pub(super) fn call(&mut self, method: &str, params: &Value) -> Value {
        let mut answer = self.ask(method, params);
        assert!(answer.get("error").is_none(), "{method}{params}: {answer}");
        answer["result"].take()
    }

    pub(super) fn error(&mut self, method: &str, params: &Value) -> i64 {
        let answer = self.ask(method, params);
        assert!(answer.get("result").is_none(), "{method}{params}: {answer}");
        assert!(answer["error"]["message"].is_string());
        answer["error"]["code"].as_i64().unwrap()
    }

    pub(super) fn notification(&mut self) -> Value {
        if self.notifications.is_empty() { self.line() } else { self.notifications.remove(0) }
    }
}
