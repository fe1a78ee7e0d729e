//! Signatures over secp256k1.

use assay_consensus::script::{Flags, ScriptError, TxContext, verify_input};
use assay_wire::{TxBuilder, TxOut};
use secp256k1::{Message, PublicKey, SecretKey, ecdsa};

use crate::input::{FirstByte, Input};

/// Signatures and keys of any shape. ECDSA is judged a second time on plain numbers, read by a lax
/// parser of this file; strictness is judged by the words of BIP-0066.
pub fn signature(data: &[u8]) {
    let mut input = Input(data);
    let how = input.byte();
    let message: [u8; 32] = input.array();
    let key = match how % 4 {
        // A real key, in one of its forms, perhaps with a wrong first byte.
        0 | 1 => {
            let Ok(secret) = SecretKey::from_secret_bytes([how | 1; 32]) else { return };
            let public = PublicKey::from_secret_key(&secret);
            let mut key = public.serialize_uncompressed().to_vec();
            if how & 4 == 0 {
                key = public.serialize().to_vec();
            }
            key[0] ^= input.byte() & 7;
            key
        }
        _ => input.counted().to_vec(),
    };
    let mut sig = input.counted().to_vec();
    if how & 8 == 0
        && let Ok(secret) = SecretKey::from_secret_bytes([how | 1; 32])
    {
        // A valid signature with some bytes changed, put in or taken out.
        let valid = ecdsa::sign(Message::from_digest(message), &secret).serialize_der().to_vec();
        sig = edit(valid, &sig);
    }

    let verdict = assay_secp::verify_ecdsa(&key, &sig, &message);
    assert_eq!(verdict, by_numbers(&key, &sig, &message), "key {key:02x?} sig {sig:02x?}");

    let strict = strict_error(&key, &sig);
    assert_eq!(strict, !is_strict(&sig), "{sig:02x?}");

    let mut long: [u8; 64] = input.array();
    long[..sig.len().min(64)].copy_from_slice(&sig[..sig.len().min(64)]);
    let (half, other): ([u8; 32], [u8; 32]) = (input.array(), input.array());
    let _ = assay_secp::verify_schnorr(&half, &long, &message);
    let _ = assay_secp::verify_schnorr_bch(&key, &long, &message);
    let even = assay_secp::taproot_tweak_ok(&half, &message, &other, false);
    let odd = assay_secp::taproot_tweak_ok(&half, &message, &other, true);
    assert!(!(even && odd), "a point has one parity");
}

/// Applies edits of three bytes: where, what, and whether to change, insert or remove.
fn edit(mut bytes: Vec<u8>, edits: &[u8]) -> Vec<u8> {
    for change in edits.chunks_exact(3).take(4) {
        let at = usize::from(change[0]) % (bytes.len() + 1);
        match change[2] % 3 {
            0 if at < bytes.len() => bytes[at] = change[1],
            1 => bytes.insert(at, change[1]),
            2 if at < bytes.len() => drop(bytes.remove(at)),
            _ => {}
        }
    }
    bytes
}

/// The verdict on r and s as this file reads them.
fn by_numbers(key: &[u8], sig: &[u8], message: &[u8; 32]) -> bool {
    let Some((r, s)) = read_lax(sig) else { return false };
    let Ok(key) = PublicKey::from_slice(key) else { return false };
    let compact = [r, s].concat();
    let Ok(mut sig) = ecdsa::Signature::from_compact(&compact) else { return false };
    sig.normalize_s();
    ecdsa::verify(&sig, Message::from_digest(*message), &key).is_ok()
}

fn read_lax(sig: &[u8]) -> Option<([u8; 32], [u8; 32])> {
    let mut rest = Input(sig.strip_prefix(&[0x30])?);
    let length = *rest.0.first()?;
    rest.bytes(1);
    let skipped = if length & 0x80 != 0 { usize::from(length & 0x7f) } else { 0 };
    if rest.bytes(skipped).len() < skipped {
        return None;
    }
    let r = read_lax_number(&mut rest)?;
    Some((r, read_lax_number(&mut rest)?))
}

fn read_lax_number(rest: &mut Input<'_>) -> Option<[u8; 32]> {
    if rest.bytes(1) != [2] {
        return None;
    }
    let mut length = usize::from(*rest.0.first()?);
    rest.bytes(1);
    if length & 0x80 != 0 {
        let digits = length & 0x7f;
        let bytes = rest.bytes(digits);
        if bytes.len() < digits {
            return None;
        }
        length = 0;
        for &byte in bytes {
            length = length.checked_mul(256)?.checked_add(usize::from(byte))?;
        }
    }
    if length > rest.0.len() {
        return None;
    }
    let bytes = rest.bytes(length);
    let digits = &bytes[bytes.iter().take_while(|&&byte| byte == 0).count()..];
    let mut out = [0; 32];
    out.get_mut(32usize.checked_sub(digits.len())?..)?.copy_from_slice(digits);
    Some(out)
}

/// True if a script that checks the signature rejects it for its encoding.
fn strict_error(key: &[u8], sig: &[u8]) -> bool {
    let pushed = [sig, &[1]].concat();
    if pushed.len() > 520 || key.len() > 520 {
        return !is_strict(sig);
    }
    let mut script_sig = vec![0x4d];
    script_sig.extend((pushed.len() as u16).to_le_bytes());
    script_sig.extend(&pushed);
    let mut script = vec![0x4d];
    script.extend((key.len() as u16).to_le_bytes());
    script.extend(key);
    script.push(0xac);
    let tx = TxBuilder::new(1).input(1, 1, &script_sig, 0).output(0, &[]).build();
    let spent = [TxOut { value: 0, script_pubkey: &script }];
    let context = TxContext::new(tx.view(), &spent);
    let verdict = verify_input(&context, 0, Flags::DERSIG, &mut FirstByte);
    verdict == Err(ScriptError::SigDer)
}

/// BIP-0066, sentence by sentence, on a signature without its hash type.
fn is_strict(sig: &[u8]) -> bool {
    let at = |index: usize| sig.get(index).copied().map(usize::from);
    let length = sig.len();
    let (Some(0x30), Some(total), Some(2), Some(r)) = (at(0), at(1), at(2), at(3)) else {
        return false;
    };
    let (Some(2), Some(s)) = (at(4 + r), at(5 + r)) else { return false };
    let number = |start: usize, size: usize| {
        let digits = sig.get(start..start + size).unwrap_or_default();
        let negative = digits.first().is_some_and(|&byte| byte & 0x80 != 0);
        let padded = digits.len() > 1 && digits[0] == 0 && digits[1] & 0x80 == 0;
        !digits.is_empty() && !negative && !padded
    };
    (8..=72).contains(&length)
        && total + 2 == length
        && r + s + 6 == length
        && number(4, r)
        && number(6 + r, s)
}
