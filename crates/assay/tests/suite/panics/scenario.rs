//! Scenario for a node: two chains that fork at genesis, an invalid block, unconfirmed transactions, a reorganisation
//! of the whole chain, `invalidateblock` and `reconsiderblock`, peers and Electrum clients.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use assay_hash::sha256;
use assay_wire::Block;
use faster_hex::hex_string;
use serde_json::{Value, json};

use super::chain::{forge, overpaying};
use super::node::{Node, muhash};

/// The process has most likely ended during this call.
#[derive(Debug)]
pub(crate) struct Ended(pub(crate) String);

/// State of a node after the scenario.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct End {
    /// Hash of the tip and hash of the coins.
    pub(crate) set: (String, String),
    pub(crate) tips: Value,
    pub(crate) index: Vec<Value>,
}

/// State of a node that never fails.
#[derive(Default)]
pub(crate) struct Oracle {
    /// Hash of the coins, by tip.
    sets: BTreeMap<String, String>,
    pub(crate) end: End,
}

impl Oracle {
    /// Records the coins after every step.
    pub(crate) fn watch(&mut self) -> Acknowledged<'_> {
        Acknowledged { sets: Some(&mut self.sets), ..Acknowledged::default() }
    }
}

/// Blocks and transactions that a node has acknowledged.
#[derive(Default)]
pub(crate) struct Acknowledged<'a> {
    /// Heights of valid blocks, by hash.
    acknowledged: HashMap<String, u32>,
    sets: Option<&'a mut BTreeMap<String, String>>,
}

/// The scenario, and a data folder to start from.
pub(crate) struct Scenario {
    pub(crate) base: PathBuf,
    first: Vec<Block>,
    second: Vec<Block>,
    invalid: Block,
}

/// Number of blocks of each chain in the base.
const BASE: usize = 99;
/// Number of blocks of the first chain, and of the second, which has more work.
const FIRST: usize = 119;
const SECOND: usize = 120;
/// Number of index runs that trigger a merge: the base has as many, so that a start begins with merging.
const RUNS: usize = 8;

static SCRIPTS: OnceLock<Vec<String>> = OnceLock::new();

/// Script hashes of the index queries.
pub(crate) fn scripts() -> &'static [String] {
    SCRIPTS.get().map_or(&[], Vec::as_slice)
}

impl Scenario {
    pub(crate) fn prepare(folder: &Path) -> Self {
        let mut first = forge(&folder.join("chain-1"), "1", "0.0003");
        let mut second = forge(&folder.join("chain-2"), "2", "0.0003");
        first.truncate(FIRST);
        second.truncate(SECOND);
        let invalid = overpaying(&first[BASE]);
        let chains = first.iter().rev().take(3).chain(second.iter().rev().take(3));
        let hashes = chains.flat_map(|block| {
            let last = block.tx(block.tx_count() - 1);
            last.outputs()
                .take(2)
                .map(|output| script_hash(output.script_pubkey))
                .collect::<Vec<_>>()
        });
        SCRIPTS.get_or_init(|| hashes.collect());
        let base = folder.join("base");
        std::fs::create_dir_all(&base).expect("a folder");
        let scenario = Self { base, first, second, invalid };
        // Each orderly shutdown writes a run of the index.
        for (number, part) in scenario.first[..BASE].chunks(BASE.div_ceil(RUNS)).enumerate() {
            let node =
                Node::start(&scenario.base, &[]).unwrap_or_else(|exit| panic!("{}", exit.stderr));
            for block in part {
                assert_eq!(submit(&node, block).expect("it lives"), Value::Null);
            }
            if number + 1 == RUNS {
                for block in &scenario.second[..BASE - 1] {
                    assert_eq!(submit(&node, block).expect("it lives"), "inconclusive");
                }
            }
            node.stop().unwrap_or_else(|exit| panic!("{}", exit.stderr));
        }
        scenario
    }

