//! Serialises and signs transactions one by one with reused buffers.

use assay_hash::{Sha256, sha256d};
use assay_wire::encode::compact_size;

use crate::{
    keys::KeyId,
    kind::Kind,
    lock::{ScriptCache, Unlock, p2wpkh_program},
    network::Network,
    raw::Signer,
    sighash::{self, Bip143, Bip341, Legacy, Parts},
};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Spend {
    pub(crate) txid: [u8; 32],
    pub(crate) vout: u32,
    pub(crate) amount: u64,
    pub(crate) kind: Kind,
    pub(crate) key: KeyId,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Pay {
    pub(crate) amount: u64,
    pub(crate) kind: Kind,
    pub(crate) key: KeyId,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    pub(crate) txid: [u8; 32],
    /// Equal to `txid` without a witness.
    pub(crate) wtxid: [u8; 32],
    pub(crate) bytes: u32,
    pub(crate) weight: u32,
    pub(crate) signatures: u32,
    pub(crate) schnorr: u32,
}

pub(crate) struct TxWriter<'a> {
    network: Network,
    locks: &'a ScriptCache,
    parts: Parts,
    /// All of an input except outpoint and sequence: the script with its length.
    script_sigs: Vec<u8>,
    script_sig_ends: Vec<usize>,
    witnesses: Vec<u8>,
}

impl<'a> TxWriter<'a> {
    pub(crate) fn new(network: Network, locks: &'a ScriptCache) -> Self {
        Self {
            network,
            locks,
            parts: Parts::default(),
            script_sigs: Vec::new(),
            script_sig_ends: Vec::new(),
            witnesses: Vec::new(),
        }
    }

    pub(crate) fn write(&mut self, spends: &[Spend], pays: &[Pay], out: &mut Vec<u8>) -> Written {
        self.lay_out(spends, pays);
        let signatures = self.sign(spends);
        let has_witness =
            self.network.segwit() && spends.iter().any(|spend| spend.kind.has_witness());
        let start = out.len();
        if has_witness {
            let schnorr = spends.iter().filter(|spend| spend.kind.is_taproot()).count() as u32;
            Written { signatures, schnorr, ..self.emit_segwit(out, start) }
        } else {
            self.emit_base(out);
            let bytes = &out[start..];
            let txid = sha256d(bytes);
            let len = bytes.len() as u32;
            Written { txid, wtxid: txid, bytes: len, weight: 4 * len, signatures, schnorr: 0 }
        }
    }

    /// Serialises the parts that signatures cover.
    fn lay_out(&mut self, spends: &[Spend], pays: &[Pay]) {
        let Self { locks, parts, .. } = self;
        parts.outpoints.clear();
        parts.outputs.clear();
        parts.amounts.clear();
        parts.scripts.clear();
        parts.input_count = spends.len();
        parts.output_count = pays.len();
        for spend in spends {
            parts.outpoints.extend_from_slice(&spend.txid);
            parts.outpoints.extend_from_slice(&spend.vout.to_le_bytes());
        }
        for pay in pays {
            parts.outputs.extend_from_slice(&pay.amount.to_le_bytes());
            locks.with(pay.kind, &pay.key, |lock| push(&mut parts.outputs, lock.script()));
        }
        if spends.iter().any(|spend| spend.kind.is_taproot()) {
            for spend in spends {
                parts.amounts.extend_from_slice(&spend.amount.to_le_bytes());
                locks.with(spend.kind, &spend.key, |lock| push(&mut parts.scripts, lock.script()));
            }
        }
    }

