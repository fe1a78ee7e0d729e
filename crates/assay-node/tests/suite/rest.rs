//! REST over a socket, without credentials.

use assay_node::NodeConfig;
use faster_hex::hex_string;
use serde_json::{Value, json};

use crate::node::Fixture;
use crate::support::{Answer, Client};

fn with_rest(config: &mut NodeConfig) {
    config.rpc.rest = true;
}

/// Node with REST, a hundred blocks and an unconfirmed transaction.
fn node() -> (Fixture, Client, String) {
    let mut f = Fixture::new().restart(with_rest);
    f.mature();
    let tx = f.spend_coinbase(1, &[4_999_990_000]);
    f.call("sendrawtransaction", &json!([hex_string(tx.bytes())]));
    let client = Client::connect(f.node.rpc_addresses()[0], "nobody:wrong");
    (f, client, tx.view().txid().to_string())
}

fn get(client: &mut Client, path: &str) -> Answer {
    client.request("GET", &format!("/rest{path}"), b"")
}

/// Status and text of an error.
fn error(client: &mut Client, path: &str) -> (u16, String) {
    let answer = get(client, path);
    assert_eq!(answer.header("content-type"), Some("text/plain"), "{path}");
    let text = answer.text();
    (answer.status, text.strip_suffix("\r\n").expect("the end of a line").to_owned())
}

/// Response in all formats, which must agree; returns bytes and JSON.
fn formats(client: &mut Client, path: &str, query: &str) -> (Vec<u8>, Value) {
    let mut one = |format: &str, kind: &str| {
        let answer = get(client, &format!("{path}.{format}{query}"));
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(kind)), "{path}");
        answer
    };
    let bytes = one("bin", "application/octet-stream").body;
    assert_eq!(one("hex", "text/plain").text(), format!("{}\n", hex_string(&bytes)));
    (bytes, one("json", "application/json").json())
}

#[test]
fn disabled_by_default() {
    let f = Fixture::new();
    let mut client = Client::connect(f.node.rpc_addresses()[0], "nobody:wrong");
    assert_eq!(get(&mut client, "/chaininfo.json").status, 404);
}

#[test]
fn missing_block_files_are_an_error() {
    let (f, mut client, _) = node();
    let hash = f.blocks[100].hash();
    let part = format!("/blockpart/{hash}.bin?offset=0&size=1");
    assert_eq!(get(&mut client, &part).status, 200);
    let folder = f.dir.path().join("regtest/blocks");
    std::fs::rename(folder.join("blk00000.dat"), folder.join("moved")).unwrap();
    for path in [part, format!("/block/{hash}.bin")] {
        assert_eq!(error(&mut client, &path), (500, format!("I/O error reading {hash}")));
    }
}

#[test]
fn serves_chain_and_blocks() {
    let (mut f, mut client, txid) = node();
    f.mine(&[f.spend_coinbase(1, &[4_999_990_000])]);
    let (block, hash) = (f.blocks[101].clone(), f.blocks[101].hash().to_string());
    let (bytes, object) = formats(&mut client, &format!("/block/{hash}"), "");
    assert_eq!(bytes, block.bytes());
    assert_eq!(object, f.call("getblock", &json!([hash, 3])));
    let (_, object) = formats(&mut client, &format!("/block/notxdetails/{hash}"), "");
    assert_eq!(object["tx"][1], txid);
    let part = get(&mut client, &format!("/blockpart/{hash}.bin?offset=20&size=30"));
    assert_eq!(part.body, &block.bytes()[20..50]);
    let (bytes, object) =
        formats(&mut client, &format!("/headers/{}", f.blocks[100].hash()), "?count=7");
    assert_eq!(bytes, [&f.blocks[100].bytes()[..80], &block.bytes()[..80]].concat());
    assert_eq!(object[1], f.call("getblockheader", &json!([hash])));
    let by_height = get(&mut client, "/blockhashbyheight/101.json").json();
    assert_eq!(by_height, json!({ "blockhash": hash }));
    assert_eq!(get(&mut client, "/blockhashbyheight/101.hex").text(), format!("{hash}\n"));
    assert_eq!(get(&mut client, "/blockhashbyheight/101.bin").body, block.hash().0);
    let (bytes, object) = formats(&mut client, &format!("/spenttxouts/{hash}"), "");
    assert_eq!(bytes[..3], [2, 0, 1]);
    assert_eq!((&object[0], &object[1][0]["value"]), (&json!([]), &json!(50.0)));
    for (path, method) in
        [("/chaininfo.json", "getblockchaininfo"), ("/deploymentinfo.json", "getdeploymentinfo")]
    {
        assert_eq!(get(&mut client, path).json(), f.call(method, &json!([])), "{path}");
    }
    let genesis = f.blocks[0].hash();
    assert_eq!(formats(&mut client, &format!("/block/{genesis}"), "").0, f.blocks[0].bytes());
    assert_eq!(formats(&mut client, &format!("/spenttxouts/{genesis}"), "").0, [1, 0]);
}

