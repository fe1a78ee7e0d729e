//! Any byte of the coins' database may rot: later reads are correct or return an error with the position.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use assay_store::{CoinRef, CoinStore, FjallTier};
use assay_wire::{BlockHash, OutPoint, Txid};

const COINS: u32 = 3000;

fn outpoint(n: u32) -> OutPoint {
    OutPoint { txid: Txid(assay_hash::sha256(&n.to_le_bytes())), vout: n % 3 }
}

fn open(dir: &Path) -> Result<CoinStore, String> {
    let tier = FjallTier::open(dir, 1 << 20).map_err(|e| e.to_string())?;
    CoinStore::open(Box::new(tier), 0).map_err(|e| e.to_string())
}

/// Reads all coins, individually and in a scan.
fn read(dir: &Path) -> Result<(u32, u32), String> {
    let coins = open(dir)?;
    let mut found = 0;
    for n in 0..COINS {
        if let Some(coin) = coins.get(&outpoint(n)).map_err(|e| e.to_string())? {
            assert_eq!((coin.value, coin.height), (n.into(), n));
            found += 1;
        }
    }
    let mut scanned = 0;
    let snapshot = coins.snapshot().map_err(|e| e.to_string())?;
    snapshot.for_each(|_, _| scanned += 1).map_err(|e| e.to_string())?;
    Ok((found, scanned))
}

fn files_below(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("it is a folder") {
        let path = entry.expect("it can be listed").path();
        if path.is_dir() {
            files_below(&path, files);
        } else {
            files.push(path);
        }
    }
}

fn copy(from: &Path, to: &Path) {
    let mut files = Vec::new();
    files_below(from, &mut files);
    for file in files {
        let target = to.join(file.strip_prefix(from).expect("it is below"));
        fs::create_dir_all(target.parent().expect("it is below")).expect("there is room");
        // The journal is sixty megabytes of zeros, not worth a copy per case.
        if file.extension().is_some_and(|extension| extension == "jnl") {
            let size = fs::metadata(&file).expect("it exists").len();
            fs::File::create(&target).and_then(|f| f.set_len(size)).expect("there is room");
        } else {
            fs::copy(&file, &target).expect("there is room");
        }
    }
}

#[test]
fn a_flipped_byte_of_the_coins_is_reported_or_harmless() {
    let whole = tempfile::tempdir().expect("a temporary directory");
    let mut coins = open(whole.path()).expect("the store opens");
    for n in 0..COINS {
        let coin = CoinRef { value: n.into(), height: n, coinbase: false, script_pubkey: &[7; 25] };
        coins.add(outpoint(n), coin, false).expect("it is new");
        if n % 1000 == 999 {
            coins.flush(n, &BlockHash([7; 32])).expect("the disk works");
        }
    }
    drop(coins);
    assert_eq!(read(whole.path()), Ok((COINS, COINS)));
    let mut files = Vec::new();
    files_below(whole.path(), &mut files);
    files.retain(|path| path.extension().is_none_or(|extension| extension != "jnl"));
    files.sort_unstable();
    let (mut reported, mut placed, mut harmless) = (0, 0, 0);
    for file in &files {
        let bytes = fs::read(file).expect("it can be read");
        let stride = (bytes.len() / 8).max(5);
        for at in (0..bytes.len()).step_by(stride) {
            let rotten = tempfile::tempdir().expect("a temporary directory");
            copy(whole.path(), rotten.path());
            let name = file.strip_prefix(whole.path()).expect("it is below");
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x20;
            fs::write(rotten.path().join(name), bytes).expect("there is room");
            let case = format!("{} at {at}", name.display());
            let outcome = catch_unwind(AssertUnwindSafe(|| read(rotten.path())));
            match outcome.unwrap_or_else(|_| panic!("{case}: a panic")) {
                Ok(counts) => {
                    assert_eq!(counts, (COINS, COINS), "{case}");
                    harmless += 1;
                }
                Err(text) => {
                    reported += 1;
                    let is_placed = text.contains("is damaged at");
                    placed += u32::from(is_placed);
                    // Either a list of tables or its checksum in `current` may be wrong.
                    let told = if name.ends_with("current") { name.parent() } else { Some(name) };
                    let told = told.and_then(Path::to_str).expect("a plain name");
                    assert!(!is_placed || text.contains(told), "{text}");
                    if !is_placed {
                        println!("{case}: {text}");
                    }
                }
            }
        }
    }
    assert!(placed == reported && reported > 50, "{placed} of {reported} with their place");
    println!(
        "{reported} flips were reported, {placed} of them with their place; {harmless} did no harm"
    );
}
