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
    [&params().disk_magic[..], &(raw.len() as u32).to_le_bytes(), raw].concat()
}

fn record(height: usize) -> Vec<u8> {
    framed(&raw(height))
}

fn records(heights: impl IntoIterator<Item = usize>) -> Vec<u8> {
    heights.into_iter().flat_map(record).collect()
}

fn magic() -> Vec<u8> {
    params().disk_magic.to_vec()
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

struct Layout {
    name: &'static str,
    /// Names and contents, without obfuscation.
    files: Vec<(&'static str, Vec<u8>)>,
    /// Obfuscation key of the files, and the contents of `xor.dat`.
    keys: Option<([u8; 8], Vec<u8>)>,
    /// Number of unobfuscated zero bytes at the end of the first file.
    disk_zeros: usize,
    expected: Expected,
}

impl Layout {
    fn one(name: &'static str, parts: &[Vec<u8>], expected: Expected) -> Self {
        Self::many(name, &[("blk00000.dat", parts.concat())], expected)
    }

    fn whole(name: &'static str, parts: &[Vec<u8>]) -> Self {
        Self::one(name, parts, Expected::Chain(COUNT))
    }

    fn many(name: &'static str, files: &[(&'static str, Vec<u8>)], expected: Expected) -> Self {
        Self { name, files: files.to_vec(), keys: None, disk_zeros: 0, expected }
    }

    fn keyed(mut self, key: [u8; 8], xor_dat: &[u8]) -> Self {
        self.keys = Some((key, xor_dat.to_vec()));
        self
    }

    fn write(&self, dir: &Path) {
        fs::create_dir_all(dir).expect("a folder");
        for (number, (name, contents)) in self.files.iter().enumerate() {
            let mut bytes = contents.clone();
            if let Some((key, _)) = &self.keys {
                bytes.iter_mut().zip(key.iter().cycle()).for_each(|(byte, key)| *byte ^= key);
            }
            if number == 0 {
                bytes.resize(bytes.len() + self.disk_zeros, 0);
            }
            fs::write(dir.join(name), bytes).expect("written");
        }
        if let Some((_, xor_dat)) = &self.keys {
            fs::write(dir.join("xor.dat"), xor_dat).expect("written");
        }
    }
}

/// Layouts with bytes between, before and after records.
fn gaps() -> Vec<Layout> {
    let genesis = || framed(&params().genesis_block());
    let all = || records(1..=COUNT);
    let between = |bytes: Vec<u8>| [records(1..=3), bytes, records(4..=COUNT)];
    let length = (raw(4).len() as u32).to_le_bytes().to_vec();
    let junk: Vec<u8> = (0..5000u32).map(|number| (number * 7 % 251 + 1) as u8).collect();
    vec![
        Layout::whole("in order", &[all()]),
        Layout::whole("in the opposite order", &[records((1..=COUNT).rev())]),
        Layout::whole("genesis first", &[genesis(), all()]),
        Layout::whole("genesis last, and twice", &[all(), genesis(), genesis()]),
        Layout::whole("293 zeros behind genesis", &[genesis(), vec![0; 293], all()]),
        Layout::whole("zeros reserved behind the last record", &[all(), vec![0; 2 << 20]]),
        Layout::whole("zeros reserved between records", &between(vec![0; 2 << 20])),
        Layout::whole("eight zeros before a record", &between(vec![0; 8])),
        Layout::whole("zeros before the first record", &[vec![0; 100], all()]),
        Layout::whole("stray bytes between records", &between(junk.clone())),
        Layout::whole("stray bytes before and behind", &[junk.clone(), all(), junk]),
        Layout::whole("the magic twice", &between(magic())),
        Layout::whole("the magic three times", &between([magic(), magic()].concat())),
        Layout::whole("magic and length twice", &between([magic(), length.clone()].concat())),
        Layout::whole("the magic at the end", &[all(), magic()]),
        Layout::whole("part of the magic before a record", &between(magic()[..3].to_vec())),
        Layout::whole("magic, length and zeros", &[all(), magic(), length, vec![0; 500]]),
    ]
}