    /// Signs every input; returns the number of signatures.
    fn sign(&mut self, spends: &[Spend]) -> u32 {
        let Self { network, locks, parts, script_sigs, script_sig_ends, witnesses } = self;
        script_sigs.clear();
        script_sig_ends.clear();
        witnesses.clear();
        let hash_type = if network.segwit() { sighash::ALL } else { sighash::ALL_FORKID };
        let bip143 = Bip143::new(parts, hash_type);
        let bip341 = (!parts.amounts.is_empty()).then(|| Bip341::new(parts));
        let is_legacy = |kind: Kind| *network == Network::Regtest && kind.is_legacy();
        let mut legacy =
            spends.iter().any(|spend| is_legacy(spend.kind)).then(|| Legacy::new(parts));
        let signer = locks.signer();
        let mut signatures = 0;
        for (input, spend) in spends.iter().enumerate() {
            signatures += spend.kind.signatures() as u32;
            let outpoint = &parts.outpoints[36 * input..36 * (input + 1)];
            locks.with(spend.kind, &spend.key, |lock| match &lock.unlock {
                Unlock::Hash { public_key, key_hash } => {
                    let code = p2pkh_code(key_hash);
                    let digest = match &mut legacy {
                        Some(legacy) if is_legacy(spend.kind) => legacy.digest(input, &code),
                        _ => bip143.digest(outpoint, &code, spend.amount),
                    };
                    let signature = signer.ecdsa(&digest, &spend.key.secret(0)).serialize_der();
                    if spend.kind == Kind::P2pkh {
                        script_sigs.push((signature.len() + 1 + 35) as u8);
                        push_signature(script_sigs, &signature, hash_type);
                        push(script_sigs, public_key);
                        witnesses.push(0);
                    } else {
                        nesting(script_sigs, spend.kind, key_hash);
                        witnesses.push(2);
                        push_signature(witnesses, &signature, hash_type);
                        push(witnesses, public_key);
                    }
                }
                Unlock::Multi(script) if spend.kind == Kind::P2shMulti => {
                    let digest = legacy.as_mut().expect("a legacy input is present");
                    let digest = digest.digest(input, &multi_code(script));
                    let mut body = vec![0]; // CHECKMULTISIG's dummy
                    two_signatures(&mut body, signer, (spend, &digest), hash_type);
                    body.extend_from_slice(&[0x4c, script.len() as u8]); // OP_PUSHDATA1
                    body.extend_from_slice(&script[..]);
                    compact_size(script_sigs, body.len() as u64);
                    script_sigs.extend_from_slice(&body);
                    witnesses.push(0);
                }
                Unlock::Bare { dummy } => {
                    let digest = legacy.as_mut().expect("a legacy input is present");
                    let mut code = Vec::with_capacity(1 + lock.script().len());
                    push(&mut code, lock.script());
                    let digest = digest.digest(input, &code);
                    let signature = signer.ecdsa(&digest, &spend.key.secret(0)).serialize_der();
                    script_sigs.push((usize::from(*dummy) + signature.len() + 2) as u8);
                    if *dummy {
                        script_sigs.push(0);
                    }
                    push_signature(script_sigs, &signature, hash_type);
                    witnesses.push(0);
                }
                Unlock::Never => unreachable!("what cannot be spent is never planned to be"),
                Unlock::Multi(script) => {
                    script_sigs.push(0);
                    let code = multi_code(script);
                    let digest = bip143.digest(outpoint, &code, spend.amount);
                    witnesses.extend_from_slice(&[4, 0]); // four items, the first is CHECKMULTISIG's dummy
                    two_signatures(witnesses, signer, (spend, &digest), hash_type);
                    push(witnesses, &script[..]);
                }
                Unlock::Key(keypair) => {
                    script_sigs.push(0);
                    let digest =
                        bip341.as_ref().expect("a taproot input is present").digest(input, None);
                    witnesses.push(1);
                    push(witnesses, &signer.schnorr(&digest, keypair));
                }
                Unlock::Leaf(leaf) => {
                    script_sigs.push(0);
                    let bip341 = bip341.as_ref().expect("a taproot input is present");
                    let digest = bip341.digest(input, Some(&leaf.hash));
                    witnesses.push(3);
                    push(witnesses, &signer.schnorr(&digest, &leaf.keypair));
                    push(witnesses, &leaf.script);
                    push(witnesses, &leaf.control_block);
                }
            });
            script_sig_ends.push(script_sigs.len());
        }
        signatures
    }

