//! The result of a part, as a file: the same bytes on every machine. Layout: `docs/formats.md`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use assay_hash::{MuHash3072, Sum256, sha256};
use assay_wire::{BlockHash, Txid};
use faster_hex::hex_string;

use super::plan::{Part, Plan, digest};
use super::tally::{CoinFigures, Digest, Side, Tally};
use super::{Salt, ShardError, Unspent, io_failed, unusable};
use crate::validate::Totals;

#[derive(Clone, Debug)]
pub struct PartResult {
    pub part: usize,
    pub(crate) plan: [u8; 32],
    /// The commitment to the salt.
    pub(crate) salt: [u8; 32],
    pub(crate) outcome: Result<PartFigures, Rejection>,
}

/// The reason a part did not pass. Other coins than the true ones may be the cause: only `validate` gives a verdict on a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    pub height: u32,
    pub hash: BlockHash,
    /// The reference node's reject reason if the coins are right, or `spent-coins` if the part finds them wrong.
    pub reason: String,
    /// Place and cause, human-readable.
    pub debug: String,
}

impl std::fmt::Display for Rejection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { height, hash, reason, debug } = self;
        write!(f, "block {hash} at height {height}: {reason}: {debug}")
    }
}

/// The sums of a part.
#[derive(Clone, Debug)]
pub(crate) struct PartFigures {
    pub(crate) totals: Totals,
    pub(crate) tally: Tally,
    /// Of a piece of the UTXO set, or of the outputs that are hinted as unspent.
    pub(crate) coins: Option<CoinFigures>,
    /// Ids of the coinbases, one for each block.
    pub(crate) coinbases: Vec<Txid>,
}

/// The commitment of results to a salt, which must not become known before the verdict stands.
pub(crate) fn commitment(unspent: &Unspent, salt: &Salt) -> [u8; 32] {
    match unspent {
        Unspent::Coins { .. } | Unspent::Hints { .. } => {
            sha256(&[&b"assay shard salt"[..], salt].concat())
        }
        // A MuHash needs none.
        Unspent::MuHash(_) => [0; 32],
    }
}

impl PartResult {
    /// The reason the part did not pass, if it did not.
    pub fn rejection(&self) -> Option<&Rejection> {
        self.outcome.as_ref().err()
    }

    /// The commitment to the salt that coins were hashed with: results of different salts do not add up.
    pub fn salt(&self) -> [u8; 32] {
        self.salt
    }

    /// Sums over the blocks of the part that passed; zero for a part of coins, or a rejected one.
    pub fn totals(&self) -> Totals {
        self.outcome.as_ref().map_or_else(|_| Totals::default(), |figures| figures.totals)
    }

    /// Writes the file; an existing file must have the same contents.
    ///
    /// # Errors
    /// It cannot be written, or another result of the same part exists: one of the two is wrong.
    pub fn write(&self, dir: &Path) -> Result<(), ShardError> {
        fs::create_dir_all(dir).map_err(io_failed(dir))?;
        let (path, text) = (path_of(dir, self.part), self.text());
        if let Ok(found) = fs::read(&path) {
            if found == text.as_bytes() {
                return Ok(());
            }
            let what = "another result of the same part is there: a machine is broken, or the folder is of another run; \
                        begin again in an empty folder";
            return Err(unusable(&path, what));
        }
        let fresh = dir.join(format!("part-{:05}.{}.new", self.part, std::process::id()));
        let written = fs::File::create(&fresh)
            .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&fresh, &path));
        written.map_err(io_failed(&path))
    }

    /// Reads the result of a part; `None` if it does not exist.
    ///
    /// # Errors
    /// It is damaged, or of another plan or salt.
    pub fn read(
        dir: &Path,
        plan: &Plan,
        part: usize,
        salt: Option<&Salt>,
    ) -> Result<Option<Self>, ShardError> {
        let path = path_of(dir, part);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(ShardError::Io { path, source }),
        };
        let bad = |what: &str| unusable(&path, what);
        let (body, end) = text.rsplit_once("end ").ok_or_else(|| bad("is cut off; remove it"))?;
        if end.strip_suffix('\n').and_then(digest) != Some(sha256(body.as_bytes())) {
            return Err(bad("is damaged; remove it"));
        }
        if body.lines().next().is_some_and(|title| title != TITLE) {
            return Err(bad(
                "was written by another version of the program; remove it and run the part again",
            ));
        }
        let of_plan = body.lines().nth(1).and_then(|line| digest(line.strip_prefix("plan ")?));
        if of_plan.is_some_and(|of_plan| of_plan != plan.id()) {
            return Err(bad("is of another plan"));
        }
        let result = Self::parse(body, plan).ok_or_else(|| bad("is no result of a part"))?;
        let expected = salt.map(|salt| commitment(plan.unspent(), salt));
        if expected.is_some_and(|expected| expected != result.salt) {
            return Err(bad("is of a run with another salt"));
        }
        if result.part != part {
            return Err(bad("is of another part"));
        }
        if !result.fits(plan) {
            return Err(bad("is of another kind of part"));
        }
        Ok(Some(result))
    }

    /// Returns `true` if its contents fit a part of this kind: `merge` counts coinbases by height.
    fn fits(&self, plan: &Plan) -> bool {
        match (plan.parts().get(self.part), &self.outcome) {
            (Some(Part::Blocks { first, last, .. }), Ok(figures)) => {
                let blocks = u64::from(*last) - u64::from(*first) + 1;
                let is_whole = figures.totals.blocks == blocks;
                let has_hints = matches!(plan.unspent(), Unspent::Hints { .. });
                is_whole
                    && figures.coins.is_some() == has_hints
                    && figures.coinbases.len() as u64 == blocks
            }
            (Some(Part::Blocks { first, last, .. }), Err(rejection)) => {
                (*first..=*last).contains(&rejection.height)
            }
            (Some(Part::Coins { .. }), Ok(figures)) => {
                figures.coins.is_some() && figures.coinbases.is_empty()
            }
            (Some(Part::Coins { .. }), Err(_)) | (None, _) => false,
        }
    }

    fn text(&self) -> String {
        let mut lines = vec![
            TITLE.to_owned(),
            format!("plan {}", BlockHash(self.plan)),
            format!("salt {}", BlockHash(self.salt)),
            format!("part {}", self.part),
        ];
        match &self.outcome {
            Err(Rejection { height, hash, reason, debug }) => {
                let debug = debug.replace('\n', " ");
                lines.push(format!("rejected {height} {hash} {reason}|{debug}"));
            }
            Ok(figures) => figures.write(&mut lines),
        }
        lines.push(String::new());
        let body = lines.join("\n");
        let end = BlockHash(sha256(body.as_bytes()));
        format!("{body}end {end}\n")
    }

    fn parse(body: &str, plan: &Plan) -> Option<Self> {
        let mut lines = body.lines();
        let mut value = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix(' ');
        (value("assay")? == TITLE.strip_prefix("assay ")?).then_some(())?;
        let (plan_id, salt) = (digest(value("plan")?)?, digest(value("salt")?)?);
        let part = value("part")?.parse().ok()?;
        let outcome = match lines.clone().next()?.strip_prefix("rejected ") {
            Some(text) => {
                let mut words = text.splitn(3, ' ');
                let (height, hash) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
                let (reason, debug) = words.next()?.split_once('|')?;
                Err(Rejection { height, hash, reason: reason.into(), debug: debug.into() })
            }
            None => Ok(PartFigures::parse(&mut lines, plan.unspent())?),
        };
        Some(Self { part, plan: plan_id, salt, outcome })
    }
}