/// Layouts with several copies of a block, or a damaged one.
fn copies() -> Vec<Layout> {
    let before = || records(1..=2);
    let after = || records(4..=COUNT);
    let part = |bytes: usize| record(3)[..bytes].to_vec();
    let of = |raw: Vec<u8>| framed(&raw);
    let behind = [raw(3), vec![0xfa, 0xbf, 7]].concat();
    let mut long = record(3);
    long[4..8].copy_from_slice(&(raw(3).len() as u32 + 40).to_le_bytes());
    let mut short = record(3);
    short[4..8].copy_from_slice(&(raw(3).len() as u32 - 20).to_le_bytes());
    let mut huge = record(3);
    huge[7] = 0x80;
    let whole = |name, parts: &[Vec<u8>]| {
        Layout::whole(name, &[&[before()][..], parts, &[after()]].concat())
    };
    let damaged = |name, parts: &[Vec<u8>]| {
        Layout::one(name, &[&[before()][..], parts, &[after()]].concat(), Expected::Damaged(3))
    };
    vec![
        Layout::one("the smallest", &[before(), part(100), record(3)], Expected::Chain(3)),
        whole("100 bytes of a record, and the record", &[part(100), record(3)]),
        whole("the record, and 100 bytes of it", &[record(3), part(100)]),
        whole("100 bytes twice, and the record", &[part(100), part(100), record(3)]),
        whole("half a header, and the record", &[part(50), record(3)]),
        whole("magic and length, and the record", &[part(8), record(3)]),
        whole("all but a byte, and the record", &[part(record(3).len() - 1), record(3)]),
        whole("twice", &[record(3), record(3)]),
        whole("altered, and whole", &[of(altered(3)), record(3)]),
        whole("whole, and altered", &[record(3), of(altered(3))]),
        whole("altered twice, and whole", &[of(altered(3)), of(altered(3)), record(3)]),
        whole("another witness, and whole", &[of(other_witness(3)), record(3)]),
        whole("without witness, and whole", &[of(stripped(3)), record(3)]),
        whole("bytes behind the block in its record", &[of(behind)]),
        whole("a length that is too large, into the next record", &[long]),
        whole("a length that is too small, and the record", &[short.clone(), record(3)]),
        whole("a length that no file has, and the record", &[huge, record(3)]),
        damaged("altered alone", &[of(altered(3))]),
        damaged("another witness alone", &[of(other_witness(3))]),
        damaged("without witness alone", &[of(stripped(3))]),
        damaged("100 bytes alone", &[part(100)]),
        damaged("a length that is too small alone", &[short]),
        Layout::one("missing", &[before(), after()], Expected::Missing(3)),
        Layout::one("half a header alone", &[before(), part(50), after()], Expected::Missing(3)),
        Layout::whole(
            "blocks that wait for one whose first copy is damaged",
            &[after(), before(), of(altered(3)), record(3)],
        ),
        Layout::one(
            "the last record is cut off",
            &[records(1..COUNT), record(COUNT)[..150].to_vec()],
            Expected::Chain(COUNT - 1),
        ),
        Layout::whole(
            "a record inside a gap of another's length",
            &[
                records(1..=3),
                magic(),
                (record(4).len() as u32 + 600).to_le_bytes().to_vec(),
                vec![7; 80],
                records(4..=COUNT),
            ],
        ),
    ]
}

