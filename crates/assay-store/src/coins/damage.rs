//! Finds the damaged place in the coins database. The engine reports that a block is damaged, but not which one. Damaged lists of
//! tables, missing files and unknown files can make the engine abort or lose coins, so these are checked before it is opened.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_128;

/// The first damaged block in the tables of the database in `dir`; `None` if all checksums match.
pub(super) fn find(dir: &Path) -> Option<(PathBuf, u64)> {
    let mut tables: Vec<PathBuf> = list(&dir.join("keyspaces"))
        .into_iter()
        .flat_map(|keyspace| list(&keyspace.join("tables")))
        .collect();
    tables.sort_unstable();
    tables.into_iter().find_map(|path| {
        let offset = first_damage(&path).ok()??;
        Some((path, offset))
    })
}

/// Checks the assumptions of the engine about the database in `dir`: names and types of files, presence of the files without
/// which it would start empty or read an old state, and its lists of tables. Returns the path and the problem.
pub(super) fn check_folder(dir: &Path) -> Result<(), (PathBuf, &'static str)> {
    let keyspaces = list(&dir.join("keyspaces"));
    let mut has_tables = false;
    for keyspace in &keyspaces {
        if is_regular(keyspace) {
            continue;
        }
        if number(keyspace).is_none() {
            return Err((keyspace.clone(), "this is no folder of it"));
        }
        has_tables |= check_keyspace(keyspace)?;
    }
    let journals =
        list(dir).into_iter().filter(|path| path.extension().is_some_and(|e| e == "jnl"));
    let journals: Vec<PathBuf> = journals.collect();
    if let Some(stray) = journals.iter().find(|path| number(path).is_none() || !is_regular(path)) {
        return Err((stray.clone(), "this is no journal of it"));
    }
    // Without journals the engine takes tables as newer than its state; without the first list or version, as a new database.
    let needed = [("keyspaces/0/current", true), ("version", true), ("0.jnl", journals.is_empty())];
    let is_missing = |(name, is_needed): &(&str, bool)| *is_needed && !is_regular(&dir.join(name));
    match needed.iter().find(|file| has_tables && is_missing(file)) {
        Some((name, _)) => Err((dir.join(name), "this file is missing")),
        None => Ok(()),
    }
}

/// Checks number and checksum of the list of tables in the keyspace's file `current`. True if there are tables.
fn check_keyspace(keyspace: &Path) -> Result<bool, (PathBuf, &'static str)> {
    let tables = list(&keyspace.join("tables"));
    for table in &tables {
        let name = table.file_name().unwrap_or_default().to_string_lossy();
        // The engine ignores files of file managers.
        if name == ".DS_Store" || name.starts_with("._") {
            continue;
        }
        if number(table).is_none() || !is_regular(table) {
            return Err((table.clone(), "this is no table of it"));
        }
    }
    let current = keyspace.join("current");
    let Ok(bytes) = fs::read(&current) else {
        // The file is absent until the creation has finished.
        let is_new = tables.is_empty() && !current.exists();
        return if is_new { Ok(false) } else { Err((current, "this file is missing")) };
    };
    let no_checksum = "a list of tables does not have its checksum";
    let Some((number, rest)) = bytes.split_first_chunk::<8>() else {
        return Err((current, no_checksum));
    };
    let Some((checksum, [CHECKSUM_XXH3])) = rest.split_first_chunk::<16>() else {
        return Err((current, no_checksum));
    };
    let listed = keyspace.join(format!("v{}", u64::from_le_bytes(*number)));
    match fs::read(&listed) {
        Ok(list) if xxh3_128(&list).to_le_bytes() == *checksum => Ok(!tables.is_empty()),
        Ok(_) => Err((listed, no_checksum)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err((current, "the list of tables that it names is missing"))
        }
        Err(_) => Err((listed, "a list of tables cannot be read")),
    }
}

/// Number in the name of a file or folder, without the extension of journals.
fn number(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    name.strip_suffix(".jnl").unwrap_or(name).parse().ok()
}

fn is_regular(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_file())
}

fn list(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// Walks the blocks of a table: magic, kind, data checksum, length, uncompressed length, header checksum, data.
fn first_damage(path: &Path) -> io::Result<Option<u64>> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut file = BufReader::new(file);
    let mut offset = 0u64;
    loop {
        let mut head = [0u8; HEAD_BYTES];
        let filled = read_up_to(&mut file, &mut head[..1])?;
        // One version byte is between the blocks, and a table of contents ends them.
        if filled == 1 && head[0] == TABLE_VERSION {
            offset += 1;
            continue;
        }
        let filled = filled + read_up_to(&mut file, &mut head[1..])?;
        if head[..filled].starts_with(CONTENTS_MAGIC) {
            let mut contents = head[..filled].to_vec();
            file.read_to_end(&mut contents)?;
            return Ok((!is_end_whole(&contents, offset)).then_some(offset));
        }
        let (protected, checksum) = head.split_at(HEAD_BYTES - 4);
        let u32_at =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let is_head = filled == HEAD_BYTES
            && xxh3_128(protected).to_le_bytes()[..4] == *checksum
            && head.starts_with(BLOCK_MAGIC);
        let data_bytes = u64::from(u32_at(AT_DATA_LENGTH));
        if !is_head || offset + HEAD_BYTES as u64 + data_bytes > size {
            return Ok(Some(offset));
        }
        let mut data = Vec::new();
        file.by_ref().take(data_bytes).read_to_end(&mut data)?;
        if xxh3_128(&data).to_le_bytes() != head[AT_CHECKSUM..AT_DATA_LENGTH] {
            return Ok(Some(offset));
        }
        offset += HEAD_BYTES as u64 + data_bytes;
    }
}

/// True for a valid table of contents at `offset`, with the trailer that has its checksum and position.
fn is_end_whole(bytes: &[u8], offset: u64) -> bool {
    let Some((contents, trailer)) = bytes.split_last_chunk::<TRAILER_BYTES>() else { return false };
    trailer.starts_with(TRAILER_MAGIC)
        && trailer[6..22] == xxh3_128(contents).to_le_bytes()
        && trailer[22..30] == offset.to_le_bytes()
        && trailer[30..] == (contents.len() as u64).to_le_bytes()
}

fn read_up_to(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

// From lsm-tree 3, `table/block/header.rs`.
const BLOCK_MAGIC: &[u8] = b"LSM\x03";
const AT_CHECKSUM: usize = 5;
const AT_DATA_LENGTH: usize = 21;
const HEAD_BYTES: usize = 33;
const TABLE_VERSION: u8 = 3;
const CONTENTS_MAGIC: &[u8] = b"TOC!";
const TRAILER_MAGIC: &[u8] = b"SFA!\x01\x00";
const TRAILER_BYTES: usize = 38;
const CHECKSUM_XXH3: u8 = 0;
