//! A scripted node: a real process with a real socket.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::chain::{self, HEADER_BYTES, TX_BYTES, shown};
use crate::electrum::{Flaws, Index};

pub(crate) const COOKIE: &str = "__cookie__:secret";

/// Faults of the node.
#[derive(Default)]
pub(crate) struct Script {
    die_at: Option<usize>,
    refuse_at: Option<usize>,
    /// Every n-th transaction is rejected.
    refuse_tx: Option<usize>,
    other_muhash: bool,
    no_muhash: bool,
    never_ready: bool,
}

#[derive(Default)]
struct State {
    hashes: Vec<String>,
    mempool: BTreeSet<String>,
    txs_of_block: Vec<usize>,
    sent: usize,
}

pub(crate) struct Node {
    script: Script,
    state: Mutex<State>,
    tip_changed: Condvar,
    index: Option<Arc<Index>>,
}

/// Acts as `node [wrongs] --chain NAME --datadir DIR --rpc ADDRESS`.
pub(crate) fn main(args: &[String]) -> Result<(), String> {
    let option = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1).cloned()
    };
    let number = |name: &str| option(name).and_then(|value| value.parse().ok());
    let flag = |name: &str| args.iter().any(|arg| arg == name);
    let script = Script {
        die_at: number("--die-at"),
        refuse_at: number("--refuse-at"),
        refuse_tx: number("--refuse-tx"),
        other_muhash: flag("--other-muhash"),
        no_muhash: flag("--no-muhash"),
        never_ready: flag("--never-ready"),
    };
    let datadir = option("--datadir").ok_or("no --datadir")?;
    let address = option("--rpc").ok_or("no --rpc")?;
    if script.never_ready {
        return Err("cannot open the coin store: no space left".to_owned());
    }
    let folder = std::path::Path::new(&datadir).join("regtest");
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let listener = TcpListener::bind(address).map_err(|error| error.to_string())?;
    fs::write(folder.join(".cookie"), COOKIE).map_err(|error| error.to_string())?;
    let flaws = Flaws {
        stop_at: number("--index-stops-at"),
        hang_up_at: number("--index-hangs-up-at"),
        refuses: flag("--index-refuses"),
        in_pairs: flag("--index-in-pairs"),
        ..Flaws::default()
    };
    let mut scripts = chain::scripts_of_plans();
    if let Some(height) = number("--index-forgets") {
        scripts.remove(height - 1);
    }
    let index = match option("--electrum") {
        Some(address) if flag("--index") => {
            let listener = TcpListener::bind(address).map_err(|error| error.to_string())?;
            Some(Index::serve(listener, scripts, flaws, 0))
        }
        _ => None,
    };
    Node::serve_all(&listener, script, index, 0);
    Ok(())
}

impl Node {
    /// Serves forever. It has the blocks of the load tests up to `height`.
    pub(crate) fn serve_all(
        listener: &TcpListener,
        script: Script,
        index: Option<Arc<Index>>,
        height: u32,
    ) {
        let state = State {
            hashes: (1..=height).map(|height| shown(chain::hash(height))).collect(),
            txs_of_block: vec![2; height as usize],
            ..State::default()
        };
        let state = Mutex::new(state);
        let node = Arc::new(Self { script, state, tip_changed: Condvar::new(), index });
        for stream in listener.incoming().flatten() {
            eprintln!("connection");
            let node = Arc::clone(&node);
            thread::spawn(move || node.serve(&stream));
        }
    }

    fn serve(&self, stream: &TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream);
        loop {
            let (mut length, mut authorized, mut line) = (0, false, String::new());
            loop {
                line.clear();
                if reader.read_line(&mut line).ok()? == 0 {
                    return None;
                }
                let small = line.trim().to_ascii_lowercase();
                if let Some(value) = small.strip_prefix("content-length:") {
                    length = value.trim().parse().ok()?;
                }
                // Base64 of the cookie above.
                authorized |= line.trim().ends_with("Basic X19jb29raWVfXzpzZWNyZXQ=");
                if small.is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).ok()?;
            let reply = if authorized { self.answer_all(&body)? } else { Value::Null };
            let (status, stop) = (if authorized { "200 OK" } else { "401 No" }, reply == "stop");
            let text = if stop { r#"{"result":"stopping"}"#.to_owned() } else { reply.to_string() };
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", text.len());
            let mut out = stream;
            out.write_all(head.as_bytes()).ok()?;
            out.write_all(text.as_bytes()).ok()?;
            if stop {
                std::process::exit(0);
            }
        }
    }

