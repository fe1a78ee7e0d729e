//! A plan: the chain, the places of its blocks and coins, and the parts it is cut into. Layout: `docs/formats.md`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_consensus::chain::{Ancestors, HeaderFacts};
use assay_consensus::params::ChainParams;
use assay_hash::sha256;
use assay_store::{BlockFiles, BlockPlace, SpentPlace};
use assay_wire::BlockHash;

use super::spent::SpentSource;
use super::{ShardError, io_failed, unusable};

/// The range of a hints file for a part of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HintsPiece {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    /// Of these bytes: the format has no checksums.
    pub(crate) sha256: [u8; 32],
}

/// A chain to be validated in parts.
#[derive(Debug)]
pub struct Plan {
    pub(crate) params: Arc<ChainParams>,
    /// Heights of soft forks on test chains, `NAME@HEIGHT`.
    pub(crate) activation: Vec<String>,
    pub(crate) sources: Sources,
    pub(crate) unspent: Unspent,
    pub(crate) parts: Vec<Part>,
    /// The piece of a hints file for each part, if the plan has hints.
    pub(crate) hints: Vec<HintsPiece>,
    /// From height 0 on.
    pub(crate) headers: Vec<HeaderFacts>,
    pub(crate) median_times: Vec<u32>,
    /// From height 1 on.
    pub(crate) places: Vec<Place>,
    pub(crate) id: [u8; 32],
}

/// The folders, and the files in them when the plan was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sources {
    pub(crate) blocks: PathBuf,
    pub(crate) block_files: Vec<(String, u64)>,
    pub(crate) spent: PathBuf,
    /// `true` if that folder has Bitcoin Core's undo files.
    pub(crate) is_core: bool,
    pub(crate) spent_files: Vec<(u32, u64)>,
}

/// The places of a block and of the coins it spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) block: BlockPlace,
    pub(crate) spent: SpentPlace,
}

/// The known data of the coins that are left over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unspent {
    /// A snapshot of the UTXO set holds them, in Bitcoin Core's format. It need not be trusted.
    Coins { path: PathBuf, bytes: u64 },
    /// A hints file (BIP 456) says which outputs they are. It need not be trusted.
    Hints { path: PathBuf, bytes: u64 },
    /// Their `MuHash`. Its author can make invented coins pass.
    MuHash([u8; 32]),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Blocks with these heights, ends included.
    Blocks {
        first: u32,
        last: u32,
        /// Their inputs, without coinbases'.
        inputs: u64,
        bytes: u64,
    },
    /// A piece of the UTXO set.
    Coins {
        /// Offset of its start in the file.
        offset: u64,
        bytes: u64,
        coins: u64,
    },
}

/// Gives the parameters of a chain by its name and the heights of its soft forks, or the reason there are none.
pub type ParamsOf<'a> = dyn Fn(&str, &[String]) -> Result<ChainParams, String> + 'a;