/// Layouts with several files, unrelated files, and keys.
fn files() -> Vec<Layout> {
    let first = || records(1..=4);
    let last = || records(5..=COUNT);
    let all = || records(1..=COUNT);
    let genesis_of = |name: &str| {
        let params = ChainParams::by_name(name).expect("a known chain");
        let raw = params.genesis_block();
        [&params.disk_magic[..], &(raw.len() as u32).to_le_bytes(), &raw].concat()
    };
    let fork = branch(hash(&raw(2)), 3, 9);
    let other: Vec<u8> = fork[..3].iter().flat_map(|raw| framed(raw)).collect();
    let chain = Expected::Chain(COUNT);
    let key_error = "is 7 bytes long; a key has 8";
    vec![
        Layout::many("two files", &[("blk00000.dat", first()), ("blk00001.dat", last())], chain),
        Layout::many(
            "two, in another order",
            &[("blk00000.dat", last()), ("blk00001.dat", first())],
            chain,
        ),
        Layout::many("an empty file", &[("blk00000.dat", vec![]), ("blk00001.dat", all())], chain),
        Layout::many("a file twice", &[("blk00000.dat", all()), ("blk00007.dat", all())], chain),
        Layout::many(
            "cut off at the end of a file, and whole in the next",
            &[
                ("blk00000.dat", [first(), record(5)[..100].to_vec()].concat()),
                ("blk00001.dat", last()),
            ],
            chain,
        ),
        Layout::many(
            "damaged in one file, and whole in a later one",
            &[
                ("blk00000.dat", [records(1..=3), framed(&altered(4)), last()].concat()),
                ("blk00002.dat", record(4)),
            ],
            chain,
        ),
        Layout::many(
            "files of other names",
            &[("blk00000.dat", all()), ("rev00000.dat", record(1)), ("blk1.dat.bak", vec![7; 99])],
            chain,
        ),
        Layout::many(
            "a file of another chain",
            &[("blk00000.dat", all()), ("blk00001.dat", genesis_of("main"))],
            chain,
        ),
        Layout::many(
            "a block of another chain between",
            &[("blk00000.dat", [first(), genesis_of("test"), last()].concat())],
            chain,
        ),
        Layout::many("a branch of less work", &[("blk00000.dat", [other, all()].concat())], chain),
        Layout::many("obfuscated", &[("blk00000.dat", all())], chain).keyed(KEY, &KEY),
        Layout::many("a key of zeros", &[("blk00000.dat", all())], chain).keyed([0; 8], &[0; 8]),
        Layout {
            disk_zeros: 70_000,
            ..Layout::many(
                "obfuscated, with zeros reserved",
                &[("blk00000.dat", first()), ("blk00001.dat", last())],
                chain,
            )
            .keyed(KEY, &KEY)
        },
        Layout::many(
            "obfuscated, with a partial copy",
            &[("blk00000.dat", [first(), record(5)[..100].to_vec(), last()].concat())],
            chain,
        )
        .keyed(KEY, &KEY),
        Layout::many(
            "another key",
            &[("blk00000.dat", all())],
            Expected::Nothing("hold no block of regtest"),
        )
        .keyed(KEY, &OTHER_KEY),
        Layout::many(
            "a key that is too short",
            &[("blk00000.dat", all())],
            Expected::Nothing(key_error),
        )
        .keyed(KEY, &KEY[..7]),
        Layout::many(
            "another chain alone",
            &[("blk00000.dat", genesis_of("main"))],
            Expected::Nothing("of regtest"),
        ),
    ]
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
    let found =
        if is_own { engine.reindex(&|| true) } else { engine.load_blocks(blocks, &|| true) };
    let found = found.map_err(|error| error.to_string())?;
    let tip = engine.tip();
    let (mut hashes, mut raw, mut at) = (Vec::new(), Vec::new(), tip.hash);
    while at != params().genesis_hash {
        hashes.push(at);
        raw.push(engine.read_block(&at).expect("readable").expect("stored"));
        at = engine.block_entry(&at).expect("known").header.prev_block;
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
    let layouts: Vec<Layout> = gaps().into_iter().chain(copies()).chain(files()).collect();
    assert!(layouts.len() >= 30);
    for layout in &layouts {
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
            check(layout, (user, of.as_str()), outcome, (blocks.as_path(), height));
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
