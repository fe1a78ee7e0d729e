//! A small Electrum server with its node, on threads, for the test chain.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use faster_hex::hex_string;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::chain::{Tiny, reversed};

/// Longest accepted line; clients that send more are disconnected.
const LINE_MAX: u64 = 256 * 1024;

/// Faults of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    None,
    /// Balances are one satoshi too high.
    Balance,
    /// Subscriptions are not notified.
    Silent,
    /// Once, some time after the start, all responses are delayed by this time.
    Stall(Duration),
}

#[derive(Debug)]
pub(crate) struct Server {
    shared: Arc<Shared>,
    pub(crate) address: SocketAddr,
    pub(crate) rpc_port: u16,
}

#[derive(Debug)]
struct Shared {
    flaw: Flaw,
    height: AtomicU32,
    stop: AtomicBool,
    start: Instant,
    clients: Mutex<Vec<Arc<Client>>>,
}

#[derive(Debug)]
struct Client {
    stream: Mutex<TcpStream>,
    scripts: Mutex<HashSet<String>>,
    headers: AtomicBool,
}

impl Server {
    pub(crate) fn start(height: u32, flaw: Flaw) -> Self {
        let shared = Arc::new(Shared {
            flaw,
            height: AtomicU32::new(height),
            stop: AtomicBool::new(false),
            start: Instant::now(),
            clients: Mutex::default(),
        });
        let address = listen(&shared, serve_client);
        let rpc_port = listen(&shared, serve_node).port();
        Self { shared, address, rpc_port }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        // Wakes the accepting threads.
        let _ = TcpStream::connect(self.address);
        let _ = TcpStream::connect(("127.0.0.1", self.rpc_port));
    }
}

fn listen(shared: &Arc<Shared>, serve: fn(&Shared, TcpStream)) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        for stream in listener.incoming() {
            if shared.stop.load(Ordering::Relaxed) {
                return;
            }
            let (shared, Ok(stream)) = (Arc::clone(&shared), stream) else { return };
            thread::spawn(move || serve(&shared, stream));
        }
    });
    address
}

fn serve_client(shared: &Shared, stream: TcpStream) {
    let Ok(writer) = stream.try_clone() else { return };
    let client = Arc::new(Client {
        stream: Mutex::new(writer),
        scripts: Mutex::default(),
        headers: AtomicBool::new(false),
    });
    shared.clients.lock().expect("no thread panicked").push(Arc::clone(&client));
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        let Ok(length) = reader.by_ref().take(LINE_MAX).read_until(b'\n', &mut line) else { break };
        if length == 0 || line.last() != Some(&b'\n') {
            break;
        }
        if let Flaw::Stall(duration) = shared.flaw {
            let from = Duration::from_millis(300);
            let since = shared.start.elapsed();
            if since > from {
                thread::sleep((from + duration).saturating_sub(since));
            }
        }
        let reply = match serde_json::from_slice::<Value>(&line) {
            Ok(Value::Array(requests)) => {
                requests.iter().map(|request| answer(shared, &client, request)).collect()
            }
            Ok(request) => answer(shared, &client, &request),
            Err(_) => json!({"id": null, "error": {"code": -32700, "message": "invalid JSON"}}),
        };
        if !client.write(&reply) {
            break;
        }
    }
    let _ = reader.into_inner().shutdown(Shutdown::Both);
    shared.clients.lock().expect("no thread panicked").retain(|other| !Arc::ptr_eq(other, &client));
}

impl Client {
    fn write(&self, value: &Value) -> bool {
        let mut text = value.to_string();
        text.push('\n');
        let mut stream = self.stream.lock().expect("no thread panicked");
        // Clients that never read are disconnected.
        let _ = stream.set_write_timeout(Some(Duration::from_millis(200)));
        let is_written = stream.write_all(text.as_bytes()).is_ok();
        if !is_written {
            let _ = stream.shutdown(Shutdown::Both);
        }
        is_written
    }
}