/// Places on this machine of files that are not where the plan says.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    pub blocks: Option<PathBuf>,
    pub spent: Option<PathBuf>,
    pub coins: Option<PathBuf>,
    pub hints: Option<PathBuf>,
}

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    /// It is no plan, is damaged, or of an unknown chain.
    pub fn open(dir: &Path, params_of: &ParamsOf<'_>) -> Result<Self, ShardError> {
        let text_path = dir.join(TEXT_NAME);
        let text = fs::read_to_string(&text_path).map_err(io_failed(&text_path))?;
        let bad = |what: &str| unusable(&text_path, what);
        let read = Text::parse(&text).map_err(|line| {
            bad(&format!("line {line} is not one of a plan; make the plan again"))
        })?;
        let params = params_of(&read.chain, &read.activation).map_err(|what| bad(&what))?;
        let table_path = dir.join(TABLE_NAME);
        let table = fs::read(&table_path).map_err(io_failed(&table_path))?;
        let entries = table.as_chunks::<ENTRY_BYTES>();
        if sha256(&table) != read.table || !entries.1.is_empty() {
            return Err(unusable(&table_path, "does not belong to the plan; make the plan again"));
        }
        let genesis = assay_wire::Block::parse(params.genesis_block(), params.encoding)
            .expect("the genesis block of known parameters parses");
        let genesis = genesis.header();
        let (time, bits) = (genesis.time, genesis.bits);
        let mut headers = vec![HeaderFacts { hash: params.genesis_hash, time, bits }];
        let mut places = Vec::with_capacity(entries.0.len());
        for entry in entries.0 {
            let (header, place) = read_entry(entry);
            headers.push(header);
            places.push(place);
        }
        let median_times = median_times(&headers);
        let plan = Self {
            params: Arc::new(params),
            activation: read.activation,
            sources: read.sources,
            unspent: read.unspent.ok_or_else(|| bad("names no unspent coins"))?,
            parts: read.parts,
            hints: read.hints,
            headers,
            median_times,
            places,
            id: sha256(text.as_bytes()),
        };
        plan.check_parts().map_err(|what| bad(&what))?;
        Ok(plan)
    }

    /// Writes a plan into a folder, which is made if it is missing; gives its identity.
    pub(super) fn write(&self, dir: &Path) -> Result<[u8; 32], ShardError> {
        fs::create_dir_all(dir).map_err(io_failed(dir))?;
        let mut table = Vec::with_capacity(self.places.len() * ENTRY_BYTES);
        for (header, place) in self.headers[1..].iter().zip(&self.places) {
            write_entry(header, place, &mut table);
        }
        // The text comes last: without it the folder holds no plan.
        let text = self.text(sha256(&table));
        for (name, bytes) in [(TABLE_NAME, &table[..]), (TEXT_NAME, text.as_bytes())] {
            let path = dir.join(name);
            let fresh = dir.join(format!("{name}.new"));
            let written = fs::File::create(&fresh)
                .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
                .and_then(|()| fs::rename(&fresh, &path));
            written.map_err(io_failed(&path))?;
        }
        Ok(sha256(text.as_bytes()))
    }

    pub fn params(&self) -> &ChainParams {
        &self.params
    }

    /// Height of the last block.
    pub fn height(&self) -> u32 {
        self.places.len() as u32
    }

    /// Hash of the last block.
    pub fn tip(&self) -> BlockHash {
        self.hash(self.height())
    }

    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    pub fn unspent(&self) -> &Unspent {
        &self.unspent
    }

    /// SHA-256 of the plan: results of another plan are rejected.
    pub fn id(&self) -> [u8; 32] {
        self.id
    }

    pub(crate) fn hash(&self, height: u32) -> BlockHash {
        self.headers[height as usize].hash
    }

    pub(crate) fn place(&self, height: u32) -> &Place {
        &self.places[height as usize - 1]
    }

    /// The chain up to a height, as the rules read it.
    pub(crate) fn up_to(&self, height: u32) -> PlanView<'_> {
        PlanView { plan: self, height }
    }

    /// The files, which must be those of the plan.
    pub(crate) fn open_files(
        &self,
        inputs: &Inputs,
    ) -> Result<(BlockFiles, SpentSource), ShardError> {
        let path = inputs.blocks.as_ref().unwrap_or(&self.sources.blocks);
        let blocks = BlockFiles::open(path, self.params.disk_magic)?;
        let names = || blocks.files().iter().map(|file| (name_of(&file.path), file.bytes));
        if !is_prefix(&self.sources.block_files, names()) {
            return Err(unusable(path, "holds other block files than those of the plan"));
        }
        let path = inputs.spent.as_ref().unwrap_or(&self.sources.spent);
        let spent = SpentSource::open(path, self.sources.is_core, self.params.disk_magic)?;
        if !is_prefix(&self.sources.spent_files, spent.files().iter().copied()) {
            return Err(unusable(path, "holds other spent coins than those of the plan"));
        }
        Ok((blocks, spent))
    }

    /// Parts of blocks tile the heights from 1 to the last.
    fn check_parts(&self) -> Result<(), String> {
        if self.places.is_empty() {
            return Err("there are no blocks".to_owned());
        }
        let mut next = 1;
        for part in &self.parts {
            match *part {
                Part::Blocks { first, last, .. } => {
                    if first != next || last < first {
                        return Err(format!("no part begins at height {next}"));
                    }
                    next = last.saturating_add(1);
                }
                Part::Coins { .. } if matches!(self.unspent, Unspent::Coins { .. }) => {}
                Part::Coins { .. } => {
                    return Err("a part is of coins that it does not name".to_owned());
                }
            }
        }
        let pieces =
            if matches!(self.unspent, Unspent::Hints { .. }) { self.parts.len() } else { 0 };
        if self.hints.len() != pieces {
            return Err("it has not as many pieces of hints as parts".to_owned());
        }
        if next == self.height() + 1 { Ok(()) } else { Err("parts are missing".to_owned()) }
    }

    fn text(&self, table: [u8; 32]) -> String {
        let mut lines = vec![TITLE.to_owned(), format!("chain {}", self.params.name)];
        let mut line = |text: String| lines.push(text);
        for height in &self.activation {
            line(format!("activation {height}"));
        }
        line(format!("tip {} {}", self.height(), self.tip()));
        line(format!("blocks {}", self.sources.blocks.display()));
        for (name, bytes) in &self.sources.block_files {
            line(format!("block-file {bytes} {name}"));
        }
        let kind = if self.sources.is_core { "core-undo" } else { "spent" };
        line(format!("{kind} {}", self.sources.spent.display()));
        for (number, bytes) in &self.sources.spent_files {
            line(format!("spent-file {bytes} {number}"));
        }
        match &self.unspent {
            Unspent::Coins { path, bytes } => line(format!("coins {bytes} {}", path.display())),
            Unspent::Hints { path, bytes } => line(format!("hints {bytes} {}", path.display())),
            Unspent::MuHash(digest) => line(format!("muhash {}", BlockHash(*digest))),
        }
        for part in &self.parts {
            line(match part {
                Part::Blocks { first, last, inputs, bytes } => {
                    format!("part blocks {first} {last} {inputs} {bytes}")
                }
                Part::Coins { offset, bytes, coins } => {
                    format!("part coins {offset} {bytes} {coins}")
                }
            });
        }
        for HintsPiece { offset, bytes, sha256 } in &self.hints {
            line(format!("piece {offset} {bytes} {}", BlockHash(*sha256)));
        }
        line(format!("table {}", BlockHash(table)));
        lines.push(String::new());
        lines.join("\n")
    }
}

