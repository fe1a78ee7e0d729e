//! Locations of vectors: `vectors/` of this repository, shared test data, packages of the Rust registry, modules of the Go proxy.
//!
//! Nothing is downloaded. Rust packages are dev-dependencies, so cargo has stored them; Go modules are used if they
//! have been fetched (`go mod download`, see `docs/testing.md`).

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use assay_testkit::hex;
use assay_wire::{Encoding, Transaction};
use serde_json::Value;

pub(crate) use assay_testkit::data::find as shared;

/// A file of `bitcoin/bips`, by its path there.
pub(crate) fn bips(path: &str) -> Option<String> {
    String::from_utf8(shared(&format!("vectors/bips/{path}"))?).ok()
}

/// [`bips`] as JSON; a list may end in a comma, which JSON does not allow.
pub(crate) fn bips_json(path: &str) -> Option<Value> {
    let text = bips(path)?;
    let trimmed = text.trim_end();
    let list = trimmed.strip_suffix(']').map(str::trim_end).and_then(|it| it.strip_suffix(','));
    let text = list.map_or_else(|| trimmed.to_owned(), |list| format!("{list}]"));
    // A tree of 128 levels exceeds the default recursion limit.
    let mut reader = serde_json::Deserializer::from_str(&text);
    reader.disable_recursion_limit();
    let json = reader.into_iter().next().expect("the file is not empty");
    Some(json.expect("the vectors are JSON"))
}

/// A file of `vectors/` or the shared test data as JSON.
pub(crate) fn shared_json(name: &str) -> Option<Value> {
    shared(name).map(|bytes| serde_json::from_slice(&bytes).expect("the vectors are JSON"))
}

/// The folder of a Rust package that this workspace depends on.
pub(crate) fn package(name: &str) -> Option<PathBuf> {
    static FOLDERS: LazyLock<HashMap<String, PathBuf>> = LazyLock::new(|| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--format-version=1", "--offline", "--manifest-path"])
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
            .output();
        let Ok(output) = output else { return HashMap::new() };
        let metadata: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        array(&metadata["packages"])
            .iter()
            .filter_map(|package| {
                let manifest = PathBuf::from(package["manifest_path"].as_str()?);
                Some((package["name"].as_str()?.to_owned(), manifest.parent()?.to_owned()))
            })
            .collect()
    });
    FOLDERS.get(name).cloned()
}

/// The folder of a Go module at one version, if it has been fetched.
pub(crate) fn go_module(module: &str) -> Option<PathBuf> {
    let cache = std::env::var_os("GOMODCACHE").map(PathBuf::from).or_else(|| {
        let path = std::env::var_os("GOPATH").map(PathBuf::from);
        Some(path.or_else(|| Some(std::env::home_dir()?.join("go")))?.join("pkg/mod"))
    })?;
    Some(cache.join(module)).filter(|folder| folder.is_dir())
}

/// The elements of a JSON array; empty for any other value.
pub(crate) fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not a string: {value}"))
}

/// Bytes as a JSON string of hex digits.
pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    hex::decode(text(value))
}

/// 32 bytes as a JSON string of hex digits.
pub(crate) fn bytes32(value: &Value) -> [u8; 32] {
    bytes(value).try_into().expect("32 bytes")
}

/// A transaction as a JSON string of hex digits.
pub(crate) fn transaction(value: &Value) -> Transaction {
    Transaction::parse(bytes(value), Encoding::Segwit).expect("a transaction")
}

/// Value and script of an output in the vectors of BIP-0341 and BIP-0360.
pub(crate) fn output(value: &Value) -> (i64, Vec<u8>) {
    (value["amountSats"].as_i64().expect("an amount"), bytes(&value["scriptPubKey"]))
}
