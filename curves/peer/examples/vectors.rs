//! Runs assay-pairing on published vectors, and prints the number of cases and of passed ones for each suite:
//!
//! `cargo run --release --example vectors -- [kzg|bls|evm]=DIRECTORY … [setup=FILE]`
//!
//! - `kzg`: `tests` of go-eth-kzg or c-kzg-4844, one YAML file per case, blobs and cells;
//!   commitments and proofs need `setup`, the path of their `trusted_setup.json`
//! - `bls`: Ethereum's tests of BLS signatures, one JSON file per case, in one directory per function
//! - `evm`: `core/vm/testdata/precompiles` of go-ethereum, one JSON file per precompile

#![expect(clippy::print_stdout, reason = "a program")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use assay_pairing::bls::{
    PublicKey, SecretKey, Signature, aggregate_verify, fast_aggregate_verify, verify, verify_batch,
};
use assay_pairing::curve::{Affine, BlsG2};
use assay_pairing::evm::{ModexpRules, modexp_gas};
use assay_pairing::hash_to_curve::HashToCurve as _;
use assay_pairing::kzg::{CellOf, CellProver, CellVerifier, Cells, Prover, Settings};
use assay_pairing::msm::Backend;
use assay_peer_pairing::assay::{PRECOMPILES, gas};
use serde_json::Value;

/// Numbers of cases and of passed ones, by suite.
#[derive(Default)]
struct Counts(BTreeMap<String, (usize, usize)>);

impl Counts {
    fn add(&mut self, suite: &str, name: &str, found: Option<&Value>, right: Option<&Value>) {
        let count = self.0.entry(suite.to_owned()).or_default();
        count.0 += 1;
        count.1 += usize::from(found == right);
        if found != right {
            println!("{suite}: {name}: {found:?} instead of {right:?}");
        }
    }
}

fn main() -> Result<()> {
    let mut counts = Counts::default();
    let named: Vec<(String, PathBuf)> = std::env::args()
        .skip(1)
        .map(|argument| {
            let (name, path) = argument.split_once('=').context("arguments are NAME=PATH")?;
            Ok((name.to_owned(), PathBuf::from(path)))
        })
        .collect::<Result<_>>()?;
    let setup = named.iter().find(|(name, _)| name == "setup");
    let prover = setup.map(|(_, path)| prover(path)).transpose()?;
    for (name, path) in &named {
        match name.as_str() {
            "kzg" => kzg(path, prover.as_ref(), &mut counts)?,
            "bls" => bls(path, &mut counts)?,
            "evm" => precompiles(path, &mut counts)?,
            "setup" => {}
            _ => bail!("{name}: there are kzg, bls, evm and setup"),
        }
    }
    println!("{:50} {:>6} {:>6}", "suite", "cases", "passed");
    for (suite, (cases, passed)) in &counts.0 {
        println!("{suite:50} {cases:6} {passed:6}");
    }
    let all = counts.0.values().all(|(cases, passed)| cases == passed);
    ensure!(all && !counts.0.is_empty(), "not all passed, or there were none");
    Ok(())
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let mut bytes = vec![0; digits.len() / 2];
    faster_hex::hex_decode(digits.as_bytes(), &mut bytes).ok()?;
    Some(bytes)
}

fn array<const N: usize>(value: &Value) -> Option<[u8; N]> {
    bytes(value.as_str()?)?.try_into().ok()
}

fn list<T>(value: &Value, of: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
    value.as_array()?.iter().map(of).collect()
}

fn hex(bytes: &[u8]) -> Value {
    Value::String(format!("0x{}", faster_hex::hex_string(bytes)))
}

/// All files below a directory with this extension.
fn files(directory: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path, ending)?);
        } else if path.extension().is_some_and(|own| own == ending) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn prover(path: &Path) -> Result<Prover> {
    let setup: Value = serde_json::from_slice(&fs::read(path)?)?;
    let points = list(&setup["g1_lagrange"], array::<48>).context("48 bytes for each point")?;
    Ok(Prover::new(&points, Settings::ethereum())?)
}

