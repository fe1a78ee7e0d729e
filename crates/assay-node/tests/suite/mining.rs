//! Generated blocks, compared with those of Bitcoin Core for the same commands.

use serde_json::json;

use crate::node::Fixture;

/// Bitcoin Core 31's `generatetoaddress 250` for the first key of its test framework, at mock time 1296688603.
const ADDRESS: &str = "mjTkW3DjgyZck4KbiRusZsqTgaYTxdSz6z";

#[test]
fn blocks_equal_those_of_bitcoin_core() {
    let mut f = Fixture::new();
    f.call("setmocktime", &json!([1_296_688_603]));
    let hashes = f.call("generatetoaddress", &json!([250, ADDRESS]));
    // From block 144 on they signal testdummy.
    for (height, hash) in [
        (1, "4a31ceeaab3807a7441be5f951d86a4682a217bff37123f34196e2709d852f5e"),
        (16, "013e02eb179e14e1645114d08712b8c9f00e640ab091216d3e4590bc397bfe47"),
        (17, "53b393dcd9bc326814655c6724a4c3ce96fbf5e1621aff7a0d812ef706ff1087"),
        (100, "220aee93f0f5409631f35488898258f0930952bd620063cb4d7d87f7c28a8f50"),
        (144, "470efe8e49ce9d1ffeb80d924326a2558760a0dfb7e586d8e73c5c62875d4a6b"),
        (200, "4dbcceadc31a5a172108da4429e28cde7d351b1a206670f521cb3089e4b957c2"),
        (250, "3dd7f6d4b7cf34cdb9feed81acc222c932435249ee07c5c5398404de39c867d5"),
    ] {
        assert_eq!(hashes[height - 1], hash, "{height}");
    }
    let set = f.call("gettxoutsetinfo", &json!([]));
    for (name, expected) in [
        ("txouts", json!(250)),
        ("bogosize", json!(18750)),
        (
            "hash_serialized_3",
            json!("744a35345a979ded42a4bd98eda1316e8d7dfdc316ead1683215390e8538083f"),
        ),
        ("transactions", json!(250)),
    ] {
        assert_eq!(set[name], expected, "{name}");
    }
    assert_eq!(
        f.call("gettxoutsetinfo", &json!(["muhash"]))["muhash"],
        "ba4fea859011878ff4f89f96881b2032ee7605b613cff7c1e310418bcbd62b34"
    );
    let info = f.call("getmininginfo", &json!([]));
    assert_eq!((&info["networkhashps"], &info["currentblockweight"]), (&json!(12), &json!(8000)));
    let dummy = &f.call("getdeploymentinfo", &json!([]))["deployments"]["testdummy"]["bip9"];
    assert_eq!((&dummy["status"], &dummy["since"]), (&json!("started"), &json!(144)));
    assert_eq!(dummy["statistics"]["count"], 107);
    let template = f.call("getblocktemplate", &json!([{"rules": ["segwit"]}]));
    for (name, expected) in [
        ("version", json!(0x3000_0000)),
        ("vbavailable", json!({"testdummy": 28})),
        ("mintime", json!(1_296_688_646)),
        ("curtime", json!(1_296_688_646)),
        ("coinbasevalue", json!(2_500_000_000_u64)),
        ("height", json!(251)),
        (
            "default_witness_commitment",
            json!("6a24aa21a9ede2f61c3f71d1defd3fa999dfa36953755c690689799962b48bebd836974e8cf9"),
        ),
    ] {
        assert_eq!(template[name], expected, "{name}");
    }
}

#[test]
fn coins_are_found_by_descriptor() {
    let mut f = Fixture::new();
    let key = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    f.call("generatetodescriptor", &json!([3, format!("combo({key})")]));
    f.call("generatetoaddress", &json!([1, ADDRESS]));
    let found = f.call("scantxoutset", &json!(["start", [format!("wpkh({key})")]]));
    assert_eq!((&found["success"], &found["height"]), (&json!(true), &json!(4)));
    assert_eq!((&found["txouts"], &found["total_amount"]), (&json!(4), &json!(150.0)));
    assert_eq!(found["unspents"].as_array().unwrap().len(), 3);
    let first = &found["unspents"][0];
    assert!(first["desc"].as_str().unwrap().starts_with(&format!("wpkh([751e76e8]{key})#")));
    assert_eq!(first["coinbase"], true);
    let address = f.call("scantxoutset", &json!(["start", [format!("addr({ADDRESS})")]]));
    assert_eq!(address["total_amount"], 50.0);
    assert_eq!(f.call("scantxoutset", &json!(["status"])), json!(null));
    assert_eq!(f.call("scantxoutset", &json!(["abort"])), false);
    for (params, code, text) in [
        (json!(["start"]), -1, "scanobjects argument is required for the start action"),
        (json!(["stop"]), -8, "Invalid action 'stop'"),
        (json!(["start", [5]]), -8, "Scan object needs to be either a string or an object"),
        (json!(["start", [{"desc": "x", "range": -1}]]), -8, "End of range is too high"),
    ] {
        assert_eq!(f.error("scantxoutset", &params), (code, text.to_owned()), "{params}");
    }
}