    fn emit_base(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&sighash::VERSION);
        self.emit_body(out);
        out.extend_from_slice(&sighash::LOCK_TIME);
    }

    fn emit_segwit(&self, out: &mut Vec<u8>, start: usize) -> Written {
        out.extend_from_slice(&sighash::VERSION);
        out.extend_from_slice(&[0, 1]);
        let body = out.len();
        self.emit_body(out);
        let body_end = out.len();
        out.extend_from_slice(&self.witnesses);
        out.extend_from_slice(&sighash::LOCK_TIME);
        let mut base = Sha256::new();
        base.update(&sighash::VERSION);
        base.update(&out[body..body_end]);
        base.update(&sighash::LOCK_TIME);
        let bytes = (out.len() - start) as u32;
        let weight = bytes + 3 * (8 + body_end - body) as u32;
        let wtxid = sha256d(&out[start..]);
        Written { txid: base.finalize_double(), wtxid, bytes, weight, signatures: 0, schnorr: 0 }
    }

    /// Writes inputs and outputs with their counts.
    fn emit_body(&self, out: &mut Vec<u8>) {
        compact_size(out, self.parts.input_count as u64);
        let mut script_start = 0;
        for (outpoint, end) in self.parts.outpoints.chunks_exact(36).zip(&self.script_sig_ends) {
            out.extend_from_slice(outpoint);
            out.extend_from_slice(&self.script_sigs[script_start..*end]);
            out.extend_from_slice(&sighash::SEQUENCE);
            script_start = *end;
        }
        compact_size(out, self.parts.output_count as u64);
        out.extend_from_slice(&self.parts.outputs);
    }
}

/// Appends a length and the bytes. All data has less than 253 bytes, where compact sizes match script pushes of up to 75 bytes.
fn push(out: &mut Vec<u8>, bytes: &[u8]) {
    debug_assert!(bytes.len() < 253);
    out.push(bytes.len() as u8);
    out.extend_from_slice(bytes);
}

/// The two signatures of a 2-of-3.
fn two_signatures(
    out: &mut Vec<u8>,
    signer: &Signer,
    (spend, digest): (&Spend, &[u8; 32]),
    hash_type: u8,
) {
    for number in signing_pair(spend.amount) {
        let signature = signer.ecdsa(digest, &spend.key.secret(number));
        push_signature(out, &signature.serialize_der(), hash_type);
    }
}

/// The input script of a key hash with a witness: its program if nested in P2SH (BIP141).
fn nesting(script_sigs: &mut Vec<u8>, kind: Kind, key_hash: &[u8; 20]) {
    if kind == Kind::P2shP2wpkh {
        script_sigs.push(23);
        push(script_sigs, &p2wpkh_program(key_hash));
    } else {
        script_sigs.push(0);
    }
}

fn push_signature(out: &mut Vec<u8>, der: &[u8], hash_type: u8) {
    out.push(der.len() as u8 + 1);
    out.extend_from_slice(der);
    out.push(hash_type);
}

/// The script code of every kind with a key hash, with its length (BIP143).
fn p2pkh_code(key_hash: &[u8; 20]) -> [u8; 26] {
    let mut code = [0u8; 26];
    code[..4].copy_from_slice(&[25, 0x76, 0xa9, 0x14]);
    code[4..24].copy_from_slice(key_hash);
    code[24..].copy_from_slice(&[0x88, 0xac]);
    code
}

/// The script code of a 2-of-3, with its length.
fn multi_code(script: &[u8; 105]) -> [u8; 106] {
    let mut code = [0u8; 106];
    code[0] = 105;
    code[1..].copy_from_slice(script);
    code
}

/// The two of three keys that sign, in script order: all three pairs occur.
fn signing_pair(amount: u64) -> [u8; 2] {
    [[0, 1], [0, 2], [1, 2]][(amount % 3) as usize]
}