#[test]
fn serves_transactions_coins_and_mempool() {
    let (mut f, mut client, txid) = node();
    let (bytes, object) = formats(&mut client, &format!("/tx/{txid}"), "");
    assert_eq!((&object["txid"], &object["hex"]), (&json!(txid), &json!(hex_string(&bytes))));
    let contents = get(&mut client, "/mempool/contents.json?%").json();
    assert_eq!(contents, f.call("getrawmempool", &json!([true])));
    let ids = get(&mut client, "/mempool/contents.json?verbose=false&mempool_sequence=true").json();
    assert_eq!(ids, f.call("getrawmempool", &json!([false, true])));
    assert_eq!(get(&mut client, "/mempool/info.json").json(), f.call("getmempoolinfo", &json!([])));
    let spent = f.blocks[1].tx(0).txid();
    for (mempool, bitmap) in [("", "01"), ("checkmempool/", "10")] {
        let path = format!("/getutxos/{mempool}{txid}-0/{spent}-0.json");
        let answer = get(&mut client, &path).json();
        assert_eq!(answer["bitmap"], bitmap, "{mempool}");
        assert_eq!(answer["chaintipHash"], f.blocks[100].hash().to_string());
        assert_eq!(answer["utxos"].as_array().map(Vec::len), Some(1));
    }
    let mut question = vec![0, 1];
    question.extend(spent.0);
    question.extend([0; 4]);
    let answer = client.request("POST", "/rest/getutxos.bin", &question);
    assert_eq!(answer.body[..4], 100_u32.to_le_bytes());
    assert_eq!(answer.body[36..39], [1, 1, 1]);
}

#[test]
fn marks_immutable_responses() {
    let (f, mut client, txid) = node();
    let hash = f.blocks[100].hash();
    for (path, is_kept) in [
        (format!("/block/{hash}.bin"), true),
        (format!("/block/{hash}.hex"), true),
        // Contains confirmations.
        (format!("/block/{hash}.json"), false),
        (format!("/blockpart/{hash}.bin?offset=0&size=9"), true),
        (format!("/spenttxouts/{hash}.json"), true),
        (format!("/deploymentinfo/{hash}.json"), true),
        ("/deploymentinfo.json".to_owned(), false),
        (format!("/headers/{hash}.bin"), false),
        (format!("/tx/{txid}.bin"), false),
        ("/blockhashbyheight/100.bin".to_owned(), false),
        // An error response.
        (format!("/block/{hash}.txt"), false),
        ("/nothing".to_owned(), false),
    ] {
        let expected = if is_kept { "public, immutable, max-age=86400" } else { "no-store" };
        let answer = get(&mut client, &path);
        assert_eq!(answer.header("cache-control"), Some(expected), "{path}");
    }
}

#[test]
fn errors_match_core() {
    let (f, mut client, txid) = node();
    let (tip, none) = (f.blocks[100].hash(), "00".repeat(32));
    let outpoints = format!("{txid}-0/").repeat(15);
    for (path, status, text) in [
        ("/tx/abc.json".to_owned(), 400, "Invalid hash: abc".to_owned()),
        (format!("/tx/{none}.json"), 404, format!("{none} not found")),
        (format!("/tx/{txid}.txt"), 400, format!("Invalid hash: {txid}.txt")),
        (
            format!("/tx/{txid}"),
            404,
            "output format not found (available: .bin, .hex, .json)".to_owned(),
        ),
        (format!("/block/{none}.json"), 404, format!("{none} not found")),
        (format!("/blockpart/{tip}.bin"), 400, "Block part offset missing or invalid".to_owned()),
        (
            format!("/blockpart/{tip}.bin?offset=0&size=0"),
            400,
            format!("Bad block part offset/size 0/0 for {tip}"),
        ),
        (
            format!("/blockpart/{tip}.bin?offset=1&size=18446744073709551615"),
            400,
            format!("Bad block part offset/size 1/18446744073709551615 for {tip}"),
        ),
        (
            format!("/blockpart/{tip}.json?offset=0&size=1"),
            400,
            "JSON output is not supported for this request type".to_owned(),
        ),
        (format!("/headers/{tip}%.json"), 400, format!("Invalid hash: {tip}%")),
        (
            format!("/headers/{tip}.json?count=2001"),
            400,
            "Header count is invalid or out of acceptable range (1-2000): 2001".to_owned(),
        ),
        (
            "/headers/1/2/3.json".to_owned(),
            400,
            "Invalid URI format. Expected /rest/headers/<hash>.<ext>?count=<count>".to_owned(),
        ),
        ("/blockhashbyheight/+1.json".to_owned(), 400, "Invalid height: +1".to_owned()),
        ("/blockhashbyheight/101.json".to_owned(), 404, "Block height out of range".to_owned()),
        ("/deploymentinfo/abc.json".to_owned(), 400, "Invalid hash: abc".to_owned()),
        (format!("/deploymentinfo/{none}.json"), 400, "Block not found".to_owned()),
        ("/chaininfo.bin".to_owned(), 404, "output format not found (available: json)".to_owned()),
        (
            "/mempool/x.json".to_owned(),
            400,
            "Invalid URI format. Expected /rest/mempool/<info|contents>.json".to_owned(),
        ),
        (
            "/mempool/contents.json?verbose=TRUE".to_owned(),
            400,
            "The \"verbose\" query parameter must be either \"true\" or \"false\".".to_owned(),
        ),
        (
            "/mempool/contents.json?mempool_sequence=true".to_owned(),
            400,
            "Verbose results cannot contain mempool sequence values. (hint: set \"verbose=false\")"
                .to_owned(),
        ),
        (
            format!("/getutxos/{outpoints}{txid}-0.json"),
            400,
            "Error: max outpoints exceeded (max: 15, tried: 16)".to_owned(),
        ),
    ] {
        assert_eq!(error(&mut client, &path), (status, text), "{path}");
    }
    let large = client.request("POST", "/rest/getutxos.bin", &vec![0; 65_537]);
    assert_eq!(large.status, 413);
}
