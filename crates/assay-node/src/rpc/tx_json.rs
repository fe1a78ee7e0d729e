//! Transactions as JSON (`core_io.cpp`, `TxToUniv`).

use assay_consensus::params::ChainParams;
use assay_wire::{Coin, Tx, TxOut};

use super::script::{write_script_pubkey, write_script_sig};
use crate::jsonrpc::{Json, Object};

#[derive(Debug, Clone, Copy)]
pub(super) enum Spent<'a> {
    /// No undo data, or a coinbase.
    Unknown,
    /// Used for the fee only.
    Fee(&'a [Coin]),
    /// Included in the result.
    Show(&'a [Coin]),
}

impl<'a> Spent<'a> {
    fn coins(self) -> Option<&'a [Coin]> {
        match self {
            Self::Unknown => None,
            Self::Fee(coins) | Self::Show(coins) => Some(coins),
        }
    }

    fn shown(self, input: usize) -> Option<&'a Coin> {
        match self {
            Self::Show(coins) => coins.get(input),
            Self::Unknown | Self::Fee(_) => None,
        }
    }
}

/// Writes the members of `tx` and its hexadecimal serialization.
pub(super) fn write_tx(
    params: &ChainParams,
    tx: Tx<'_>,
    spent: Spent<'_>,
    object: &mut Object<'_>,
) {
    write_tx_members(params, tx, spent, object);
    object.key("hex").hex(tx.raw());
}

/// As [`write_tx`], without the hexadecimal serialization.
pub(super) fn write_tx_members(
    params: &ChainParams,
    tx: Tx<'_>,
    spent: Spent<'_>,
    object: &mut Object<'_>,
) {
    object.key("txid").text(tx.txid());
    object.key("hash").text(tx.wtxid());
    // Consensus treats the version as signed, but Bitcoin Core prints it unsigned since version 28.
    object.key("version").int(tx.version().cast_unsigned());
    object.key("size").count(tx.total_size());
    object.key("vsize").count(tx.weight().div_ceil(4));
    object.key("weight").count(tx.weight());
    object.key("locktime").int(tx.lock_time());
    let coinbase = tx.is_coinbase();
    object.key("vin").objects(0..tx.input_count(), |index, input| {
        write_input(params, tx, index, coinbase, spent.shown(index), input);
    });
    let mut outputs = object.key("vout").array();
    for (index, output) in tx.outputs().enumerate() {
        write_output(params, index, output, outputs.item());
    }
    outputs.end();
    if let Some(coins) = spent.coins() {
        let paid_in: i64 = coins.iter().map(|coin| coin.value).sum();
        let paid_out: i64 = tx.outputs().map(|output| output.value).sum();
        object.key("fee").amount(paid_in - paid_out);
    }
}

fn write_input(
    params: &ChainParams,
    tx: Tx<'_>,
    index: usize,
    coinbase: bool,
    prevout: Option<&Coin>,
    object: &mut Object<'_>,
) {
    let input = tx.input(index);
    if coinbase {
        object.key("coinbase").hex(input.script_sig);
    } else {
        object.key("txid").text(input.prevout.txid);
        object.key("vout").int(input.prevout.vout);
        write_script_sig(params, input.script_sig, object.key("scriptSig"));
    }
    let witness = tx.witness(index);
    if !witness.is_empty() {
        object.key("txinwitness").list(witness, |item, json| json.hex(item));
    }
    if let Some(coin) = prevout {
        let mut prevout = object.key("prevout").object();
        prevout.key("generated").bool(coin.coinbase);
        prevout.key("height").int(coin.height);
        prevout.key("value").amount(coin.value);
        let mut script = prevout.key("scriptPubKey").object();
        write_script_pubkey(params, &coin.script_pubkey, &mut script);
    }
    object.key("sequence").int(input.sequence);
}

fn write_output(params: &ChainParams, index: usize, output: TxOut<'_>, json: Json<'_>) {
    let mut object = json.object();
    object.key("value").amount(output.value);
    object.key("n").count(index);
    let mut script = object.key("scriptPubKey").object();
    write_script_pubkey(params, output.script_pubkey, &mut script);
}

#[cfg(test)]
mod tests {
    use assay_testkit::hex;
    use assay_wire::{Encoding, Script, Transaction};

    use super::*;

    /// The first payment ever (block 170), as decoded by block explorers and Bitcoin Core.
    const FIRST_PAYMENT: &str = "0100000001c997a5e56e104102fa209c6a852dd90660a20b2d9c352423edce25857fcd3704000000004847304402204e45e16932b8af514961a1d3a1a25fdf3f4f7732e9d624c6c61548ab5fb8cd410220181522ec8eca07de4860a4acdd12909d831cc56cbbac4622082221a8768d1d0901ffffffff0200ca9a3b00000000434104ae1a62fe09c5f51b13905f07f06b99a2f7159b2225f374cd378d71302fa28414e7aab37397f554a7df5f142c21c1b7303b8a0626f1baded5c72a704f7e6cd84cac00286bee0000000043410411db93e1dcdb8a016b49840f8c53bc1eb68a382e97b1482ecad7b148a6909a5cb2e0eaddfb84ccf9744464f82e160bfa9b8b64f9d4c03f999b8643f656b412a3ac00000000";