    /// Runs the scenario and records acknowledgements. Every step can be repeated.
    pub(crate) fn run(&self, node: &Node, seen: &mut Acknowledged<'_>) -> Result<(), Ended> {
        seen.note(node)?;
        node.visit(self.first[0].hash())?;
        let mut client = node.electrum()?;
        client.call("blockchain.headers.subscribe", &json!([]))?;
        for script in scripts() {
            client.call("blockchain.scripthash.subscribe", &json!([script]))?;
        }
        let verdict = submit(node, &self.invalid)?;
        let known = [json!("bad-cb-amount"), json!("duplicate-invalid")];
        assert!(known.contains(&verdict), "the invalid block: {verdict}");
        for block in &self.first[BASE..FIRST - 1] {
            seen.submit(node, block)?;
        }
        let last = &self.first[FIRST - 1];
        let mut is_admitted = false;
        for tx in last.txs().skip(1) {
            // Skipped on a repetition, if the block is present.
            let raw = hex_string(tx.to_owned_transaction().bytes());
            is_admitted = node.call("sendrawtransaction", &json!([raw]))?.is_ok();
        }
        if is_admitted {
            // The last block pays to subscribed scripts.
            client.notification()?;
        }
        node.get("savemempool", &json!([]))?;
        seen.submit(node, last)?;
        for block in &self.second[BASE - 1..] {
            seen.submit(node, block)?;
        }
        let below = self.second[SECOND - 2].hash().to_string();
        node.get("invalidateblock", &json!([below]))?;
        seen.note(node)?;
        node.get("reconsiderblock", &json!([below]))?;
        seen.note(node)
    }

    /// Checks the state after a restart; `Err` describes the difference.
    pub(crate) fn check(
        &self,
        node: &Node,
        oracle: &Oracle,
        seen: &Acknowledged<'_>,
    ) -> Result<(), String> {
        let ask =
            |method: &str, params: Value| node.get(method, &params).map_err(|Ended(what)| what);
        // A branch that the scenario has invalidated may still be invalid.
        let declared = self.second[SECOND - 2].hash().to_string();
        node.call("reconsiderblock", &json!([declared])).map_err(|Ended(what)| what)?.ok();
        let mut best = 0;
        for (hash, height) in &seen.acknowledged {
            let header = ask("getblockheader", json!([hash]))?;
            let block = ask("getblock", json!([hash, 0]))?;
            if header["height"] != *height || block.as_str().is_none_or(str::is_empty) {
                return Err(format!("{hash} at height {height} is lost"));
            }
            best = best.max(*height);
        }
        let set = ask("gettxoutsetinfo", json!(["muhash"]))?;
        let (tip, found) = muhash(&set);
        if set["height"].as_u64() < Some(best.into()) {
            return Err(format!("the tip fell back to {}, below {best}", set["height"]));
        }
        if oracle.sets.get(&tip) != Some(&found) {
            return Err(format!("wrong coins at {tip}: {found}, not {:?}", oracle.sets.get(&tip)));
        }
        let tips = ask("getchaintips", json!([]))?;
        let invalid = self.invalid.hash().to_string();
        let wrong = tips
            .as_array()
            .into_iter()
            .flatten()
            .find(|tip| tip["status"] == "invalid" && tip["hash"] != invalid.as_str());
        wrong.map_or(Ok(()), |tip| Err(format!("a valid branch is marked invalid: {tip}")))
    }
}

impl Acknowledged<'_> {
    fn submit(&mut self, node: &Node, block: &Block) -> Result<(), Ended> {
        let verdict = submit(node, block)?;
        let taken = [
            Value::Null,
            json!("inconclusive"),
            json!("duplicate"),
            json!("duplicate-inconclusive"),
        ];
        assert!(taken.contains(&verdict), "{}: {verdict}", block.hash());
        let hash = block.hash().to_string();
        let header = node.get("getblockheader", &json!([hash]))?;
        let height = header["height"].as_u64().expect("a height") as u32;
        self.acknowledged.insert(hash, height);
        self.note(node)
    }

    fn note(&mut self, node: &Node) -> Result<(), Ended> {
        let Some(sets) = &mut self.sets else { return Ok(()) };
        let (tip, muhash) = muhash(&node.get("gettxoutsetinfo", &json!(["muhash"]))?);
        sets.insert(tip, muhash);
        Ok(())
    }
}

fn submit(node: &Node, block: &Block) -> Result<Value, Ended> {
    node.get("submitblock", &json!([hex_string(block.bytes())]))
}

fn script_hash(script: &[u8]) -> String {
    sha256(script).iter().rev().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string does not fail");
        text
    })
}
