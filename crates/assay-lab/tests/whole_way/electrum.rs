//! The index of the fake node: an Electrum server that answers from script ledgers.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use assay_ledger::scripts::ScriptLine;
use faster_hex::hex_string;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::chain::{self, shown};

/// Longest accepted line; clients that send more are disconnected.
const LINE_MAX: u64 = 256 * 1024;

/// Faults of the index.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flaws {
    /// Stops indexing at this height.
    pub(crate) stop_at: Option<usize>,
    /// Closes its connections at this height.
    pub(crate) hang_up_at: Option<usize>,
    /// Has no histories.
    pub(crate) refuses: bool,
    /// Announces blocks two at a time.
    pub(crate) in_pairs: bool,
    /// Added to balances.
    pub(crate) satoshi: u64,
    /// Does not notify of scripts.
    pub(crate) is_silent: bool,
    /// Once, some time after the start, all responses are delayed by this time.
    pub(crate) stall: Option<Duration>,
}

/// An index that follows the node.
pub(crate) struct Index {
    flaws: Flaws,
    scripts: Vec<ScriptLine>,
    /// From height 1, in hexadecimal.
    headers: Mutex<Vec<String>>,
    clients: Mutex<Vec<Arc<Client>>>,
    start: Instant,
}

struct Client {
    stream: Mutex<TcpStream>,
    scripts: Mutex<HashSet<String>>,
    headers: AtomicBool,
}

impl Client {
    fn write(&self, value: &Value) -> bool {
        let mut stream = self.stream.lock().expect("not poisoned");
        // Clients that never read are disconnected.
        let _ = stream.set_write_timeout(Some(Duration::from_millis(200)));
        let is_written = stream.write_all(format!("{value}\n").as_bytes()).is_ok();
        if !is_written {
            let _ = stream.shutdown(Shutdown::Both);
        }
        is_written
    }

    fn notify(&self, method: &str, params: &Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }
}