    fn decoded(text: &str, spent: Spent<'_>) -> serde_json::Value {
        let tx = Transaction::parse(hex::decode(text), Encoding::Segwit).unwrap();
        let params = ChainParams::by_name("main").unwrap();
        let mut out = Vec::new();
        let mut object = Json::new(&mut out).object();
        write_tx(&params, tx.view(), spent, &mut object);
        object.end();
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn the_first_payment_decodes_as_published() {
        let coins = [Coin {
            value: 5_000_000_000,
            height: 9,
            coinbase: true,
            script_pubkey: Script::from(&[0x51][..]),
        }];
        let tx = decoded(FIRST_PAYMENT, Spent::Show(&coins));
        assert_eq!(tx["txid"], "f4184fc596403b9d638783cf57adfe4c75c605f6356fbc91338530e9831e9e16");
        assert_eq!(tx["hash"], tx["txid"]);
        assert_eq!(
            (&tx["size"], &tx["vsize"], &tx["weight"]),
            (&275.into(), &275.into(), &1100.into())
        );
        let input = &tx["vin"][0];
        assert_eq!(
            input["txid"],
            "0437cd7f8525ceed2324359c2d0ba26006d92d856a9c20fa0241106ee5a597c9"
        );
        assert_eq!(
            input["scriptSig"]["asm"],
            "304402204e45e16932b8af514961a1d3a1a25fdf3f4f7732e9d624c6c61548ab5fb8cd410220181522ec8eca07de4860a4acdd12909d831cc56cbbac4622082221a8768d1d09[ALL]"
        );
        assert_eq!(input["sequence"], 4_294_967_295_u32);
        assert_eq!(
            (&input["prevout"]["generated"], &input["prevout"]["height"]),
            (&true.into(), &9.into())
        );
        assert_eq!(tx["vout"][1]["scriptPubKey"]["type"], "pubkey");
        assert_eq!(tx["hex"], FIRST_PAYMENT);
    }

    #[test]
    fn amounts_and_order_are_exact() {
        let tx = Transaction::parse(hex::decode(FIRST_PAYMENT), Encoding::Segwit).unwrap();
        let mut out = Vec::new();
        let mut object = Json::new(&mut out).object();
        let params = ChainParams::by_name("main").unwrap();
        let coins = [Coin {
            value: 5_000_000_001,
            height: 9,
            coinbase: true,
            script_pubkey: Script::EMPTY,
        }];
        write_tx(&params, tx.view(), Spent::Fee(&coins), &mut object);
        object.end();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(r#""value":10.00000000,"n":0"#));
        assert!(text.contains(r#""fee":0.00000001,"hex":"#));
        assert!(!text.contains("prevout"));
        let order =
            ["txid", "hash", "version", "size", "vsize", "weight", "locktime", "vin", "vout"];
        let places: Vec<_> =
            order.iter().map(|name| text.find(&format!("\"{name}\":")).unwrap()).collect();
        assert!(places.is_sorted());
    }

    #[test]
    fn witnesses_and_coinbases_decode() {
        // BIP143, native P2WPKH, signed.
        let segwit = "01000000000102fff7f7881a8099afa6940d42d1e7f6362bec38171ea3edf433541db4e4ad969f00000000494830450221008b9d1dc26ba6a9cb62127b02742fa9d754cd3bebf337f7a55d114c8e5cdd30be022040529b194ba3f9281a99f2b1c0a19c0489bc22ede944ccf4ecbab4cc618ef3ed01eeffffffef51e1b804cc89d182d279655c3aa89e815b1b309fe287d9b2b55d57b90ec68a0100000000ffffffff02202cb206000000001976a9148280b37df378db99f66f85c95a783a76ac7a6d5988ac9093510d000000001976a9143bde42dbee7e4dbe6a21b2d50ce2f0167faa815988ac000247304402203609e17b84f6a7d30c80bfa610b5b4542f32a8a0d5447a12fb1366d7f01cc44a0220573a954c4518331561406f90300e8f3358f51928d43c212a8caed02de67eebee0121025476c2e83188368da1ff3e292e7acafcdb3566bb0ad253f62fc70f07aeee635711000000";
        let tx = decoded(segwit, Spent::Unknown);
        assert_ne!(tx["txid"], tx["hash"]);
        assert_eq!(tx["locktime"], 17);
        assert_eq!(tx["vin"][0].get("txinwitness"), None);
        assert_eq!(tx["vin"][1]["txinwitness"].as_array().unwrap().len(), 2);
        assert_eq!(tx["vin"][1]["scriptSig"]["asm"], "");
        assert_eq!(tx.get("fee"), None);
        assert_eq!(tx["vout"][0]["scriptPubKey"]["address"], "1Cu32FVupVCgHkMMRJdYJugxwo2Aprgk7H");
    }
}