/// Returns `true` if the files of a plan exist in the same places, with at least the planned bytes; files only grow.
fn is_prefix<T: PartialEq>(planned: &[(T, u64)], found: impl Iterator<Item = (T, u64)>) -> bool {
    let found: Vec<_> = found.collect();
    found.len() >= planned.len()
        && planned.iter().zip(&found).all(|(old, new)| old.0 == new.0 && old.1 <= new.1)
}

pub(super) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

pub(super) fn median_times(headers: &[HeaderFacts]) -> Vec<u32> {
    (0..headers.len() as u32).map(|height| headers.median_time_past_at(height)).collect()
}

/// The chain of a plan, ending at a height.
#[derive(Clone, Copy)]
pub(crate) struct PlanView<'a> {
    plan: &'a Plan,
    height: u32,
}

impl Ancestors for PlanView<'_> {
    fn tip_height(&self) -> u32 {
        self.height
    }

    fn header_at(&self, height: u32) -> HeaderFacts {
        self.plan.headers[height as usize]
    }

    fn median_time_past_at(&self, height: u32) -> u32 {
        self.plan.median_times[height as usize]
    }
}

#[derive(Default)]
struct Text {
    chain: String,
    activation: Vec<String>,
    sources: Sources,
    unspent: Option<Unspent>,
    parts: Vec<Part>,
    hints: Vec<HintsPiece>,
    table: [u8; 32],
}