impl Index {
    /// Serves forever. It has the blocks up to `height`.
    pub(crate) fn serve(
        listener: TcpListener,
        scripts: Vec<ScriptLine>,
        flaws: Flaws,
        height: u32,
    ) -> Arc<Self> {
        let headers = (1..=height).map(|height| hex_string(&chain::header(height))).collect();
        let index = Arc::new(Self {
            flaws,
            scripts,
            headers: Mutex::new(headers),
            clients: Mutex::default(),
            start: Instant::now(),
        });
        let of_thread = Arc::clone(&index);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let index = Arc::clone(&of_thread);
                thread::spawn(move || index.client(stream));
            }
        });
        index
    }

    /// Adds a block; `header` is its first 80 bytes in hexadecimal.
    pub(crate) fn connect(&self, header: &str) {
        let mut headers = self.headers.lock().expect("not poisoned");
        if self.flaws.stop_at.is_some_and(|at| headers.len() >= at) {
            return;
        }
        let before = self.visible(&headers);
        headers.push(header.to_owned());
        let (seen, height, tip) =
            (self.visible(&headers), headers.len() as u32, self.tip(&headers));
        drop(headers);
        let clients = self.clients.lock().expect("not poisoned").clone();
        for client in clients {
            if seen > before && client.headers.load(Ordering::SeqCst) {
                if self.flaws.hang_up_at == Some(seen) {
                    let _ = client.stream.lock().expect("not poisoned").shutdown(Shutdown::Both);
                    continue;
                }
                client.notify("blockchain.headers.subscribe", &json!([tip]));
            }
            let subscribed = client.scripts.lock().expect("not poisoned").clone();
            let changed = self.scripts.iter().filter(|script| {
                script.history.iter().any(|(at, _)| *at == height)
                    && subscribed.contains(&script.script_hash)
            });
            for script in changed.filter(|_| !self.flaws.is_silent) {
                let params = json!([script.script_hash, status(script, height)]);
                client.notify("blockchain.scripthash.subscribe", &params);
            }
        }
    }

    fn client(&self, stream: TcpStream) -> Option<()> {
        let client = Arc::new(Client {
            stream: Mutex::new(stream.try_clone().ok()?),
            scripts: Mutex::default(),
            headers: AtomicBool::new(false),
        });
        self.clients.lock().expect("not poisoned").push(Arc::clone(&client));
        let mut reader = BufReader::new(stream);
        self.answer_lines(&mut reader, &client);
        let _ = reader.into_inner().shutdown(Shutdown::Both);
        let mut clients = self.clients.lock().expect("not poisoned");
        clients.retain(|other| !Arc::ptr_eq(other, &client));
        Some(())
    }

    fn answer_lines(&self, reader: &mut BufReader<TcpStream>, client: &Client) {
        loop {
            let mut line = Vec::new();
            let read = reader.by_ref().take(LINE_MAX).read_until(b'\n', &mut line);
            if read.is_err() || line.last() != Some(&b'\n') {
                return;
            }
            if let Some(duration) = self.flaws.stall {
                let from = Duration::from_millis(300);
                let since = self.start.elapsed();
                if since > from {
                    thread::sleep((from + duration).saturating_sub(since));
                }
            }
            let reply = match serde_json::from_slice::<Value>(&line) {
                Ok(Value::Array(requests)) => {
                    requests.iter().map(|request| self.answer(client, request)).collect()
                }
                Ok(request) => self.answer(client, &request),
                Err(_) => json!({"id": null, "error": {"code": -32700, "message": "invalid JSON"}}),
            };
            if !client.write(&reply) {
                return;
            }
        }
    }

    fn answer(&self, client: &Client, request: &Value) -> Value {
        let id = &request["id"];
        match self.result(client, request) {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(message) => json!({"id": id, "error": {"code": 1, "message": message}}),
        }
    }

    fn result(&self, client: &Client, request: &Value) -> Result<Value, &'static str> {
        let params = &request["params"];
        let headers = self.headers.lock().expect("not poisoned").clone();
        let height = headers.len() as u32;
        let text = params[0].as_str().unwrap_or_default().to_owned();
        let number = |index: usize| params[index].as_u64().unwrap_or_default() as u32;
        let header = |height: u32| match height.checked_sub(1) {
            None => "00".repeat(chain::HEADER_BYTES),
            Some(index) => headers[index as usize].clone(),
        };
        let script = self.scripts.iter().find(|script| script.script_hash == text);
        let unspent = || script.into_iter().flat_map(|script| script.unspent_at(height));
        Ok(match request["method"].as_str().unwrap_or_default() {
            "server.version" => json!(["Fake 1.0", "1.4"]),
            "server.features" => json!({}),
            "server.ping" => Value::Null,
            "blockchain.estimatefee" => json!(-1),
            "mempool.get_fee_histogram" => json!([]),
            "blockchain.headers.subscribe" => {
                client.headers.store(true, Ordering::SeqCst);
                self.tip(&headers)
            }
            "blockchain.block.header" => json!(header(number(0))),
            "blockchain.block.headers" => {
                let start = number(0);
                let count = number(1).min(height + 1 - start);
                let hex: String = (start..start + count).map(header).collect();
                json!({"count": count, "hex": hex, "max": 2016})
            }
            "blockchain.scripthash.subscribe" => {
                client.scripts.lock().expect("not poisoned").insert(text);
                script.map_or(Value::Null, |script| status(script, height))
            }
            "blockchain.scripthash.unsubscribe" => {
                json!(client.scripts.lock().expect("not poisoned").remove(&text))
            }
            "blockchain.scripthash.get_history" if self.flaws.refuses => {
                return Err("history too large");
            }
            "blockchain.scripthash.get_history" => {
                let history = script.map_or(&[][..], |script| script.history_at(height));
                let entry = |(at, txid): &(u32, String)| json!({"height": at, "tx_hash": txid});
                history.iter().map(entry).collect()
            }
            "blockchain.scripthash.get_balance" => {
                let value: u64 = unspent().map(|coin| coin.value).sum();
                json!({"confirmed": value + self.flaws.satoshi, "unconfirmed": 0})
            }
            "blockchain.scripthash.listunspent" => unspent()
                .map(|coin| {
                    json!({
                        "height": coin.height, "tx_hash": coin.txid, "tx_pos": coin.vout, "value": coin.value
                    })
                })
                .collect(),
            "blockchain.transaction.get" => {
                let at = (1..=height).find(|at| shown(chain::txid(*at, 1)) == text);
                json!(hex_string(&chain::raw_tx(at.ok_or("unknown transaction")?, 1)))
            }
            "blockchain.transaction.get_merkle" => {
                let coinbase = shown(chain::txid(number(1), 0));
                json!({"block_height": number(1), "pos": 1, "merkle": [coinbase]})
            }
            _ => return Err("unknown method"),
        })
    }

    /// Announced height.
    fn visible(&self, headers: &[String]) -> usize {
        if self.flaws.in_pairs && headers.len().is_multiple_of(2) {
            headers.len().saturating_sub(1)
        } else {
            headers.len()
        }
    }

    fn tip(&self, headers: &[String]) -> Value {
        let height = self.visible(headers);
        let hex = height.checked_sub(1).and_then(|last| headers.get(last));
        json!({"height": height, "hex": hex.cloned().unwrap_or_default()})
    }
}

fn status(script: &ScriptLine, height: u32) -> Value {
    let history = script.history_at(height);
    if history.is_empty() {
        return Value::Null;
    }
    let lines: Vec<_> = history.iter().map(|(at, txid)| format!("{txid}:{at}:")).collect();
    json!(hex_string(&Sha256::digest(lines.concat())))
}
