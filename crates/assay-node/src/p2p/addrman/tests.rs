//! Positions from Core's `rpc_net.py`, invariants after random operations against a naive model, and files.

use std::collections::{BTreeMap, BTreeSet};

use assay_testkit::random::Random;

use super::entry::{NEW_BUCKETS, TRIED_BUCKETS};
use super::*;

const NOW_S: i64 = 1_700_000_000;
const MAGIC: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];

fn tables() -> Tables {
    let config = AddrManConfig { is_deterministic: true, ..AddrManConfig::default() };
    Tables::new(config.new_key(), config.rng())
}

fn address(host: Host, port: u16) -> PeerAddress {
    let time = NOW_S as u32;
    PeerAddress { time, services: 9, endpoint: Endpoint { host, port } }
}

fn parse(text: &str, port: u16) -> PeerAddress {
    address(Host::parse(text).unwrap().or_cjdns(), port)
}

const ONION: &str = "pg6mmjiyjmcrsslvykfwnntlaru7p5svn6y2ymmju6nubxndf4pscryd.onion";
const ONION_2: &str = "nrfj6inpyf73gpkyool35hcmne5zwfmse3jl3aw23vk7chdemalyaqad.onion";
const I2P: &str = "c4gfnttsuwqomiygupdqqqyy5y5emnk5c73hrfvatri67prd7vyq.b32.i2p";

#[test]
fn positions_match_core() {
    let mut tables = tables();
    for (text, port, is_tried, bucket, place) in [
        ("2.0.0.0", 8333, false, 82, 8),
        ("fc00:1:2:3:4:5:6:7", 8333, false, 336, 24),
        (I2P, 8333, false, 963, 46),
        ("2803:0:1234:abcd::1", 45324, false, 613, 6),
        ("1.2.3.4", 8333, true, 6, 33),
        ("1233:3432:2434:2343:3234:2345:6546:4534", 8333, true, 197, 34),
        (ONION, 8333, true, 72, 61),
        (ONION_2, 45324, true, 139, 46),
    ] {
        let address = parse(text, port);
        assert!(tables.add(&address, &address.endpoint.host, 0, NOW_S), "{text}");
        if is_tried {
            assert!(tables.good(&address.endpoint, true, NOW_S), "{text}");
        }
        let id = tables.find(&address.endpoint).unwrap();
        let buckets = if is_tried { &tables.tried } else { &tables.new };
        assert_eq!(buckets[bucket][place], id, "{text}");
    }
    assert_eq!(tables.fault(), None);
    // An address that collides with a tried one has to wait.
    let late = parse("1.2.5.45", 8333);
    assert!(tables.add(&late, &late.endpoint.host, 0, NOW_S));
    assert!(!tables.good(&late.endpoint, true, NOW_S));
    assert_eq!(tables.count(None), Count { new: 5, tried: 4 });
    assert_eq!(tables.count(Some(NetworkKind::Onion)), Count { new: 0, tried: 2 });
    assert!(!tables.add(&parse("10.0.0.1", 1), &late.endpoint.host, 0, NOW_S));
}

#[test]
fn collisions_are_resolved_by_testing() {
    let setup = || {
        let mut tables = tables();
        let (old, new) = (parse("1.2.3.4", 8333), parse("1.2.5.45", 8333));
        for address in [&old, &new] {
            tables.add(address, &address.endpoint.host, 0, NOW_S);
            tables.good(&address.endpoint, true, NOW_S);
        }
        (tables, old, new)
    };
    let is_tried = |tables: &Tables, address: &PeerAddress| {
        tables.entries[&tables.find(&address.endpoint).unwrap()].is_tried
    };
    let (mut tables, old, new) = setup();
    assert_eq!(tables.select_collision().map(|(found, _)| found), Some(old));
    tables.resolve_collisions(NOW_S + 60);
    assert!(tables.collisions.is_empty() && is_tried(&tables, &old), "it answered lately");
    // The present entry was tried again hours later, and had a minute to answer.
    let (mut tables, ..) = setup();
    let later_s = NOW_S + 5 * 3600;
    tables.attempt(&old.endpoint, false, later_s);
    tables.resolve_collisions(later_s + 60);
    assert!(is_tried(&tables, &old) && !tables.collisions.is_empty());
    tables.resolve_collisions(later_s + 61);
    assert!(is_tried(&tables, &new) && !is_tried(&tables, &old) && tables.collisions.is_empty());
    assert_eq!(tables.fault(), None);
    // The test was not possible.
    let (mut tables, ..) = setup();
    tables.resolve_collisions(later_s);
    assert!(is_tried(&tables, &new));
    assert_eq!(tables.fault(), None);
}