/// Parser for the subset of YAML in these files: flow mappings and lists of quoted strings. Quotes and commas are
/// JSON's except for names, indented names of block mappings end a flow, and lists of lists have a dash per element.
fn from_yaml(text: &str) -> Result<Value> {
    const NAMES: &str = "cell_indices cells blobs commitments proofs blob commitment proof z y";
    let mut json = text.replace('\'', "\"");
    for name in NAMES.split(' ') {
        json = json.replace(&format!("{name}: "), &format!("\"{name}\": "));
    }
    let (input, output) = json.split_once("\noutput:").context("an output")?;
    let input = input.trim_start_matches("input:").trim();
    let input = if input.starts_with('{') {
        input.to_owned()
    } else {
        format!("{{{}}}", input.replace("]\n", "],\n"))
    };
    let output = match output.trim().strip_prefix("- ") {
        Some(items) => format!("[{}]", items.replace("\n- ", ",\n")),
        None => output.trim().to_owned(),
    };
    let (input, output) = (serde_json::from_str(&input)?, serde_json::from_str(&output)?);
    Ok(Value::Array(vec![input, output]))
}

fn kzg(directory: &Path, prover: Option<&Prover>, counts: &mut Counts) -> Result<()> {
    let settings = Settings::ethereum();
    let verifier = CellVerifier::ethereum();
    let cell_prover = prover.map(CellProver::new);
    for path in files(directory, "yaml")? {
        let suite = path.strip_prefix(directory)?.components().next().expect("a suite");
        let suite = suite.as_os_str().to_string_lossy().into_owned();
        let case =
            from_yaml(&fs::read_to_string(&path)?).with_context(|| path.display().to_string())?;
        let (input, right) = (&case[0], &case[1]);
        let blob = || bytes(input["blob"].as_str()?);
        let found = match (suite.as_str(), prover) {
            ("verify_cell_kzg_proof_batch", _) => cells_verified(&verifier, input),
            ("compute_cells_and_kzg_proofs", Some(_)) => {
                (|| Some(cells_value(&cell_prover.as_ref()?.prove(&blob()?).ok()?)))()
            }
            ("compute_cells", Some(_)) => (|| {
                let cells = cell_prover.as_ref()?.cells(&blob()?).ok()?;
                Some(Value::Array(cells.iter().map(|cell| hex(cell)).collect()))
            })(),
            ("recover_cells_and_kzg_proofs", Some(_)) => (|| {
                let indices = list(&input["cell_indices"], Value::as_u64)?;
                let cells = list(&input["cells"], |cell| bytes(cell.as_str()?))?;
                if indices.len() != cells.len() {
                    return None;
                }
                let found: Vec<_> =
                    indices.into_iter().zip(cells.iter().map(Vec::as_slice)).collect();
                Some(cells_value(&cell_prover.as_ref()?.recover(&found).ok()?))
            })(),
            ("verify_kzg_proof", _) => (|| {
                let (z, y) = (array(&input["z"])?, array(&input["y"])?);
                let (commitment, proof) = (array(&input["commitment"])?, array(&input["proof"])?);
                settings.verify_proof(&commitment, &z, &y, &proof).ok().map(Value::Bool)
            })(),
            ("verify_blob_kzg_proof", _) => (|| {
                let (commitment, proof) = (array(&input["commitment"])?, array(&input["proof"])?);
                settings.verify_blob_proof(&blob()?, &commitment, &proof).ok().map(Value::Bool)
            })(),
            ("verify_blob_kzg_proof_batch", _) => (|| {
                let blobs = list(&input["blobs"], |blob| bytes(blob.as_str()?))?;
                let commitments = list(&input["commitments"], array)?;
                let proofs = list(&input["proofs"], array)?;
                if blobs.len() != commitments.len() || blobs.len() != proofs.len() {
                    return None;
                }
                let mut is_valid = true;
                for ((blob, commitment), proof) in blobs.iter().zip(&commitments).zip(&proofs) {
                    is_valid &= settings.verify_blob_proof(blob, commitment, proof).ok()?;
                }
                Some(Value::Bool(is_valid))
            })(),
            ("blob_to_kzg_commitment", Some(prover)) => {
                blob().and_then(|blob| prover.commit(&blob).ok()).map(|bytes| hex(&bytes))
            }
            ("compute_kzg_proof", Some(prover)) => (|| {
                let (proof, y) = prover.prove(&blob()?, &array(&input["z"])?).ok()?;
                Some(Value::Array(vec![hex(&proof), hex(&y)]))
            })(),
            ("compute_blob_kzg_proof", Some(prover)) => (|| {
                let proof = prover.prove_blob(&blob()?, &array(&input["commitment"])?).ok()?;
                Some(hex(&proof))
            })(),
            _ => continue,
        };
        let right = (!right.is_null()).then_some(right);
        counts.add(&format!("kzg/{suite}"), &path.display().to_string(), found.as_ref(), right);
    }
    Ok(())
}

