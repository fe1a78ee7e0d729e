//! Peer addresses: text, encoding, and routability.

use assay_wire::p2p::{ADDRESSES_MAX, Command, Endpoint, Host, Message, NetworkKind, PeerAddress};
use assay_wire::{ParseErrorKind, Reader, encode};

fn host(text: &str) -> Host {
    Host::parse(text).unwrap_or_else(|| panic!("{text} is an address"))
}

const ONION: &str = "pg6mmjiyjmcrsslvykfwnntlaru7p5svn6y2ymmju6nubxndf4pscryd.onion";
const I2P: &str = "c4gfnttsuwqomiygupdqqqyy5y5emnk5c73hrfvatri67prd7vyq.b32.i2p";

#[test]
fn address_text_round_trips() {
    for text in ["1.2.3.4", "::1", "2803:0:1234:abcd::1", "fc00:1:2:3:4:5:6:7", ONION, I2P] {
        assert_eq!(host(text).to_string(), text);
    }
    assert_eq!(host("::ffff:1.2.3.4"), Host::V4([1, 2, 3, 4]));
    assert_eq!(host("fd87:d87e:eb43:edb1:8e4:3588:e546:35ca"), Host::NONE, "Tor's version 2");
    assert_eq!(host("fc00::1").or_cjdns().network(), NetworkKind::Cjdns);
    assert_eq!(host(&ONION.replace("pg6m", "PG6M")), host(ONION), "digits in any case");
    assert_eq!(Host::V6([0; 16]).to_string(), "::");
    let name = "esvnrefxxeqieqjdecaz.internal";
    assert_eq!(Host::of_name("bitcoin.org").to_string().len(), name.len() - 4);
    let port = |text| Endpoint { host: host(text), port: 8333 }.to_string();
    assert_eq!(port("1.2.3.4"), "1.2.3.4:8333");
    assert_eq!(port("::1"), "[::1]:8333");
    for wrong in [
        "",
        "host",
        "1.2.3",
        "1.2.3.4:5",
        ".onion",
        &ONION.replace("pg6m", "pg6n"),
        &ONION.replace("cryd", "crye"),
        &I2P.replace("vyq", "vyr"),
        "expyuzz4wqqyqhjn.onion",
    ] {
        assert_eq!(Host::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn networks_and_groups_are_cores() {
    use NetworkKind::{Cjdns, I2p, Ipv4, Ipv6, Onion, Unroutable};
    for (text, network, class, group) in [
        ("127.0.0.1", Unroutable, Unroutable, vec![0]),
        ("0.0.0.0", Unroutable, Unroutable, vec![0]),
        ("255.255.255.255", Unroutable, Unroutable, vec![0]),
        ("10.0.0.1", Unroutable, Unroutable, vec![0]),
        ("172.31.0.1", Unroutable, Unroutable, vec![0]),
        ("172.32.0.1", Ipv4, Ipv4, vec![1, 172, 32]),
        ("100.127.0.1", Unroutable, Unroutable, vec![0]),
        ("198.51.100.7", Unroutable, Unroutable, vec![0]),
        ("1.2.3.4", Ipv4, Ipv4, vec![1, 1, 2]),
        ("::1", Unroutable, Unroutable, vec![0]),
        ("fe80::1", Unroutable, Unroutable, vec![0]),
        ("fd00::1", Unroutable, Unroutable, vec![0]),
        ("2001:db8::1", Unroutable, Unroutable, vec![0]),
        ("2001:10::1", Unroutable, Unroutable, vec![0]),
        ("2001:20::1", Unroutable, Unroutable, vec![0]),
        ("64:ff9b::102:304", Ipv6, Ipv4, vec![1, 1, 2]),
        ("::ffff:0:102:304", Ipv6, Ipv4, vec![1, 1, 2]),
        ("2002:102:304:9999::9999", Ipv6, Ipv4, vec![1, 1, 2]),
        ("2001:0:9999:9999:9999:9999:fefd:fcfb", Ipv6, Ipv4, vec![1, 1, 2]),
        ("2001:470:abcd:9999::9999", Ipv6, Ipv6, vec![2, 32, 1, 4, 112, 175]),
        ("2001:2001:9999::9999", Ipv6, Ipv6, vec![2, 32, 1, 32, 1]),
        (ONION, Onion, Onion, vec![3, 0x7f]),
        (I2P, I2p, I2p, vec![4, 0x1f]),
    ] {
        let host = host(text);
        assert_eq!((host.network(), host.network_class()), (network, class), "{text}");
        assert_eq!(host.group(), group, "{text}");
    }
    let cjdns = host("fc12:3456::1").or_cjdns();
    assert_eq!((cjdns.network(), cjdns.group()), (Cjdns, vec![5, 0xfc, 0x1f]));
    let name = Host::of_name("seed");
    assert_eq!((name.network(), name.group().len()), (NetworkKind::Internal, 11));
    for network in NetworkKind::ALL {
        assert_eq!(network.name().to_uppercase().parse(), Ok(network));
    }
    assert!("internal".parse::<NetworkKind>().is_err());
}

/// One entry: time, services, host as given, port.
fn entry(host: &[u8]) -> Vec<u8> {
    [&[1, 0, 0, 0, 9], host, &[0x20, 0x8d]].concat()
}

fn parse(entries: &[Vec<u8>]) -> Result<Vec<Host>, ParseErrorKind> {
    let mut payload = Vec::new();
    encode::compact_size(&mut payload, entries.len() as u64);
    payload.extend(entries.concat());
    match Message::parse(Command::new("addrv2"), &payload) {
        Ok(Message::AddrV2(list)) => Ok(list.iter().map(|address| address.endpoint.host).collect()),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.kind),
    }
}

#[test]
fn entries_of_any_network_are_read() {
    let bytes = |id: u8, length: u8| [&[id, length], vec![9; length.into()].as_slice()].concat();
    let cjdns = [vec![6, 16, 0xfc], vec![9; 15]].concat();
    let mapped = [vec![2, 16], host("::").to_v1()[..10].to_vec(), vec![0xff, 0xff, 1, 2, 3, 4]];
    let found = parse(&[
        entry(&bytes(1, 4)),
        entry(&bytes(2, 16)),
        entry(&bytes(3, 10)),
        entry(&bytes(4, 32)),
        entry(&bytes(5, 32)),
        entry(&cjdns),
        entry(&bytes(99, 200)),
        entry(&mapped.concat()),
    ]);
    let mut cjdns_ip = [9; 16];
    cjdns_ip[0] = 0xfc;
    assert_eq!(
        found,
        Ok(vec![
            Host::V4([9; 4]),
            Host::V6([9; 16]),
            Host::NONE,
            Host::Onion([9; 32]),
            Host::I2p([9; 32]),
            Host::Cjdns(cjdns_ip),
            Host::NONE,
            Host::NONE,
        ])
    );
    let wrong = ParseErrorKind::AddressLength { network: "IPv4", length: 5, expected: 4 };
    assert_eq!(wrong.to_string(), "BIP155 IPv4 address with length 5 (should be 4)");
    assert_eq!(parse(&[entry(&bytes(1, 5))]), Err(wrong));
    let long = [vec![99, 253, 1, 2], vec![0; 513]].concat();
    let too_long = ParseErrorKind::AddressTooLong { length: 513 };
    assert_eq!(parse(&[entry(&long)]), Err(too_long));
    assert_eq!(too_long.to_string(), "Address too long: 513 > 512");
    let many = vec![entry(&bytes(1, 4)); ADDRESSES_MAX + 1];
    assert_eq!(parse(&many), Err(ParseErrorKind::TooManyAddresses { count: ADDRESSES_MAX + 1 }));
    assert_eq!(parse(&many[1..]).map(|found| found.len()), Ok(ADDRESSES_MAX));
}

#[test]
fn internal_addresses_are_for_files() {
    let address = PeerAddress {
        time: 7,
        services: u64::MAX,
        endpoint: Endpoint { host: Host::of_name("seed"), port: 0 },
    };
    let mut bytes = Vec::new();
    address.encode(&mut bytes);
    let mut reader = Reader::new(&bytes, 0);
    assert_eq!(PeerAddress::read(&mut reader), Ok(address));
    assert_eq!(reader.remaining(), 0);
    let name = address.endpoint.host;
    assert_eq!(Host::from_v1(name.to_v1()), name);
}
