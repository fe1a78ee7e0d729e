//! The index of the fake node: an Electrum server with one script per block, and the matching script ledger.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::forge;

/// Faults of the index.
#[derive(Default, Clone)]
pub(crate) struct Script {
    /// Omits the history of this block's script.
    pub(crate) forget: Option<usize>,
    /// Stops indexing at this height.
    pub(crate) stop_at: Option<usize>,
    /// Closes its connections at this height.
    pub(crate) hang_up_at: Option<usize>,
    pub(crate) refuse: bool,
    /// Announces blocks two at a time.
    pub(crate) in_pairs: bool,
}

/// An index that follows the node.
pub(crate) struct Index {
    script: Script,
    headers: Mutex<Vec<String>>,
    changed: Condvar,
}

impl Index {
    /// Serves on `address` forever.
    pub(crate) fn serve(address: &str, script: Script) -> Result<Arc<Self>, String> {
        let listener = TcpListener::bind(address).map_err(|error| error.to_string())?;
        let index = Arc::new(Self { script, headers: Mutex::default(), changed: Condvar::new() });
        let of_thread = Arc::clone(&index);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let index = Arc::clone(&of_thread);
                thread::spawn(move || index.client(&stream));
            }
        });
        Ok(index)
    }

    /// Adds a block; `header` is its first 80 bytes in hex.
    pub(crate) fn connect(&self, header: &str) {
        let mut headers = self.headers.lock().expect("not poisoned");
        if self.script.stop_at.is_none_or(|at| headers.len() < at) {
            headers.push(header.to_owned());
        }
        drop(headers);
        self.changed.notify_all();
    }

    fn client(self: &Arc<Self>, stream: &TcpStream) -> Option<()> {
        // Responses and announcements come from two threads; their lines must not be interleaved.
        let out = Arc::new(Mutex::new(stream.try_clone().ok()?));
        let mut is_subscribed = false;
        for line in BufReader::new(stream).lines() {
            let request: Value = serde_json::from_str(&line.ok()?).ok()?;
            let method = request["method"].as_str()?.to_owned();
            let reply = match self.answer(&method, &request["params"]) {
                Ok(result) => json!({"jsonrpc": "2.0", "id": request["id"], "result": result}),
                Err(message) => json!({
                    "jsonrpc": "2.0",
                    "id": request["id"],
                    "error": {"code": 1, "message": message},
                }),
            };
            write_line(&out, &reply)?;
            if method == "blockchain.headers.subscribe" && !is_subscribed {
                is_subscribed = true;
                let (index, out) = (Arc::clone(self), Arc::clone(&out));
                thread::spawn(move || index.announce(&out));
            }
        }
        None
    }

    fn announce(&self, out: &Mutex<TcpStream>) -> Option<()> {
        let mut said = 0;
        loop {
            let headers = self.headers.lock().ok()?;
            let wait = Duration::from_millis(50);
            let nothing_new = |headers: &mut Vec<String>| self.visible(headers) == said;
            let (headers, _) = self.changed.wait_timeout_while(headers, wait, nothing_new).ok()?;
            if self.visible(&headers) == said {
                continue;
            }
            said = self.visible(&headers);
            let tip = self.tip(&headers);
            drop(headers);
            if self.script.hang_up_at == Some(said) {
                return out.lock().ok()?.shutdown(Shutdown::Both).ok();
            }
            let method = "blockchain.headers.subscribe";
            write_line(out, &json!({"jsonrpc": "2.0", "method": method, "params": [tip]}))?;
        }
    }

    /// Announced height.
    fn visible(&self, headers: &[String]) -> usize {
        if self.script.in_pairs && headers.len().is_multiple_of(2) {
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

    fn answer(&self, method: &str, params: &Value) -> Result<Value, &'static str> {
        let headers = self.headers.lock().map_err(|_| "poisoned")?;
        let script = params[0].as_str().unwrap_or_default();
        // Heights are below ten: two digits of the hash are the height.
        let height = script.get(..2).and_then(|digits| digits.parse().ok()).unwrap_or(usize::MAX);
        let is_there = height <= headers.len() && self.script.forget != Some(height);
        let txid = || txid(height);
        Ok(match method {
            "server.version" => json!(["Fake 1.0", "1.4"]),
            "blockchain.headers.subscribe" => self.tip(&headers),
            "blockchain.scripthash.get_history" if self.script.refuse => {
                return Err("history too large");
            }
            "blockchain.scripthash.get_history" if is_there => {
                json!([{"height": height, "tx_hash": txid()}])
            }
            "blockchain.scripthash.get_balance" if is_there => {
                json!({"confirmed": value(height), "unconfirmed": 0})
            }
            "blockchain.scripthash.listunspent" if is_there => {
                let value = value(height);
                json!([{"height": height, "tx_hash": txid(), "tx_pos": 0, "value": value}])
            }
            "blockchain.scripthash.get_balance" => json!({"confirmed": 0, "unconfirmed": 0}),
            "blockchain.scripthash.get_history" | "blockchain.scripthash.listunspent" => json!([]),
            "blockchain.scripthash.subscribe" if is_there => {
                json!(format!("{height:02}").repeat(32))
            }
            "blockchain.scripthash.subscribe" => Value::Null,
            "blockchain.scripthash.unsubscribe" => json!(true),
            _ => return Err("unknown method"),
        })
    }
}

fn write_line(out: &Mutex<TcpStream>, line: &Value) -> Option<()> {
    out.lock().ok()?.write_all(format!("{line}\n").as_bytes()).ok()
}

fn txid(height: usize) -> String {
    format!("{height:02}").repeat(32)
}

fn value(height: usize) -> usize {
    height * 1000
}

/// Acts as `scripts DIR --sample N --seed S --out FILE`.
pub(crate) fn main(args: &[String]) -> Result<(), String> {
    let option = |name: &str| {
        let at = args.iter().position(|arg| arg == name).ok_or(format!("no {name}"))?;
        args.get(at + 1).cloned().ok_or(format!("no value of {name}"))
    };
    let (sample, seed) = (option("--sample")?, option("--seed")?);
    let (sample, seed): (usize, u64) =
        (sample.parse().map_err(|_| "a number")?, seed.parse().map_err(|_| "a number")?);
    let (all, tip_hash) = (forge::heights(), forge::shown(&forge::hash(forge::heights() as u32)));
    let scripts = sample.min(all);
    let sample_seed = if scripts < all { seed.to_string() } else { "null".to_owned() };
    let mut text = format!(
        r#"{{"kind":"scripts","format":1,"tip_height":{all},"tip_hash":"{tip_hash}","tip_header":"00","scripts":{scripts},"scripts_total":{all},"sample_seed":{sample_seed},"history":{scripts},"unspent":{scripts}}}"#
    );
    for height in 1..=scripts {
        let (hash, value) = (txid(height), value(height));
        let entry = format_args!(
            r#"{{"kind":"script","script_hash":"{hash}","status":"{hash}","history":[[{height},"{hash}"]],"coins":[{{"height":{height},"txid":"{hash}","vout":0,"value":{value}}}]}}"#
        );
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{entry}");
    }
    fs::write(option("--out")?, text).map_err(|error| error.to_string())
}