fn cells_verified(verifier: &CellVerifier, input: &Value) -> Option<Value> {
    let commitments = list(&input["commitments"], array)?;
    let indices = list(&input["cell_indices"], Value::as_u64)?;
    let cells = list(&input["cells"], |cell| bytes(cell.as_str()?))?;
    let proofs = list(&input["proofs"], array)?;
    if [indices.len(), cells.len(), proofs.len()] != [commitments.len(); 3] {
        return None;
    }
    let of = |k: usize| CellOf {
        commitment: &commitments[k],
        index: indices[k],
        cell: &cells[k],
        proof: &proofs[k],
    };
    let all: Vec<_> = (0..cells.len()).map(of).collect();
    verifier.verify(&all).ok().map(Value::Bool)
}

fn cells_value(made: &Cells) -> Value {
    let cells = made.cells.iter().map(|cell| hex(cell)).collect();
    Value::Array(vec![
        Value::Array(cells),
        Value::Array(made.proofs.iter().map(|proof| hex(proof)).collect()),
    ])
}

fn key(value: &Value) -> Option<PublicKey> {
    PublicKey::from_bytes(&array(value)?).ok()
}

fn signature(value: &Value) -> Option<Signature> {
    Signature::from_bytes(&array(value)?).ok()
}

fn message(value: &Value) -> Option<Vec<u8>> {
    bytes(value.as_str()?)
}

fn bls(directory: &Path, counts: &mut Counts) -> Result<()> {
    for path in files(directory, "json")? {
        let suite = path.parent().and_then(Path::file_name).context("a suite")?;
        let suite = suite.to_string_lossy().into_owned();
        let case: Value = serde_json::from_slice(&fs::read(&path)?)?;
        let (input, right) = (&case["input"], &case["output"]);
        // Undecodable input is invalid.
        let verdict = |verdict: Option<bool>| Some(Value::Bool(verdict.unwrap_or(false)));
        let found = match suite.as_str() {
            "sign" => (|| {
                let secret = SecretKey::from_bytes(&array(&input["privkey"])?)?;
                Some(hex(&secret.sign(&message(&input["message"])?).to_bytes()))
            })(),
            "verify" => verdict((|| {
                let (key, signature) = (key(&input["pubkey"])?, signature(&input["signature"])?);
                Some(verify(&key, &message(&input["message"])?, &signature))
            })()),
            "aggregate" => list(input, signature)
                .filter(|signatures| !signatures.is_empty())
                .map(|signatures| hex(&Signature::aggregate(&signatures).to_bytes())),
            "fast_aggregate_verify" => verdict((|| {
                let keys = list(&input["pubkeys"], key)?;
                let signature = signature(&input["signature"])?;
                Some(fast_aggregate_verify(&keys, &message(&input["message"])?, &signature))
            })()),
            "aggregate_verify" => verdict((|| {
                let keys = list(&input["pubkeys"], key)?;
                let messages = list(&input["messages"], message)?;
                let signed: Vec<_> =
                    keys.into_iter().zip(messages.iter().map(Vec::as_slice)).collect();
                Some(aggregate_verify(&signed, &signature(&input["signature"])?))
            })()),
            "batch_verify" => verdict((|| {
                let keys = list(&input["pubkeys"], key)?;
                let messages = list(&input["messages"], message)?;
                let signatures = list(&input["signatures"], signature)?;
                let parts = keys.into_iter().zip(messages.iter().map(Vec::as_slice));
                let signed: Vec<_> =
                    parts.zip(signatures).map(|((key, text), own)| (key, text, own)).collect();
                Some(verify_batch(Backend::detect(), &signed, &[5; 32]))
            })()),
            "deserialization_G1" => verdict((|| {
                let point = Affine::<assay_pairing::curve::BlsG1>::from_compressed(&array(
                    &input["pubkey"],
                )?);
                Some(point.is_ok())
            })()),
            "deserialization_G2" => verdict(signature(&input["signature"]).map(|_| true)),
            "hash_to_G2" => (|| {
                const DST: &[u8] = b"QUUX-V01-CS02-with-BLS12381G2_XMD:SHA-256_SSWU_RO_";
                let point = BlsG2::hash(input["msg"].as_str()?.as_bytes(), DST);
                let part = |x: [u8; 48]| format!("0x{}", faster_hex::hex_string(&x));
                let both = |x: assay_pairing::tower::Fp2<assay_pairing::bls12_381::Fp>| {
                    Value::String([part(x.c0.to_be_bytes()), part(x.c1.to_be_bytes())].join(","))
                };
                Some(serde_json::json!({ "x": both(point.x), "y": both(point.y) }))
            })(),
            _ => continue,
        };
        let right = (!right.is_null()).then_some(right);
        counts.add(&format!("bls/{suite}"), &path.display().to_string(), found.as_ref(), right);
    }
    Ok(())
}

