//! Checks the index of a killed node: after a restart its responses must equal those of an index that was never killed.
//!
//! Two sources define them. At every tip the straight run records a hash of the raw responses (history, balance, unspent outputs
//! and status of every script hash of both chains) of an index that was built without interruption. At some tips these responses
//! are also compared with the script ledgers of the forge, which are independent of any index.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;
use assay_ledger::scripts::ScriptLine;

use super::ASK_PAUSE;
use super::{CrashOptions, Fault};
use crate::electrum::check::compare;
use crate::electrum::expected::ScriptsFile;
use crate::electrum::{Client, ElectrumError};
use crate::forge::scripts::ScriptsJob;
use crate::plan::IndexCheckPlan;

/// Longest wait for the index to reach the node's tip after a start.
const CATCH_UP_TIMEOUT: Duration = Duration::from_mins(2);
/// Longest wait for the index to listen.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest wait for one response.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);
/// Scripts queried at a time.
const WINDOW: usize = 64;
/// Requests per script; the last cancels the subscription that the status needs.
const METHODS: [&str; 5] = [
    "blockchain.scripthash.get_history",
    "blockchain.scripthash.get_balance",
    "blockchain.scripthash.listunspent",
    "blockchain.scripthash.subscribe",
    "blockchain.scripthash.unsubscribe",
];
/// Number of compared responses among them.
const ANSWERS: usize = 4;
/// Tips of each chain, besides its last, at which the straight run is compared with the script ledger.
const LEDGER_TIPS: u32 = 16;

/// Expected responses of an index of both chains.
#[derive(Debug)]
pub(crate) struct IndexOracle {
    /// Script hashes of the ledgers, sorted.
    pub(crate) scripts: Vec<String>,
    ledgers: [Vec<ScriptLine>; 2],
    /// True if the ledgers omit scripts: then a script of one may occur unlisted in the other chain.
    is_sample: bool,
    /// By tip: hash of the responses for each script.
    pub(crate) answers: HashMap<String, Vec<u64>>,
    /// Number of tips at which the straight run was compared with the ledgers.
    pub(crate) ledger_tips: u64,
}

impl IndexOracle {
    /// Reads the script ledgers of both chains.
    pub(crate) fn read(options: &CrashOptions, chain_dirs: [&Path; 2]) -> anyhow::Result<Self> {
        let check =
            IndexCheckPlan { scripts_max: options.index.scripts_max, sample_seed: options.seed };
        let mut ledgers = [Vec::new(), Vec::new()];
        let mut is_sample = false;
        for (rival, chain_dir) in chain_dirs.into_iter().enumerate() {
            let out = options.out_dir.join(format!("scripts-{rival}.jsonl"));
            let job = ScriptsJob {
                chain_dir,
                command: &options.index.scripts_command,
                check: &check,
                out: &out,
                log: &options.out_dir.join("logs").join("scripts.log"),
            };
            job.make()?;
            let file = ScriptsFile::open(&out)?;
            is_sample |= file.header().sample_seed.is_some();
            ledgers[rival] = file.collect::<anyhow::Result<_>>()?;
        }
        let scripts: BTreeSet<String> =
            ledgers.iter().flatten().map(|script| script.script_hash.clone()).collect();
        let (scripts, answers) = (scripts.into_iter().collect(), HashMap::new());
        Ok(Self { scripts, ledgers, is_sample, answers, ledger_tips: 0 })
    }

    /// Records the responses of the straight run at a tip; compares them with the ledgers at some tips.
    pub(crate) fn note(
        &mut self,
        server: SocketAddr,
        tip: &Tip<'_>,
        (rival, of_height): (usize, u32),
    ) -> anyhow::Result<()> {
        let mut client = at_tip(server, tip, &|| false)?;
        let answers = self.ask(&mut client)?;
        self.answers.insert(tip.hash.to_owned(), answers);
        let step = (of_height / LEDGER_TIPS).max(1);
        if tip.height == of_height || tip.height.is_multiple_of(step) {
            self.compare_with_ledger(&mut client, rival, tip.height)?;
            self.ledger_tips += 1;
        }
        Ok(())
    }

    /// Compares responses with the ledger of a chain at a height; scripts of the other chain alone must be unknown.
    fn compare_with_ledger(
        &self,
        client: &mut Client,
        rival: usize,
        height: u32,
    ) -> anyhow::Result<()> {
        let own: BTreeSet<&str> =
            self.ledgers[rival].iter().map(|script| script.script_hash.as_str()).collect();
        let others = self.ledgers[1 - rival]
            .iter()
            .filter(|script| !own.contains(script.script_hash.as_str()))
            .filter(|_| !self.is_sample)
            .map(|script| ScriptLine {
                script_hash: script.script_hash.clone(),
                ..ScriptLine::default()
            });
        let expected = self.ledgers[rival].iter().cloned().chain(others).map(Ok);
        let check = compare(client, expected, height, &mut |_| true)?;
        if check.is_good() {
            return Ok(());
        }
        let difference = check.told.first().cloned().unwrap_or_else(|| check.summary());
        bail!(
            "without kills, at height {height}, the index differs from the script ledger: {difference}"
        )
    }

