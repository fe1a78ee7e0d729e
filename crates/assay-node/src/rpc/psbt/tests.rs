//! Vectors of Bitcoin Core, and each output type signed and finalized.

use assay_consensus::params::ChainParams;
use assay_testkit::chain::TxBuilder;
use assay_testkit::{data, hex};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::*;
use crate::rpc::descriptor::Descriptor;
use crate::rpc::sign_raw::Spent;

fn regtest() -> ChainParams {
    ChainParams::by_name("regtest").unwrap()
}

fn shown(psbt: &Psbt) -> Value {
    let mut out = Vec::new();
    let mut object = Json::new(&mut out).object();
    show::write(&regtest(), psbt, &mut object);
    object.end();
    serde_json::from_slice(&out).unwrap()
}

fn provider(descriptors: &[String]) -> Provider {
    let mut provider = Provider::default();
    for text in descriptors {
        for descriptor in Descriptor::parse(&regtest(), text).unwrap() {
            provider.add(&descriptor, 0, true).unwrap();
        }
    }
    provider
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// Core's `rpc_psbt.json`: valid and invalid PSBTs, and each role.
#[test]
fn vectors_of_bitcoin_core() {
    let Some(file) = data::read("vectors/rpc_psbt.json") else { return };
    let file: Value = serde_json::from_slice(&file).unwrap();
    let list = |name: &str| file[name].as_array().unwrap().clone();
    for one in list("invalid") {
        assert!(Psbt::decode(text(&one)).is_err(), "{one}");
    }
    for one in list("invalid_with_msg") {
        let error = Psbt::decode(text(&one[0])).unwrap_err();
        assert!(error.starts_with(text(&one[1])), "{error}, not {}", one[1]);
    }
    for one in list("valid") {
        let psbt = Psbt::decode(text(&one)).unwrap();
        assert_eq!(Psbt::decode(&psbt.encode()).unwrap().encode(), psbt.encode());
        assert_eq!(shown(&psbt)["inputs"].as_array().unwrap().len(), psbt.inputs.len());
    }
    for one in list("signer") {
        let keys = one["privkeys"].as_array().unwrap();
        let provider: Vec<String> =
            keys.iter().map(|key| format!("combo({})", text(key))).collect();
        let mut provider = self::provider(&provider);
        provider.hides_origins = true;
        let mut psbt = Psbt::decode(text(&one["psbt"])).unwrap();
        let signing = Signing::new(&psbt).unwrap();
        let options = Options { sighash: Some(1), finalize: true, is_blank: false };
        for index in 0..psbt.inputs.len() {
            let _ = sign_input(&provider, &mut psbt, index, &signing, options);
        }
        assert_eq!(psbt.encode(), text(&one["result"]));
    }
    for one in list("combiner") {
        let all = one["combine"].as_array().unwrap();
        let mut psbt = Psbt::decode(text(&all[0])).unwrap();
        assert!(all[1..].iter().all(|other| psbt.merge(&Psbt::decode(text(other)).unwrap())));
        assert_eq!(psbt.encode(), text(&one["result"]));
    }
    for one in list("finalizer") {
        let mut psbt = Psbt::decode(text(&one["finalize"])).unwrap();
        finalize(&mut psbt);
        assert_eq!(psbt.encode(), text(&one["result"]));
    }
    for one in list("extractor") {
        let mut psbt = Psbt::decode(text(&one["extract"])).unwrap();
        assert_eq!(finalize(&mut psbt), Some(hex::decode(text(&one["result"]))));
    }
}

/// Transaction that spends each of these outputs, with one output.
fn spending(spent: &[Spent]) -> Psbt {
    let inputs = 0..spent.len() as u32;
    let tx = inputs.fold(TxBuilder::new(2), |tx, vout| tx.input(7, vout, &[], 0xffff_fffd));
    let mut psbt = Psbt::new(&tx.output(9_000, &[0x51]).build(), 0);
    for (input, spent) in psbt.inputs.iter_mut().zip(spent) {
        input.set_witness_utxo(spent);
    }
    psbt
}

#[test]
fn signs_every_output_type() {
    let secret = "cVpF924EspNh8KjYsfhgY96mmxvT6DgdWiTYMtMjuM74hJaU5psW";
    let other = "cUeKHd5orzT3mz8P9pxyREHfsWtVfgsfDjiZZBcjUBAaGk1BTj7N";
    let descriptors = [
        format!("wpkh({secret})"),
        format!("sh(wpkh({other}))"),
        format!("wsh(multi(2,{secret},{other}))"),
        format!("sh(wsh(pkh({secret})))"),
        format!("tr({secret})"),
        format!("rawtr({other})"),
    ];
    let mut spent = Vec::new();
    for one in &descriptors {
        let descriptor = Descriptor::parse(&regtest(), one).unwrap().remove(0);
        let script = descriptor.expand(&regtest(), 0).unwrap().remove(0).script;
        spent.push(Spent { value: 10_000, script });
    }
    for (version, sighash) in [(0, None), (2, None), (0, Some(0x83)), (2, Some(2))] {
        let mut psbt = spending(&spent);
        psbt.version = version;
        let signing = Signing::new(&psbt).unwrap();
        let provider = provider(&descriptors);
        for finalize in [false, true] {
            for index in 0..psbt.inputs.len() {
                let options = Options { sighash, finalize, is_blank: false };
                let (result, data) = sign_input(&provider, &mut psbt, index, &signing, options);
                // The other inputs have no output of the same index.
                let is_possible = sighash != Some(0x83) || index == 0;
                if is_possible || !matches!(index, 4 | 5) {
                    assert_eq!(result, Ok(()), "{index} {sighash:?} {:?}", data.missing);
                }
            }
            psbt = Psbt::decode(&psbt.encode()).unwrap();
            assert_eq!(psbt.inputs[0].is_final(), finalize);
        }
        if sighash != Some(0x83) {
            let tx = finalize(&mut psbt).expect("all inputs are signed");
            assert!(Transaction::parse(tx, Encoding::Segwit).unwrap().view().has_witness());
        }
    }
}

#[test]
fn legacy_inputs_require_the_previous_transaction() {
    let secret = "cVpF924EspNh8KjYsfhgY96mmxvT6DgdWiTYMtMjuM74hJaU5psW";
    let descriptor = format!("pkh({secret})");
    let script = Descriptor::parse(&regtest(), &descriptor).unwrap().remove(0);
    let script = script.expand(&regtest(), 0).unwrap().remove(0).script;
    let mut psbt = spending(&[Spent { value: 10_000, script }]);
    let signing = Signing::new(&psbt).unwrap();
    let options = Options { sighash: None, finalize: true, is_blank: false };
    let before = psbt.clone();
    let result = sign_input(&provider(&[descriptor]), &mut psbt, 0, &signing, options).0;
    assert_eq!((result, psbt), (Err(solve::Unsigned::Incomplete), before));
}

#[test]
fn random_bytes_do_not_panic() {
    let secret = "cVpF924EspNh8KjYsfhgY96mmxvT6DgdWiTYMtMjuM74hJaU5psW";
    let descriptor = format!("wpkh({secret})");
    let script = Descriptor::parse(&regtest(), &descriptor).unwrap().remove(0);
    let script = script.expand(&regtest(), 0).unwrap().remove(0).script;
    let mut psbt = spending(&[Spent { value: 10_000, script }]);
    let signing = Signing::new(&psbt).unwrap();
    let options = Options { sighash: None, finalize: false, is_blank: false };
    assert!(sign_input(&provider(&[descriptor]), &mut psbt, 0, &signing, options).0.is_ok());
    for version in [0, 2] {
        psbt.version = version;
        let whole = STANDARD.decode(psbt.encode()).unwrap();
        for at in 0..whole.len() {
            assert!(Psbt::decode(&STANDARD.encode(&whole[..at])).is_err(), "{at}");
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << (at % 8);
            if let Ok(mut psbt) = Psbt::decode(&STANDARD.encode(damaged)) {
                shown(&psbt);
                finalize(&mut psbt);
                psbt.encode();
            }
        }
    }
}