    fn answer_all(&self, body: &[u8]) -> Option<Value> {
        match serde_json::from_slice(body).ok()? {
            Value::Array(calls) => calls.iter().map(|call| self.answer(call)).collect(),
            call => self.answer(&call),
        }
    }

    fn answer(&self, call: &Value) -> Option<Value> {
        let params = &call["params"];
        let method = call["method"].as_str()?;
        if method == "stop" {
            return Some(json!("stop"));
        }
        let (result, error) = match self.call(method, params) {
            Ok(result) => (result, Value::Null),
            Err((code, message)) => (Value::Null, json!({"code": code, "message": message})),
        };
        Some(json!({"result": result, "error": error, "id": call["id"]}))
    }

    fn call(&self, method: &str, params: &Value) -> Result<Value, (i64, &'static str)> {
        let mut state = self.state.lock().map_err(|_| (-1, "poisoned"))?;
        let height = state.hashes.len();
        let text = |index: usize| params[index].as_str().unwrap_or_default();
        Ok(match method {
            "getblockchaininfo" => json!({"chain": "regtest", "blocks": height}),
            "getblockcount" => json!(height),
            "getbestblockhash" => json!(state.hashes.last()),
            "getblockhash" => json!(state.hashes[params[0].as_u64().unwrap_or(1) as usize - 1]),
            "getblockheader" => {
                let at = state.hashes.iter().position(|hash| hash == text(0));
                json!({"nTx": state.txs_of_block[at.ok_or((-5, "Block not found"))?]})
            }
            "getrawmempool" => json!(state.mempool),
            "gettxoutsetinfo" if self.script.no_muhash && !text(0).is_empty() => {
                return Err((-1, "gettxoutsetinfo takes no argument"));
            }
            "gettxoutsetinfo" => self.utxo_info(text(0)),
            "sendrawtransaction" => {
                state.sent += 1;
                if self.script.refuse_tx.is_some_and(|nth| state.sent.is_multiple_of(nth)) {
                    return Err((-26, "dust"));
                }
                let txid = reversed(&text(0)[..64]);
                state.mempool.insert(txid.clone());
                json!(txid)
            }
            "submitblock" => {
                if self.script.die_at == Some(height + 1) {
                    eprintln!("about to abort");
                    std::process::abort();
                }
                if self.script.refuse_at == Some(height + 1) {
                    return Ok(json!("bad-txns-inputs-missingorspent"));
                }
                let hex = text(0);
                state.hashes.push(reversed(&hex[..64]));
                state.txs_of_block.push((hex.len() / 2 - HEADER_BYTES) / TX_BYTES);
                state.mempool.clear();
                self.tip_changed.notify_all();
                if let Some(index) = &self.index {
                    index.connect(&hex[..2 * HEADER_BYTES]);
                }
                Value::Null
            }
            "waitforblockheight" => {
                let wanted = params[0].as_u64().unwrap_or(0) as usize;
                let timeout = Duration::from_millis(params[1].as_u64().unwrap_or(0));
                let waiting = |state: &mut State| state.hashes.len() < wanted;
                let (state, _) = self
                    .tip_changed
                    .wait_timeout_while(state, timeout, waiting)
                    .map_err(|_| (-1, "poisoned"))?;
                let hash = state.hashes.last().cloned().unwrap_or_default();
                json!({"hash": hash, "height": state.hashes.len()})
            }
            _ => return Err((-32601, "Method not found")),
        })
    }

    fn utxo_info(&self, kind: &str) -> Value {
        let amount = chain::UTXO_AMOUNT;
        let coins = format!("{}.{:08}", amount / 100_000_000, amount % 100_000_000);
        let coins: serde_json::Number =
            serde_json::from_str(&coins).expect("a decimal number is JSON");
        let mut info = json!({"txouts": chain::UTXO_COUNT, "total_amount": coins});
        if kind == "muhash" {
            let muhash = if self.script.other_muhash { "ee".repeat(32) } else { chain::muhash() };
            info["muhash"] = json!(muhash);
        }
        info
    }
}

/// Hexadecimal with its bytes in reverse order.
fn reversed(hex: &str) -> String {
    let bytes = hex.as_bytes().chunks(2).rev();
    bytes.map(|pair| String::from_utf8_lossy(pair).into_owned()).collect()
}
