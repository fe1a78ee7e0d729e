use assay_wire::{OutPoint, Txid};

use super::coins::{Question, question};
use super::*;

fn request<'a>(part: &'a str, body: &'a [u8]) -> Request<'a> {
    Request::new(part, body)
}

#[test]
fn parses_paths_like_core() {
    for (part, path, format, query) in [
        ("ab.json", "ab", Some(Format::Json), ""),
        ("ab.hex?count=3", "ab", Some(Format::Hex), "count=3"),
        ("ab.bin?%", "ab", Some(Format::Bin), "%"),
        ("ab", "ab", None, ""),
        ("ab.", "ab", None, ""),
        ("ab.JSON", "ab.JSON", None, ""),
        ("a.b.json", "a.b", Some(Format::Json), ""),
        ("a.json?x=?y", "a.json?x=", None, "x=?y"),
        ("ab?a=1#b.json", "ab", None, "a=1"),
        ("", "", None, ""),
    ] {
        let request = request(part, b"");
        assert_eq!((request.path, request.format, request.query), (path, format, query), "{part}");
    }
}

#[test]
fn parameters_are_found_and_decoded() {
    let request = request("x.json?a=1&b&c=%41%4&%64=%zz&a=2&e=%", b"");
    for (name, value) in [
        ("a", Some("1")),
        ("b", Some("")),
        ("c", Some("A%4")),
        ("d", Some("%zz")),
        ("e", Some("%")),
        ("f", None),
    ] {
        assert_eq!(request.parameter(name).as_deref(), value, "{name}");
    }
}

#[test]
fn rejects_numbers_with_plus() {
    assert_eq!(integral::<u32>("17"), Some(17));
    for text in ["+1", "", " 1", "1 ", "-1", "99999999999"] {
        assert_eq!(integral::<u32>(text), None, "{text}");
    }
}

#[test]
fn outpoints_come_from_path_or_body() {
    let id = "0100000000000000000000000000000000000000000000000000000000000002";
    let mut txid = [0; 32];
    (txid[0], txid[31]) = (2, 1);
    let outpoints = vec![OutPoint { txid: Txid(txid), vout: 7 }];
    let mut body = vec![1, 1];
    body.extend(txid);
    body.extend([7, 0, 0, 0]);
    let asked = |part: &str, body: &[u8]| question(&request(part, body));
    let expected = |with_mempool| Question { with_mempool, outpoints: outpoints.clone() };
    assert_eq!(asked(&format!("/{id}-7.json"), b"").unwrap(), expected(false));
    assert_eq!(asked(&format!("/checkmempool/{id}-7.bin"), b"").unwrap(), expected(true));
    assert_eq!(asked(".bin", &body).unwrap(), expected(true));
    assert_eq!(asked(".hex", faster_hex::hex_string(&body).as_bytes()).unwrap(), expected(true));
    for (part, body, text) in [
        (".json".to_owned(), &b""[..], "Error: empty request"),
        (".json".to_owned(), b"{", "Error: empty request"),
        ("/checkmempool.json".to_owned(), b"", "Error: empty request"),
        (format!("/{id}-+7.json"), b"", "Parse error"),
        (format!("/{id}_7.json"), b"", "Parse error"),
        ("/aa-7.json".to_owned(), b"", "Parse error"),
        (".bin".to_owned(), b"{\"checkmempool", "Parse error"),
        (".bin".to_owned(), b"\x01\xff", "Parse error"),
        (format!("/{id}-7"), b"", "output format not found (available: .bin, .hex, .json)"),
    ] {
        assert_eq!(asked(&part, body).unwrap_err().text, text, "{part}");
    }
    let both = asked(&format!("/{id}-7.bin"), &body).unwrap_err().text;
    assert_eq!(both, "Combination of URI scheme inputs and raw post data is not allowed");
}