impl PartFigures {
    fn write(&self, lines: &mut Vec<String>) {
        let Totals { blocks, txs, inputs, outputs, bytes, .. } = self.totals;
        lines.push(format!("totals {blocks} {txs} {inputs} {outputs} {bytes}"));
        for (name, side) in [("created", &self.tally.created), ("spent", &self.tally.spent)] {
            let digest = match &side.digest {
                Digest::Sum(sum) => hex_string(&sum.to_bytes()),
                Digest::MuHash(muhash) => hex_string(&muhash.to_bytes()),
            };
            lines.push(format!("{name} {} {} {digest}", side.coins, side.amount_sat));
        }
        if let Some(coins) = &self.coins {
            let muhash = hex_string(&coins.muhash.to_bytes());
            let CoinFigures { coins, amount_sat, transactions, bogosize, .. } = coins;
            lines.push(format!("coins {coins} {amount_sat} {transactions} {bogosize} {muhash}"));
        }
        lines.extend(self.coinbases.iter().map(|txid| format!("coinbase {txid}")));
    }

    fn parse<'t>(lines: &mut impl Iterator<Item = &'t str>, unspent: &Unspent) -> Option<Self> {
        let totals = lines.next()?.strip_prefix("totals ")?;
        let totals: Vec<u64> =
            totals.split(' ').map(|word| word.parse().ok()).collect::<Option<_>>()?;
        let &[blocks, txs, inputs, outputs, bytes] = &totals[..] else { return None };
        let totals = Totals { blocks, txs, inputs, outputs, bytes, ..Totals::default() };
        let mut side = |name: &str| {
            let (coins, amount_sat, digest) = triple(lines.next()?.strip_prefix(name)?)?;
            let digest = match unspent {
                Unspent::Coins { .. } | Unspent::Hints { .. } => {
                    Digest::Sum(Sum256::from_bytes(&unhex(digest)?))
                }
                Unspent::MuHash(_) => {
                    Digest::MuHash(Box::new(MuHash3072::from_bytes(&unhex(digest)?)))
                }
            };
            Some(Side { coins, amount_sat, digest })
        };
        let tally = Tally { created: side("created ")?, spent: side("spent ")? };
        let (mut coins, mut coinbases) = (None, Vec::new());
        for line in lines {
            match line.split_once(' ')? {
                ("coinbase", txid) => coinbases.push(txid.parse().ok()?),
                ("coins", figures) if coins.is_none() => {
                    let (figures, muhash) = figures.rsplit_once(' ')?;
                    let muhash = MuHash3072::from_bytes(&unhex(muhash)?);
                    let figures: Vec<u64> =
                        figures.split(' ').map(|word| word.parse().ok()).collect::<Option<_>>()?;
                    coins = Some(CoinFigures::of(figures.try_into().ok()?, muhash));
                }
                _ => return None,
            }
        }
        Some(Self { totals, tally, coins, coinbases })
    }
}

fn triple(text: &str) -> Option<(u64, u64, &str)> {
    let mut words = text.splitn(3, ' ');
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?, words.next()?))
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    (text.len() == 2 * N).then_some(())?;
    faster_hex::hex_decode(text.as_bytes(), &mut bytes).ok()?;
    Some(bytes)
}

pub(crate) fn path_of(dir: &Path, part: usize) -> PathBuf {
    dir.join(format!("part-{part:05}.txt"))
}

const TITLE: &str = "assay shard result 2";