#[test]
fn detects_terrible_addresses() {
    let entry = Entry::new(parse("1.2.3.4", 1), Host::NONE);
    let day_s = 24 * 3600;
    for (expected, entry) in [
        (false, entry),
        (true, Entry { attempts: 3, ..entry }),
        (false, Entry { attempts: 3, try_s: NOW_S - 60, ..entry }),
        (false, Entry { attempts: 9, success_s: NOW_S - 8 * day_s, ..entry }),
        (true, Entry { attempts: 10, success_s: NOW_S - 8 * day_s, ..entry }),
        (false, Entry { attempts: 10, success_s: NOW_S - 6 * day_s, ..entry }),
    ] {
        assert_eq!(entry.is_terrible(NOW_S), expected, "{entry:?}");
    }
    assert!(entry.is_terrible(NOW_S + 31 * day_s) && entry.is_terrible(NOW_S - 601));
    let chance = |attempts, try_s| Entry { try_s, attempts, ..entry }.chance(NOW_S);
    assert!((chance(0, 0) - 1.0).abs() < 1e-9 && (chance(1, 0) - 0.66).abs() < 1e-9);
    assert!((chance(0, NOW_S - 599) - 0.01).abs() < 1e-9);
    assert!((chance(50, 0) - chance(8, 0)).abs() < 1e-9);
}

/// Model without buckets: the oracle for known addresses and their possible positions.
#[derive(Default)]
struct Model {
    sources: BTreeMap<Endpoint, BTreeSet<Host>>,
    good: BTreeSet<Endpoint>,
}

impl Model {
    fn check(&self, tables: &Tables) {
        assert_eq!(tables.fault(), None);
        for entry in tables.entries.values() {
            let endpoint = entry.address.endpoint;
            let sources = &self.sources[&endpoint];
            assert!(sources.contains(&entry.source));
            assert!(!entry.is_tried || self.good.contains(&endpoint));
            // Each source yields one possible position.
            assert!(entry.is_tried || entry.references <= sources.len());
        }
        for (bucket, place, id) in check::held(&tables.new) {
            let entry = &tables.entries[&id];
            let sources = &self.sources[&entry.address.endpoint];
            let can_be = sources.iter().any(|source| {
                entry.new_bucket(&tables.key, source) == bucket
                    && entry.place(&tables.key, true, bucket) == place
            });
            assert!(can_be, "{entry:?} in {bucket}/{place}");
        }
        let (new, tried) = (held_count(&tables.new), held_count(&tables.tried));
        let count = tables.count(None);
        assert!(count.new <= new && count.tried == tried);
    }
}

fn held_count(buckets: &tables::Buckets) -> usize {
    check::held(buckets).map(|(_, _, id)| id).collect::<Vec<_>>().len()
}

fn any_host(random: &mut Random) -> Host {
    let byte = |random: &mut Random, limit| random.below(limit) as u8;
    match random.below(8) {
        0 => Host::Onion([byte(random, 40); 32]),
        1 => Host::V6([
            0x2a,
            1,
            2,
            byte(random, 3),
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            byte(random, 9),
        ]),
        2 => Host::V4([10, 0, 0, 1]),
        _ => Host::V4([byte(random, 3) + 1, byte(random, 4), 7, byte(random, 255)]),
    }
}