/// Files of cases with the addresses of their precompiles; cases of `fail-` files must be rejected.
const FILES: [(&str, u64); 19] = [
    ("ecRecover", 0x01),
    ("modexp", 0x05),
    ("modexp_eip2565", 0x05),
    ("modexp_eip7883", 0x05),
    ("blake2F", 0x09),
    ("pointEvaluation", 0x0a),
    ("p256Verify", 0x100),
    ("bn256Add", 0x06),
    ("bn256ScalarMul", 0x07),
    ("bn256Pairing", 0x08),
    ("blsG1Add", 0x0b),
    ("blsG1MultiExp", 0x0c),
    ("blsG1Mul", 0x0c),
    ("blsG2Add", 0x0d),
    ("blsG2MultiExp", 0x0e),
    ("blsG2Mul", 0x0e),
    ("blsPairing", 0x0f),
    ("blsMapG1", 0x10),
    ("blsMapG2", 0x11),
];

fn precompiles(directory: &Path, counts: &mut Counts) -> Result<()> {
    for (file, address) in FILES {
        let (.., run) = PRECOMPILES.into_iter().find(|(own, ..)| *own == address).expect("listed");
        let gas = |input: &[u8]| match file {
            "modexp" => modexp_gas(input, ModexpRules::Byzantium),
            "modexp_eip2565" => modexp_gas(input, ModexpRules::Berlin),
            _ => gas(address, input),
        };
        // One file has an irregular name.
        let failing = format!("fail-{}", file.replace("blake2F", "blake2f"));
        for (name, is_failing) in [(file, false), (failing.as_str(), true)] {
            let path = directory.join(name).with_extension("json");
            let cases: Vec<Value> =
                if path.exists() { serde_json::from_slice(&fs::read(path)?)? } else { Vec::new() };
            for case in &cases {
                let input = case["Input"].as_str().and_then(bytes).context("an input")?;
                let found = run(&input).ok().map(|output| hex(&output));
                let title = case["Name"].as_str().unwrap_or_default();
                if is_failing {
                    counts.add(&format!("evm/fail-{file}"), title, found.as_ref(), None);
                    continue;
                }
                let right = hex(&case["Expected"].as_str().and_then(bytes).context("an output")?);
                counts.add(&format!("evm/{file}"), title, found.as_ref(), Some(&right));
                let (found, right) = (Value::from(gas(&input)), &case["Gas"]);
                counts.add(&format!("evm/{file} gas"), title, Some(&found), Some(right));
            }
        }
    }
    Ok(())
}
