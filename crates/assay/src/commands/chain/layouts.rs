//! Block files as crashes, disks, old versions and users leave them. All readers of block files find the same blocks
//! and report the same damage. The layouts follow reports on Bitcoin Core (issues 5028, 11736, 21379, 24858, 33280).

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock};

use assay_engine::{
    ChainParams, Config, ConnectState, Engine, InvalidBlock, ScanReport, Schnorr, ValidateConfig,
    ValidateProgress, validate,
};
use assay_hash::sha256d;
use assay_node::BlockArchive as _;
use assay_stats::{BlockSet, Heights, Item, ReadOptions, read};
use assay_testkit::chain::{coinbase_with, header_on, mined_block_bytes};
use assay_wire::{Block, BlockHash, Encoding, Header, Transaction};

use super::{ledger, serve};
use crate::cli::{LedgerArguments, ServeChainArguments};

const COUNT: usize = 8;
const KEY: [u8; 8] = [0x11, 0xa2, 0x00, 0x34, 0x45, 0x56, 0xc7, 0x78];
const OTHER_KEY: [u8; 8] = [0x5c, 0x01, 0x77, 0x93, 0xfe, 0x42, 0x13, 0x58];

fn params() -> Arc<ChainParams> {
    Arc::new(ChainParams::by_name("regtest").expect("a known chain"))
}

/// Blocks from height 1 on, each with a coinbase that commits to its own witness.
static BLOCKS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| branch(params().genesis_hash, 1, 0));

/// A branch on a parent up to the last height; `salt` distinguishes branches.
fn branch(mut parent: BlockHash, first: usize, salt: u8) -> Vec<Vec<u8>> {
    let genesis_time = params().genesis.time;
    let commitment = sha256d(&[0; 64]);
    let commits = [&[0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed][..], &commitment].concat();
    let mut blocks = Vec::new();
    for height in first..=COUNT {
        let coinbase = coinbase_with(&[0x50 + height as u8, 0x51, salt])
            .output(1_000_000, &[0x51])
            .output(0, &commits)
            .witness(&[&[0; 32]]);
        let header = Header { version: 4, ..header_on(parent, genesis_time + 600 * height as u32) };
        let raw = mined_block_bytes(header, &[coinbase.build()]);
        parent = hash(&raw);
        blocks.push(raw);
    }
    blocks
}

fn parse(raw: &[u8]) -> Block {
    Block::parse(raw.to_vec(), Encoding::Segwit).expect("a test block parses")
}

fn hash(raw: &[u8]) -> BlockHash {
    parse(raw).hash()
}

fn raw(height: usize) -> Vec<u8> {
    BLOCKS[height - 1].clone()
}

/// A record of a block file.
fn framed(raw: &[u8]) -> Vec<u8> {
    framed_for(&params(), raw)
}

fn framed_for(params: &ChainParams, raw: &[u8]) -> Vec<u8> {
    [&params.disk_magic[..], &(raw.len() as u32).to_le_bytes(), raw].concat()
}

fn record(height: usize) -> Vec<u8> {
    framed(&raw(height))
}

fn records(heights: std::ops::RangeInclusive<usize>) -> Vec<u8> {
    heights.flat_map(record).collect()
}

/// A record whose length field is `length`.
fn with_length(height: usize, length: usize) -> Vec<u8> {
    let mut record = record(height);
    record[4..8].copy_from_slice(&(length as u32).to_le_bytes());
    record
}

/// The block with another value in its coinbase: the merkle root is wrong, the proof of work is valid.
fn altered(height: usize) -> Vec<u8> {
    let mut raw = raw(height);
    let block = parse(&raw);
    let script = block.tx(0).output(0).script_pubkey.as_ptr() as usize;
    raw[script - block.bytes().as_ptr() as usize - 9] ^= 1;
    raw
}

fn other_witness(height: usize) -> Vec<u8> {
    let mut raw = raw(height);
    let last = raw.len() - 5;
    raw[last] ^= 1;
    raw
}