#[test]
fn random_operations_keep_invariants() {
    for seed in 0..6 {
        let (mut random, mut tables, mut model) = (Random(seed), tables(), Model::default());
        // Few positions, so that addresses collide: one source group has 64 buckets of new ones.
        let mut now_s = NOW_S;
        for step in 0..1500 {
            now_s += random.below(2000) as i64;
            let host = any_host(&mut random);
            let mut one = address(host, 8333 + random.below(2) as u16);
            one.time = tables::seconds(now_s - random.below(10_000) as i64);
            let endpoint = one.endpoint;
            match random.below(8) {
                0..=3 => {
                    let source = Host::V4([9, random.below(20) as u8, 1, 1]);
                    if host.is_routable() {
                        model.sources.entry(endpoint).or_default().insert(source);
                    }
                    let was_known = tables.find(&endpoint).is_some();
                    let added = tables.add(&one, &source, random.below(2) as i64 * 7200, now_s);
                    assert!(host.is_routable() || !added);
                    assert!(!added || tables.find(&endpoint).is_some());
                    assert!(!was_known || tables.find(&endpoint).is_some());
                }
                4 | 5 => {
                    if tables.find(&endpoint).is_some() {
                        model.good.insert(endpoint);
                    }
                    let moved = tables.good(&endpoint, random.below(3) > 0, now_s);
                    let id = tables.find(&endpoint);
                    assert!(!moved || id.is_some_and(|id| tables.entries[&id].is_tried));
                }
                6 => tables.attempt(&endpoint, random.below(2) == 0, now_s),
                _ => tables.resolve_collisions(now_s),
            }
            if step % 100 == 0 {
                model.check(&tables);
            }
        }
        model.check(&tables);
        assert!(tables.count(None).tried > 5 && tables.count(None).new > 20, "seed {seed}");
        lists_are_parts(&mut tables, now_s);
        files_come_back(&tables);
    }
}

fn lists_are_parts(tables: &mut Tables, now_s: i64) {
    let usable: BTreeSet<Endpoint> = tables
        .entries
        .values()
        .filter(|entry| !entry.is_terrible(now_s))
        .map(|entry| entry.address.endpoint)
        .collect();
    let all = tables.list(&Wanted::default(), now_s);
    assert_eq!(all.iter().map(|address| address.endpoint).collect::<BTreeSet<_>>(), usable);
    assert_eq!(all.len(), usable.len(), "none comes twice");
    let network = Some(NetworkKind::Onion);
    let onions = tables.list(&Wanted { network, ..Wanted::default() }, now_s);
    assert!(onions.iter().all(|address| matches!(address.endpoint.host, Host::Onion(_))));
    let some = tables.list(&Wanted { percent_max: 23, count_max: 1000, network: None }, now_s);
    assert!(some.len() <= tables.all.len() * 23 / 100);
    assert_eq!(tables.fault(), None);
    for networks in [&[][..], &[NetworkKind::Ipv6], &[NetworkKind::I2p]] {
        for only_new in [false, true] {
            let found = tables.select(only_new, networks, now_s);
            let is_meant = |entry: &&Entry| {
                let network = entry.host().network();
                (!only_new || !entry.is_tried)
                    && (networks.is_empty() || networks.contains(&network))
            };
            let meant = tables.entries.values().filter(is_meant);
            let meant: Vec<_> = meant.map(|entry| entry.address).collect();
            assert_eq!(found.is_some(), !meant.is_empty());
            assert!(found.is_none_or(|(address, _)| meant.contains(&address)));
        }
    }
}