impl Text {
    /// Reads lines; gives the number of the first invalid one.
    fn parse(text: &str) -> Result<Self, usize> {
        let mut read = Self::default();
        let mut is_whole = false;
        for (number, line) in text.lines().enumerate() {
            let known = if number == 0 { line == TITLE } else { read.take(line).is_some() };
            if !known || is_whole {
                return Err(number + 1);
            }
            is_whole = line.starts_with("table ");
        }
        if is_whole { Ok(read) } else { Err(text.lines().count()) }
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let (key, value) = line.split_once(' ')?;
        let sized = || {
            let (bytes, name) = value.split_once(' ')?;
            Some((bytes.parse::<u64>().ok()?, name))
        };
        match key {
            "chain" => value.clone_into(&mut self.chain),
            "activation" => self.activation.push(value.to_owned()),
            // Human-readable: the table has it.
            "tip" => {}
            "blocks" => self.sources.blocks = value.into(),
            "block-file" => {
                let (bytes, name) = sized()?;
                self.sources.block_files.push((name.to_owned(), bytes));
            }
            "spent" | "core-undo" => {
                self.sources.spent = value.into();
                self.sources.is_core = key == "core-undo";
            }
            "spent-file" => {
                let (bytes, number) = sized()?;
                self.sources.spent_files.push((number.parse().ok()?, bytes));
            }
            "coins" => {
                let (bytes, path) = sized()?;
                self.unspent = Some(Unspent::Coins { path: path.into(), bytes });
            }
            "hints" => {
                let (bytes, path) = sized()?;
                self.unspent = Some(Unspent::Hints { path: path.into(), bytes });
            }
            "piece" => {
                let (offset, rest) = sized()?;
                let (bytes, sha256) = rest.split_once(' ')?;
                let (bytes, sha256) = (bytes.parse().ok()?, digest(sha256)?);
                self.hints.push(HintsPiece { offset, bytes, sha256 });
            }
            "muhash" => self.unspent = Some(Unspent::MuHash(digest(value)?)),
            "part" => self.parts.push(part(value)?),
            "table" => self.table = digest(value)?,
            _ => return None,
        }
        Some(())
    }
}

fn part(text: &str) -> Option<Part> {
    let (kind, numbers) = text.split_once(' ')?;
    let numbers: Vec<u64> =
        numbers.split(' ').map(|word| word.parse().ok()).collect::<Option<_>>()?;
    Some(match (kind, &numbers[..]) {
        ("blocks", &[first, last, inputs, bytes]) => Part::Blocks {
            first: first.try_into().ok()?,
            last: last.try_into().ok()?,
            inputs,
            bytes,
        },
        ("coins", &[offset, bytes, coins]) => Part::Coins { offset, bytes, coins },
        _ => return None,
    })
}

/// A digest printed like a hash.
pub(super) fn digest(text: &str) -> Option<[u8; 32]> {
    text.parse::<BlockHash>().ok().map(|hash| hash.0)
}

fn write_entry(header: &HeaderFacts, place: &Place, out: &mut Vec<u8>) {
    let Place { block, spent } = place;
    out.extend_from_slice(&header.hash.0);
    for number in [header.time, header.bits, block.file, block.size, spent.file, spent.bytes] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    for number in [block.offset, spent.offset] {
        out.extend_from_slice(&number.to_le_bytes());
    }
}

fn read_entry(entry: &[u8; ENTRY_BYTES]) -> (HeaderFacts, Place) {
    let mut hash = BlockHash::ZERO;
    hash.0.copy_from_slice(&entry[..32]);
    let words = entry[32..56].as_chunks::<4>().0;
    let longs = entry[56..].as_chunks::<8>().0;
    let (word, long) =
        (|at: usize| u32::from_le_bytes(words[at]), |at: usize| u64::from_le_bytes(longs[at]));
    let header = HeaderFacts { hash, time: word(0), bits: word(1) };
    let block = BlockPlace { file: word(2), offset: long(0), size: word(3) };
    let spent = SpentPlace { file: word(4), offset: long(1), bytes: word(5) };
    (header, Place { block, spent })
}

const TITLE: &str = "assay shard plan 1";
const TEXT_NAME: &str = "plan.txt";
const TABLE_NAME: &str = "blocks.bin";
/// Hash (32), time, bits, block file, block size, spent file, spent bytes (4 each), offsets of both (8 each).
const ENTRY_BYTES: usize = 72;