/// The block without its witness, as stored by nodes older than segwit.
fn stripped(height: usize) -> Vec<u8> {
    let raw = raw(height);
    let block = parse(&raw);
    let tx = block.tx(0);
    // Leaves out marker and flag, and the witness (count, length and item) before the lock time.
    let bytes = tx.raw();
    let end = bytes.len() - 4;
    let tx = [&bytes[..4], &bytes[6..end - 34], &bytes[end..]].concat();
    Transaction::parse(tx.clone(), Encoding::Segwit).expect("a transaction without witness");
    [&raw[..81], &tx].concat()
}

/// Chain and damage that readers report.
#[derive(Clone, Copy, Debug)]
enum Expected {
    /// The blocks up to this height.
    Chain(usize),
    /// The blocks below this height; every copy of the block at it is damaged.
    Damaged(usize),
    /// The blocks below this height; the block at it is missing, though others build on it.
    Missing(usize),
    /// No block: every reader but an import fails with this error.
    Nothing(&'static str),
}

const WHOLE: Expected = Expected::Chain(COUNT);
const DAMAGED: Expected = Expected::Damaged(3);

/// Layouts: name, parts ([`part`]), and what readers find. `@` starts the next file, with a number or a name.
const LAYOUTS: &[(&str, &str, Expected)] = &[
    ("in order", "1-8", WHOLE),
    ("in the opposite order", "8 7 6 5 4 3 2 1", WHOLE),
    ("genesis first", "regtest 1-8", WHOLE),
    ("genesis last, and twice", "1-8 regtest regtest", WHOLE),
    ("293 zeros behind genesis", "regtest zeros:293 1-8", WHOLE),
    ("zeros reserved behind the last record", "1-8 zeros:2097152", WHOLE),
    ("zeros reserved between records", "1-3 zeros:2097152 4-8", WHOLE),
    ("eight zeros before a record", "1-3 zeros:8 4-8", WHOLE),
    ("zeros before the first record", "zeros:100 1-8", WHOLE),
    ("stray bytes between records", "1-3 stray:5000 4-8", WHOLE),
    ("stray bytes before and behind", "stray:5000 1-8 stray:5000", WHOLE),
    ("the magic twice", "1-3 4/4 4-8", WHOLE),
    ("the magic three times", "1-3 4/4 4/4 4-8", WHOLE),
    ("magic and length twice", "1-3 8/4 4-8", WHOLE),
    ("the magic at the end", "1-8 4/4", WHOLE),
    ("part of the magic before a record", "1-3 3/4 4-8", WHOLE),
    ("magic, length and zeros", "1-8 8/4 zeros:500", WHOLE),
    // Several copies of a block, or a damaged one.
    ("the smallest", "1-2 100/3 3", Expected::Chain(3)),
    ("100 bytes of a record, and the record", "1-2 100/3 3-8", WHOLE),
    ("the record, and 100 bytes of it", "1-3 100/3 4-8", WHOLE),
    ("100 bytes twice, and the record", "1-2 100/3 100/3 3-8", WHOLE),
    ("half a header, and the record", "1-2 50/3 3-8", WHOLE),
    ("magic and length, and the record", "1-2 8/3 3-8", WHOLE),
    ("all but a byte, and the record", "1-2 cut:3 3-8", WHOLE),
    ("twice", "1-3 3-8", WHOLE),
    ("altered, and whole", "1-2 altered:3 3-8", WHOLE),
    ("whole, and altered", "1-3 altered:3 4-8", WHOLE),
    ("altered twice, and whole", "1-2 altered:3 altered:3 3-8", WHOLE),
    ("another witness, and whole", "1-2 witness:3 3-8", WHOLE),
    ("without witness, and whole", "1-2 stripped:3 3-8", WHOLE),
    ("bytes behind the block in its record", "1-2 behind:3 4-8", WHOLE),
    ("a length that is too large, into the next record", "1-2 long:3 4-8", WHOLE),
    ("a length that is too small, and the record", "1-2 short:3 3-8", WHOLE),
    ("a length that no file has, and the record", "1-2 huge:3 3-8", WHOLE),
    ("altered alone", "1-2 altered:3 4-8", DAMAGED),
    ("another witness alone", "1-2 witness:3 4-8", DAMAGED),
    ("without witness alone", "1-2 stripped:3 4-8", DAMAGED),
    ("100 bytes alone", "1-2 100/3 4-8", DAMAGED),
    ("a length that is too small alone", "1-2 short:3 4-8", DAMAGED),
    ("missing", "1-2 4-8", Expected::Missing(3)),
    ("half a header alone", "1-2 50/3 4-8", Expected::Missing(3)),
    ("blocks that wait for one whose first copy is damaged", "4-8 1-2 altered:3 3", WHOLE),
    ("the last record is cut off", "1-7 150/8", Expected::Chain(COUNT - 1)),
    ("a record inside a gap of another's length", "1-3 gap:4 4-8", WHOLE),
    // Several files, and unrelated ones.
    ("two files", "1-4 @1 5-8", WHOLE),
    ("two, in another order", "5-8 @1 1-4", WHOLE),
    ("an empty file", "@1 1-8", WHOLE),
    ("a file twice", "1-8 @7 1-8", WHOLE),
    ("cut off at the end of a file, and whole in the next", "1-4 100/5 @1 5-8", WHOLE),
    ("damaged in one file, and whole in a later one", "1-3 altered:4 5-8 @2 4", WHOLE),
    ("files of other names", "1-8 @rev00000.dat 1 @blk1.dat.bak stray:99", WHOLE),
    ("a file of another chain", "1-8 @1 main", WHOLE),
    ("a block of another chain between", "1-4 test 5-8", WHOLE),
    ("a branch of less work", "branch 1-8", WHOLE),
    ("another chain alone", "main", Expected::Nothing("of regtest")),
];

/// A key, and the contents of `xor.dat`.
type Keys = ([u8; 8], &'static [u8]);

/// Obfuscated layouts.
const KEYED: [(&str, &str, Keys, Expected); 6] = [
    ("obfuscated", "1-8", (KEY, &KEY), WHOLE),
    ("a key of zeros", "1-8", ([0; 8], &[0; 8]), WHOLE),
    ("obfuscated, with zeros reserved", "1-4 key:70000 @1 5-8", (KEY, &KEY), WHOLE),
    ("obfuscated, with a partial copy", "1-4 100/5 5-8", (KEY, &KEY), WHOLE),
    ("another key", "1-8", (KEY, &OTHER_KEY), Expected::Nothing("hold no block of regtest")),
    (
        "a key that is too short",
        "1-8",
        (KEY, &[0x11; 7]),
        Expected::Nothing("is 7 bytes long; a key has 8"),
    ),
];

/// Bytes at an offset of a file: a record (`3`), several (`1-8`), the first bytes of one (`100/3`), a variant of one
/// (`altered:3`), other bytes (`zeros:8`), or the genesis block of a chain.
fn part(text: &str, offset: usize) -> Vec<u8> {
    let number = |text: &str| text.parse::<usize>().expect("a number");
    if let Some((bytes, height)) = text.split_once('/') {
        return record(number(height))[..number(bytes)].to_vec();
    }
    if let Some((first, last)) = text.split_once('-') {
        return records(number(first)..=number(last));
    }
    let Some((what, count)) = text.split_once(':') else {
        if let Some(params) = ChainParams::by_name(text) {
            return framed_for(&params, &params.genesis_block());
        }
        if text == "branch" {
            return branch(hash(&raw(2)), 3, 9)[..3].iter().flat_map(|raw| framed(raw)).collect();
        }
        return record(number(text));
    };
    let count = number(count);
    match what {
        "zeros" => vec![0; count],
        "stray" => (0..count).map(|at| (at * 7 % 251 + 1) as u8).collect(),
        // Zeros on the disk.
        "key" => (offset..offset + count).map(|at| KEY[at % 8]).collect(),
        "altered" => framed(&altered(count)),
        "witness" => framed(&other_witness(count)),
        "stripped" => framed(&stripped(count)),
        "behind" => framed(&[raw(count), vec![0xfa, 0xbf, 7]].concat()),
        "cut" => record(count)[..raw(count).len() + 7].to_vec(),
        "long" => with_length(count, raw(count).len() + 40),
        "short" => with_length(count, raw(count).len() - 20),
        "huge" => with_length(count, raw(count).len() | (1 << 31)),
        "gap" => [&with_length(count, raw(count).len() + 600)[..8], &[7; 80]].concat(),
        _ => panic!("{text}"),
    }
}

struct Layout {
    name: &'static str,
    /// Names and contents, without obfuscation.
    files: Vec<(String, Vec<u8>)>,
    /// Obfuscation key of the files, and the contents of `xor.dat`.
    keys: Option<([u8; 8], &'static [u8])>,
    expected: Expected,
}

impl Layout {
    fn all() -> impl Iterator<Item = Self> {
        let plain = LAYOUTS.iter().map(|&(name, parts, expected)| (name, parts, None, expected));
        let keyed = KEYED.map(|(name, parts, keys, expected)| (name, parts, Some(keys), expected));
        plain.chain(keyed).map(|(name, parts, keys, expected)| {
            let mut files = vec![("blk00000.dat".to_owned(), Vec::new())];
            for text in parts.split(' ') {
                if let Some(file) = text.strip_prefix('@') {
                    let number = file.parse::<u32>();
                    let name =
                        number.map_or(file.to_owned(), |number| format!("blk{number:05}.dat"));
                    files.push((name, Vec::new()));
                } else if let Some((_, bytes)) = files.last_mut() {
                    bytes.extend(part(text, bytes.len()));
                }
            }
            Self { name, files, keys, expected }
        })
    }

    fn write(&self, dir: &Path) {
        fs::create_dir_all(dir).expect("a folder");
        let key = self.keys.map_or([0; 8], |(key, _)| key);
        for (name, contents) in &self.files {
            let bytes = contents.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key);
            fs::write(dir.join(name), bytes.collect::<Vec<_>>()).expect("written");
        }
        if let Some((_, xor_dat)) = self.keys {
            fs::write(dir.join("xor.dat"), xor_dat).expect("written");
        }
    }
}

/// Result of one reader of block files.
#[derive(Debug, Default)]
struct Seen {
    /// Hashes of the chain from height 1 on.
    hashes: Vec<BlockHash>,
    /// The same blocks in serialised form, if the reader returns them.
    raw: Vec<Vec<u8>>,
    /// Reports about damaged and missing blocks.
    said: Vec<String>,
}

type Outcome = Result<Seen, String>;

struct Silent;

impl ValidateProgress for Silent {
    fn scanning(&self, _: u64, _: u64) {}
    fn scanned(&self, _: &ScanReport) {}
    fn invalid(&self, _: &InvalidBlock) {}
    fn connected(&self, _: &ConnectState) {}
    fn flushing(&self, _: u32) {}
    fn hashing(&self, _: u32) {}
}

fn validated(blocks: &Path) -> Outcome {
    let datadir = tempfile::tempdir().expect("a folder");
    let config = ValidateConfig {
        blocks: blocks.to_owned(),
        params: params(),
        datadir: datadir.path().to_owned(),
        is_lasting: false,
        stop_height: None,
        assume_valid: None,
        cache_bytes_max: 8 << 20,
        threads: 2,
        script_batch: None,
        sample_signatures: 256,
        schnorr: Schnorr::default(),
        write_spent: None,
        write_hints: None,
    };
    let found = validate(&config, &AtomicBool::new(false), &Silent);
    let found = found.map_err(|error| error.to_string())?;
    // The tip commits to the blocks below it.
    let chain = BLOCKS.iter().map(|raw| hash(raw)).take(found.height as usize);
    let hashes: Vec<BlockHash> = chain.collect();
    assert_eq!(found.hash, hashes.last().copied().unwrap_or(params().genesis_hash));
    let said = found.invalid.iter().map(InvalidBlock::to_string);
    let said = said.chain(found.scan.missing.iter().map(ToString::to_string)).collect();
    Ok(Seen { hashes, raw: Vec::new(), said })
}

/// `-loadblock`, or `-reindex` of the node's own files.
fn imported(blocks: &Path, is_own: bool) -> Outcome {
    let dir = tempfile::tempdir().expect("a folder");
    let mut config = Config::new(dir.path(), params());
    config.threads = 2;
    config.cache_bytes_max = 8 << 20;
    if is_own {
        let own = dir.path().join("blocks");
        fs::create_dir(&own).expect("a folder");
        for entry in fs::read_dir(blocks).expect("readable").flatten() {
            fs::copy(entry.path(), own.join(entry.file_name())).expect("copied");
        }
        config.reindex = true;
    }
    let engine = Engine::open(config).map_err(|error| error.to_string())?;
    let part = engine.blocks();
    let found = if is_own { part.reindex(&|| true) } else { part.load(blocks, &|| true) };
    let found = found.map_err(|error| error.to_string())?;
    let tip = engine.chain().tip();
    let (mut hashes, mut raw, mut at) = (Vec::new(), Vec::new(), tip.hash);
    while at != params().genesis_hash {
        hashes.push(at);
        raw.push(engine.blocks().read(&at).expect("readable").expect("stored"));
        at = engine.chain().entry(&at).expect("known").header.prev_block;
    }
    hashes.reverse();
    raw.reverse();
    let said = found.refused.iter().map(InvalidBlock::to_string).collect();
    engine.shutdown().expect("closed");
    Ok(Seen { hashes, raw, said })
}

/// `assay chain stats`, without the blocks above a damaged one.
fn counted(blocks: &Path) -> Outcome {
    let set = BlockSet::open(blocks, params(), 2, &|_, _| ()).map_err(|error| error.to_string())?;
    let mut seen = Seen::default();
    let options = ReadOptions { threads: 2, ..ReadOptions::default() };
    read(&set, Heights { first: 1, last: u32::MAX }, &options, &mut |item| {
        match item {
            Item::Block(row) => seen.hashes.push(row.hash),
            Item::Damage(damage) => {
                seen.said.push(damage.to_string());
                return std::ops::ControlFlow::Break(());
            }
            Item::Txs(_) => {}
        }
        std::ops::ControlFlow::Continue(())
    });
    seen.said.extend(set.found().missing.iter().map(ToString::to_string));
    Ok(seen)
}

/// `assay chain ledger`, then its users `run --blocks`, `pr --blocks` and `chain serve`. If the
/// chain may go on, the ledger needs an explicit last height.
fn listed(blocks: &Path, height: usize) -> [Outcome; 2] {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = |stop_height| LedgerArguments {
        blocks: blocks.to_owned(),
        chain: "regtest".to_owned(),
        stop_height,
        test_activation_height: Vec::new(),
        out: folder.path().to_owned(),
        threads: 2,
        json: false,
    };
    let make = |stop| ledger::make(&arguments(stop)).map_err(|error| format!("{error:#}"));
    let (ledger, said) = match make(None) {
        Ok((ledger, _)) => (ledger, Vec::new()),
        Err(error) => {
            let stop = u32::try_from(height).ok().filter(|height| *height > 0);
            if stop.is_none() || !error.contains(&format!("--stop-height {height}")) {
                return [Err(error.clone()), Err(error)];
            }
            let (ledger, _) = make(stop).expect("the ledger up to there");
            (ledger, vec![error])
        }
    };
    let lines = ledger.blocks.iter();
    let hashes = lines.map(|line| line.hash.parse::<BlockHash>().expect("a hash")).collect();
    let chain = assay_lab::chain::Chain::open(folder.path()).expect("a ledger");
    let read = |block| {
        let mut raw = Vec::new();
        chain.read_block(block, |piece| raw.extend_from_slice(piece)).expect("readable");
        raw
    };
    let raw = chain.blocks.iter().map(read).collect();
    let run = Seen { hashes, raw, said: said.clone() };

    let folder = folder.path().to_owned();
    let arguments = ServeChainArguments { folder, p2p: None, p2p_rate: None, json: false };
    let archive = serve::open(&arguments, &ledger, params()).expect("an archive");
    let read = |height| {
        let mut raw = Vec::new();
        archive.read(height, &mut raw).expect("readable");
        raw
    };
    let heights = 1..=archive.tip();
    let served = heights.clone().map(|height| archive.hash(height)).collect();
    let served = Seen { hashes: served, raw: heights.map(read).collect(), said };
    [Ok(run), Ok(served)]
}

#[test]
fn everything_that_reads_block_files_finds_the_same_blocks() {
    for layout in Layout::all() {
        let dir = tempfile::tempdir().expect("a folder");
        let blocks = dir.path().join("blocks");
        layout.write(&blocks);
        let height = match layout.expected {
            Expected::Chain(height) => height,
            Expected::Damaged(height) | Expected::Missing(height) => height - 1,
            Expected::Nothing(_) => 0,
        };
        let [run, served] = listed(&blocks, height);
        for (user, outcome) in [
            ("validate", validated(&blocks)),
            ("-loadblock", imported(&blocks, false)),
            ("-reindex", imported(&blocks, true)),
            ("chain stats", counted(&blocks)),
            ("run --blocks", run),
            ("chain serve", served),
        ] {
            let of = format!("{}: {user}", layout.name);
            check(&layout, (user, of.as_str()), outcome, (blocks.as_path(), height));
        }
    }
}

#[test]
fn damaged_blocks_are_not_served() {
    let (dir, out) =
        (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let file = dir.path().join("blk00000.dat");
    fs::write(&file, records(1..=COUNT)).expect("written");
    let (ledger, _) = ledger::make(&LedgerArguments {
        blocks: dir.path().to_owned(),
        chain: "regtest".to_owned(),
        stop_height: None,
        test_activation_height: Vec::new(),
        out: out.path().to_owned(),
        threads: 1,
        json: false,
    })
    .expect("a ledger");
    // A changed length marks the files as changed, even if time stamps are coarse.
    fs::write(
        &file,
        [records(1..=2), framed(&altered(3)), records(4..=COUNT), vec![0; 9]].concat(),
    )
    .expect("written");
    let folder = out.path().to_owned();
    let arguments = ServeChainArguments { folder, p2p: None, p2p_rate: None, json: false };
    let archive = serve::open(&arguments, &ledger, params()).expect("an archive");
    let mut bytes = Vec::new();
    let error = archive.read(3, &mut bytes).expect_err("damaged").to_string();
    assert!(
        error.starts_with(&format!("damaged block {} at height 3: ", hash(&raw(3)))),
        "{error}"
    );
    archive.read(4, &mut bytes).expect("whole");
    assert_eq!(bytes, raw(4));
}

fn check(
    layout: &Layout,
    (user, of): (&str, &str),
    outcome: Outcome,
    (blocks, height): (&Path, usize),
) {
    let is_import = user.starts_with('-');
    let seen = match (layout.expected, outcome) {
        (Expected::Nothing(words), Err(error)) => {
            assert!(error.contains(words), "{of}: {error}");
            return;
        }
        (Expected::Nothing(_), Ok(seen)) => {
            assert!(is_import && seen.hashes.is_empty(), "{of}: {seen:?}");
            return;
        }
        (_, outcome) => outcome.unwrap_or_else(|error| panic!("{of}: {error}")),
    };
    let expected: Vec<BlockHash> = BLOCKS[..height].iter().map(|raw| hash(raw)).collect();
    assert_eq!(seen.hashes, expected, "{of}: {:?}", seen.said);
    if !seen.raw.is_empty() {
        assert_eq!(seen.raw, BLOCKS[..height], "{of}");
    }
    let said = seen.said.join("\n");
    let place = |height: usize| {
        // The first record with this header: a wrong record before it belongs to another layout.
        let (name, bytes) = &layout.files[0];
        let header = &raw(height)[..80];
        let at = bytes.windows(80).position(|window| window == header).expect("a copy");
        format!("{name} offset {at})")
    };
    match layout.expected {
        Expected::Damaged(height) => {
            let block = format!("damaged block {} at height {height}: ", hash(&raw(height)));
            for part in [&block[..], &place(height), "; copy that file again"] {
                assert!(said.contains(part), "{of}: {part}\n{said}");
            }
        }
        // An import may get the block from peers.
        Expected::Missing(height) if !is_import => {
            let (parent, child) = (hash(&raw(height)), hash(&raw(height + 1)));
            let block =
                format!("missing block {parent} at height {height}, the parent of {child} (");
            for part in [&block[..], &place(height + 1), "add the file that holds it"] {
                assert!(said.contains(part), "{of}: {part}\n{said}");
            }
        }
        _ => {
            // Only a ledger needs the last height of a chain.
            let cut = user.starts_with("run") || user.starts_with("chain serve");
            assert!(said.is_empty() || cut && said.contains("is not whole"), "{of}: {said}");
        }
    }
    assert!(blocks.is_dir(), "{of}");
}