fn files_come_back(tables: &Tables) {
    let bytes = tables.to_file(MAGIC);
    let read = Tables::from_file(&bytes, MAGIC, Rng::seeded(1)).expect("our own file");
    let by_place = |tables: &Tables| {
        let places = |buckets: &tables::Buckets| {
            let of = |(bucket, place, id)| {
                let Entry { address, source, success_s, attempts, .. } = tables.entries[&id];
                (bucket, place, address, source, success_s, attempts)
            };
            check::held(buckets).map(of).collect::<Vec<_>>()
        };
        (places(&tables.new), places(&tables.tried), tables.counts.clone())
    };
    let (mut written, read_back) = (by_place(tables), by_place(&read));
    written.2.retain(|_, count| *count != Count::default());
    assert_eq!(written, read_back);
    assert_eq!(read.to_file(MAGIC).len(), bytes.len());
    for length in (0..bytes.len()).step_by(997) {
        assert!(matches!(
            Tables::from_file(&bytes[..length], MAGIC, Rng::seeded(1)),
            Err(FileFault::End)
        ));
    }
    let mut random = Random(7);
    for _ in 0..300 {
        let mut damaged = bytes.clone();
        let at = random.below(damaged.len());
        damaged[at] ^= 1 << random.below(8);
        let found = Tables::from_file(&damaged, MAGIC, Rng::seeded(1));
        assert!(found.is_err(), "byte {at}");
    }
}

#[test]
fn file_errors_match_core() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::default();
    clock.set(NOW_S as u64);
    let config = AddrManConfig { magic: MAGIC, is_deterministic: true, check_ratio: 1 };
    let path = dir.path().join(FILE_NAME);
    let open = || AddrMan::open(dir.path(), config, clock.clone());
    let one = parse("1.2.3.4", 8333);
    let addresses = open().unwrap();
    assert!(addresses.add(&[one], &one.endpoint.host, 0) && addresses.good(&one.endpoint));
    addresses.save();
    assert_eq!(open().unwrap().count(None), Count { new: 0, tried: 1 });
    assert_eq!(open().unwrap().entries(true).len(), 1);
    let right = fs::read(&path).unwrap();
    let fault = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = right[..right.len() - 32].to_vec();
        change(&mut bytes);
        fs::write(&path, seal(bytes)).unwrap();
        open().err().map(|error| error.to_string()).unwrap_or_default()
    };
    for (change, expected) in [
        (
            (&|bytes: &mut Vec<u8>| bytes[0] ^= 1) as &dyn Fn(&mut Vec<u8>),
            "Invalid or corrupt peers.dat (Invalid network magic number). If you believe",
        ),
        (
            &|bytes| bytes[5] = 0,
            "The compat value (0) is lower than the expected minimum value 32.:",
        ),
        (&|bytes| bytes[6..38].fill(0), "(AutoFile::read: end of file"),
        (&|bytes| bytes[38..42].fill(0xff), "nNew=-1, should be in [0, 65536]:"),
        (&|bytes| bytes[42..46].fill(0xff), "nTried=-1, should be in [0, 16384]:"),
    ] {
        let found = fault(change);
        // Another key changes the positions; the rest of the file is still read.
        let is_key = expected.starts_with("(AutoFile");
        let is_right =
            if is_key { found.contains("failed with code -16") } else { found.contains(expected) };
        assert!(is_right, "{found}");
    }
    fs::write(&path, &right[..right.len() - 1]).unwrap();
    assert!(open().is_err_and(|error| error.to_string().contains("AutoFile::read: end of file")));
    let mut damaged = right.clone();
    *damaged.last_mut().unwrap() ^= 1;
    fs::write(&path, &damaged).unwrap();
    assert!(open().is_err_and(|error| error.to_string().contains("Checksum mismatch")));
    let later = fault(&|bytes| bytes[5] = 32 + 111);
    assert_eq!(later, "", "it is put aside");
    assert!(dir.path().join(BACKUP_NAME).exists());
    assert_eq!(open().unwrap().count(None), Count::default());
}

#[test]
fn one_source_fills_few_positions() {
    let mut tables = tables();
    let source = Host::V4([9, 9, 9, 9]);
    for number in 0..4000u32 {
        let [_, a, b, c] = number.to_be_bytes();
        tables.add(&address(Host::V4([a + 20, b, c, 1]), 8333), &source, 0, NOW_S);
    }
    let buckets: BTreeSet<usize> = check::held(&tables.new).map(|(bucket, ..)| bucket).collect();
    assert!(buckets.len() <= 64, "{} buckets", buckets.len());
    assert!(buckets.iter().all(|bucket| *bucket < NEW_BUCKETS) && TRIED_BUCKETS == 256);
    assert_eq!(tables.fault(), None);
}
