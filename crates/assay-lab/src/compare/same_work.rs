//! Checks that two sides did the same work under the same settings.

use std::fmt;

use assay_report::number::in_percent;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Side;
use crate::results::{Run, Status, TargetResults};

/// A field in which two sides differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Path into the results.
    pub field: String,
    pub first: String,
    pub second: String,
    /// True for a setting, which may be the compared quantity; false for a part of the work.
    pub is_setting: bool,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} against {}", self.field, self.first, self.second)
    }
}

impl Difference {
    /// True if one of these names denotes the setting or a group that contains it.
    pub(super) fn is_named_by(&self, names: &[String]) -> bool {
        let is_named = |name: &String| {
            let rest = self.field.strip_prefix(name.as_str());
            rest.is_some_and(|rest| {
                rest.is_empty() || rest.starts_with('.') || rest.starts_with('[')
            })
        };
        self.is_setting && names.iter().any(is_named)
    }
}

pub(super) fn differences(first: Side<'_>, second: Side<'_>) -> Vec<Difference> {
    let mut found = Vec::new();
    diff("chain", &chain(first), &chain(second), false, &mut found);
    diff("work", &work(first), &work(second), false, &mut found);
    if first.source != second.source {
        diff("", &settings(first), &settings(second), true, &mut found);
    }
    found
}

fn chain(side: Side<'_>) -> Value {
    let mut chain = json!(side.results.chain_of(side.target));
    // Details of generation do not affect the content.
    for name in ["forge_s", "assay_version", "files", "coins_reported_by"] {
        chain.as_object_mut().and_then(|fields| fields.remove(name));
    }
    // Nor does the location of the file.
    let snapshot = chain.get_mut("snapshot").and_then(Value::as_object_mut);
    snapshot.and_then(|fields| fields.remove("path"));
    chain
}

/// Work of its valid runs; all runs of a side match the ledger and so are equal.
fn work(side: Side<'_>) -> Value {
    let valid = |run: &&Run| run.status == Status::Valid;
    let mut shares = serde_json::Map::new();
    for seen in side.target.seen_shares() {
        let of_share = |run: &&Run| in_percent(run.seen_requested) == in_percent(seen);
        let Some(run) = side.target.runs.iter().filter(valid).find(of_share) else { continue };
        let total = &run.total;
        shares.insert(
            format!("seen {} %", in_percent(seen)),
            json!({
                "tip": run.tip, "utxo_muhash": run.utxo_muhash, "blocks": total.blocks, "txs": total.txs,
                "inputs": total.inputs, "outputs": total.outputs, "bytes": total.bytes,
            }),
        );
    }
    Value::Object(shares)
}

fn settings(side: Side<'_>) -> Value {
    let plan = &side.results.plan;
    let machine = &side.results.machine;
    let gib = |bytes: Option<u64>| bytes.map(|bytes| (bytes + (1 << 29)) >> 30);
    json!({
        "plan": {
            "name": plan.name,
            "feed": {
                "by": plan.feed.by, "seen_mode": plan.feed.seen_mode, "batch": plan.feed.batch,
            },
            "sync": plan.feed.by.is_sync().then_some(&plan.sync),
            "warmup": plan.runs.warmup,
            "drop_caches": plan.runs.drop_caches,
            "drop_blocks": plan.runs.drop_blocks,
            "start_from": plan.runs.start_from,
            "target": plan.target,
            "phases": plan.phases.iter().filter(|phase| phase.measured).map(|phase| &phase.name).collect::<Vec<_>>(),
        },
        "delivery": side.target.delivery,
        "index": side.target.index.as_ref().map(|index| index.kind),
        "machine": {
            "cpu": machine.cpu, "cpu_model": machine.cpu_model, "cores": machine.cores, "memory_gib": gib(machine.memory_bytes),
            "kernel": machine.kernel, "governor": machine.governor,
            "transparent_huge_pages": machine.transparent_huge_pages, "filesystem": machine.filesystem,
        },
        "profile": side.results.software.profile,
    })
}

/// Collects unequal leaves. An unknown value on one side is accepted for work, but not for a setting.
fn diff(path: &str, first: &Value, second: &Value, is_setting: bool, found: &mut Vec<Difference>) {
    if let (Value::Object(left), Value::Object(right)) = (first, second) {
        let mut names: Vec<&String> = left.keys().chain(right.keys()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let of = |fields: &serde_json::Map<String, Value>| {
                fields.get(name).cloned().unwrap_or(Value::Null)
            };
            diff(&path, &of(left), &of(right), is_setting, found);
        }
        return;
    }
    let is_unknown = first.is_null() || second.is_null();
    if first == second || (is_unknown && !is_setting) {
        return;
    }
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => "nothing".to_owned(),
        other => other.to_string(),
    };
    let (field, first, second) = (path.to_owned(), text(first), text(second));
    found.push(Difference { field, first, second, is_setting });
}

/// True if two targets of one execution are the same program with the same arguments.
pub(super) fn is_same_software(first: &TargetResults, second: &TargetResults) -> bool {
    let told = |target: &TargetResults| {
        let command = target.runs.first().map(command);
        (
            target.family.clone(),
            target.version.clone(),
            target.distinct_keys,
            target.index.clone(),
            command,
        )
    };
    told(first) == told(second)
}

/// Command line without the parts that differ from run to run: the folder and the ports.
fn command(run: &Run) -> Vec<String> {
    let general = |word: &String| {
        let word = word.replace(&run.id, "RUN");
        let Some(at) = word.rfind([':', '=']) else { return word };
        let (before, number) = word.split_at(at + 1);
        let is_port = before.ends_with("127.0.0.1:") || before.ends_with("port=");
        if is_port && number.bytes().all(|byte| byte.is_ascii_digit()) {
            format!("{before}PORT")
        } else {
            word
        }
    };
    run.command.iter().map(general).collect()
}