fn answer(shared: &Shared, client: &Client, request: &Value) -> Value {
    let id = &request["id"];
    match result(shared, client, request) {
        Some(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        None => json!({"id": id, "error": {"code": -32601, "message": "unknown method"}}),
    }
}

fn result(shared: &Shared, client: &Client, request: &Value) -> Option<Value> {
    let params = &request["params"];
    let height = shared.height.load(Ordering::SeqCst);
    let text = params[0].as_str().unwrap_or_default().to_owned();
    let is_ours = text == reversed(Tiny::script_hash());
    Some(match request["method"].as_str()? {
        "server.version" => json!(["fake 1", "1.4"]),
        "server.features" => json!({}),
        "server.ping" => Value::Null,
        "blockchain.estimatefee" => json!(-1),
        "blockchain.headers.subscribe" => {
            client.headers.store(true, Ordering::SeqCst);
            tip(height)
        }
        "blockchain.block.header" => json!(hex_string(&header(params[0].as_u64()? as u32))),
        "blockchain.block.headers" => {
            let start = params[0].as_u64()? as u32;
            let count = (params[1].as_u64()? as u32).min(height + 1 - start);
            let headers: String =
                (start..start + count).map(|at| hex_string(&header(at))).collect();
            json!({"count": count, "hex": headers, "max": 2016})
        }
        "blockchain.scripthash.subscribe" => {
            let status = if is_ours { status(height) } else { Value::Null };
            client.scripts.lock().expect("no thread panicked").insert(text);
            status
        }
        "blockchain.scripthash.unsubscribe" => {
            json!(client.scripts.lock().expect("no thread panicked").remove(&text))
        }
        "blockchain.scripthash.get_history" => {
            let entry = |at| json!({"height": at, "tx_hash": reversed(Tiny::txid(at))});
            let upto = if is_ours { height } else { 0 };
            (1..=upto).map(entry).collect()
        }
        "blockchain.scripthash.get_balance" => {
            let flaw = u64::from(shared.flaw == Flaw::Balance);
            let value = if is_ours && height > 0 { Tiny::value(height) } else { 0 };
            json!({"confirmed": value + flaw, "unconfirmed": 0})
        }
        "blockchain.scripthash.listunspent" if is_ours && height > 0 => json!([{
            "height": height, "tx_hash": reversed(Tiny::txid(height)), "tx_pos": 0, "value": Tiny::value(height)
        }]),
        "blockchain.scripthash.listunspent" | "mempool.get_fee_histogram" => json!([]),
        "blockchain.transaction.get" => {
            let at = (1..=height).find(|at| reversed(Tiny::txid(*at)) == text)?;
            json!(hex_string(&Tiny::raw(at)))
        }
        "blockchain.transaction.get_merkle" => {
            let at = params[1].as_u64()? as u32;
            json!({"block_height": at, "pos": 1, "merkle": [reversed(Tiny::coinbase_id(at))]})
        }
        _ => return None,
    })
}

fn header(height: u32) -> [u8; 80] {
    if height == 0 { [0; 80] } else { Tiny::header(height) }
}

fn tip(height: u32) -> Value {
    json!({"height": height, "hex": hex_string(&header(height))})
}

fn status(height: u32) -> Value {
    if height == 0 {
        return Value::Null;
    }
    let mut hasher = Sha256::new();
    for at in 1..=height {
        hasher.update(format!("{}:{at}:", reversed(Tiny::txid(at))));
    }
    json!(hex_string(&hasher.finalize()))
}

/// The part of a node that accepts blocks.
fn serve_node(shared: &Shared, stream: TcpStream) {
    let Ok(mut writer) = stream.try_clone() else { return };
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if !reader.read_line(&mut line).is_ok_and(|read| read > 0) {
                return;
            }
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let request: Value = serde_json::from_slice(&body).unwrap_or_default();
        let result = match request["method"].as_str() {
            Some("getblockcount") => json!(shared.height.load(Ordering::SeqCst)),
            Some("submitblock") => {
                connect_block(shared);
                Value::Null
            }
            _ => json!("unknown"),
        };
        let reply = json!({"id": request["id"], "result": result, "error": null}).to_string();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", reply.len());
        if writer.write_all((head + &reply).as_bytes()).is_err() {
            return;
        }
    }
}

fn connect_block(shared: &Shared) {
    let height = shared.height.fetch_add(1, Ordering::SeqCst) + 1;
    let clients = shared.clients.lock().expect("no thread panicked").clone();
    let ours = reversed(Tiny::script_hash());
    for client in clients {
        if client.headers.load(Ordering::SeqCst) {
            client
                .write(&json!({"method": "blockchain.headers.subscribe", "params": [tip(height)]}));
        }
        let is_subscribed = client.scripts.lock().expect("no thread panicked").contains(&ours);
        if is_subscribed && shared.flaw != Flaw::Silent {
            client.write(
                &json!({"method": "blockchain.scripthash.subscribe", "params": [ours, status(height)]}),
            );
        }
    }
}