    /// Queries a node started after a kill: its index must reach the tip and respond as in the straight run. `is_killed` aborts.
    pub(crate) fn verify(
        &self,
        server: SocketAddr,
        tip: &Tip<'_>,
        is_killed: &dyn Fn() -> bool,
    ) -> anyhow::Result<Duration> {
        let start = Instant::now();
        let mut client = at_tip(server, tip, is_killed)?;
        let took = start.elapsed();
        let Some(expected) = self.answers.get(tip.hash) else {
            return Err(Fault::unknown_tip(tip.hash, tip.height));
        };
        let found = self.ask(&mut client)?;
        let wrong = expected.iter().zip(&found).filter(|(expected, found)| expected != found);
        let wrong = wrong.count();
        let first = expected.iter().zip(&found).position(|(expected, found)| expected != found);
        match first {
            None => Ok(took),
            Some(place) => Err(Fault::of_index(format!(
                "at {} (height {}) the index answers about {wrong} scripts other than a fresh one; the first is {}",
                tip.hash, tip.height, self.scripts[place]
            ))),
        }
    }

    /// Queries every script; returns a hash of the raw responses for each.
    fn ask(&self, client: &mut Client) -> anyhow::Result<Vec<u64>> {
        let mut hashes = Vec::with_capacity(self.scripts.len());
        for scripts in self.scripts.chunks(WINDOW) {
            let mut place_of: HashMap<u64, (usize, usize)> = HashMap::new();
            for (place, script) in scripts.iter().enumerate() {
                let params = format!(r#"["{script}"]"#);
                for (question, method) in METHODS.iter().enumerate() {
                    place_of.insert(client.send(method, &params), (place, question));
                }
            }
            client.flush()?;
            let mut answers = vec![[const { String::new() }; METHODS.len()]; scripts.len()];
            for _ in 0..scripts.len() * METHODS.len() {
                let reply = client.receive()?;
                let Some((place, question)) = place_of.remove(&reply.id) else {
                    return Err(ElectrumError::Unasked { id: reply.id }.into());
                };
                answers[place][question] = match reply.result {
                    Ok(result) => result.get().to_owned(),
                    Err((code, message)) => {
                        let method = METHODS[question].to_owned();
                        let refused = ElectrumError::Refused { method, code, message };
                        return Err(refused.into());
                    }
                };
            }
            hashes.extend(answers.iter().map(|answers| {
                // Its keys are fixed, so equal responses have equal hashes within this process.
                let mut hasher = DefaultHasher::new();
                answers[..ANSWERS].hash(&mut hasher);
                hasher.finish()
            }));
        }
        Ok(hashes)
    }
}

pub(crate) struct Tip<'a> {
    pub(crate) hash: &'a str,
    pub(crate) height: u32,
    /// Its header in hex.
    pub(crate) header: &'a str,
}

/// Waits until a server is at the node's tip; returns the connection.
fn at_tip(
    server: SocketAddr,
    tip: &Tip<'_>,
    is_killed: &dyn Fn() -> bool,
) -> anyhow::Result<Client> {
    let start = Instant::now();
    // The node responds before its index does.
    let mut client = loop {
        match Client::connect(server, ANSWER_TIMEOUT) {
            Ok(client) => break client,
            Err(error) if is_killed() || start.elapsed() > CONNECT_TIMEOUT => {
                return Err(error.into());
            }
            Err(_) => thread::sleep(ASK_PAUSE),
        }
    };
    client.hello()?;
    loop {
        let at = match client.subscribe_headers() {
            Ok(found)
                if found.height == tip.height && found.hex.eq_ignore_ascii_case(tip.header) =>
            {
                return Ok(client);
            }
            Ok(found) => Some(found.height),
            // It has no block yet, or is in a reorg.
            Err(ElectrumError::Refused { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        if start.elapsed() > CATCH_UP_TIMEOUT {
            let at = at.map_or_else(|| "unknown".to_owned(), |at| at.to_string());
            return Err(Fault::of_index(format!(
                "the index is at height {at}, {} s after the node was seen at {}",
                CATCH_UP_TIMEOUT.as_secs(),
                tip.height
            )));
        }
        thread::sleep(ASK_PAUSE);
    }
}
