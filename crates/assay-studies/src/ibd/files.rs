//! Blocks and undo data to and from files: field by field, in one buffer, and as our store does it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Arc;

use assay_bench::BenchError;
use assay_bench::harness::Alternative;
use assay_bench::suite::Benchmark;
use assay_hash::{Sha256, sha256d};
use assay_store::io::{Io, RealIo};
use assay_store::{BlockFiles, BlockPlace, MemTier, Store, StoreConfig, UndoWriter, decode_undo};
use assay_wire::{Block, BlockHash, Encoding};
use tempfile::TempDir;

use super::calls::{Scale, expect, file_error, store_error};
use super::names::{ASSAY, ASSAY_STORE, BUFFER, BUFFER_WORDS, FIELDS};
use super::serial::{Bytes, OwnedBlock, read_undo, write_undo};
use super::stream::{Hashed, StreamReader, StreamWriter, xor_bytewise, xor_wordwise};
use super::subjects::{LazySubject, Subject};

/// The five operations of the report's serialisation benchmarks on a block.
pub(super) fn benchmarks<'a>(subject: &LazySubject, scale: Scale) -> Vec<Benchmark<'a>> {
    type Make = fn(&str, &Arc<Subject>, Scale) -> Result<Vec<Alternative<'static>>, BenchError>;
    let operations: [(&str, Make); 5] = [
        ("read-block", read_block),
        ("read-raw-block", read_raw_block),
        ("write-block", write_block),
        ("write-undo", write_undo_data),
        ("read-undo", read_undo_data),
    ];
    operations
        .into_iter()
        .map(|(operation, make)| {
            let name = format!("{operation}/{}", subject.name);
            let (subject, benchmark) = (subject.clone(), name.clone());
            Benchmark {
                name,
                series: operation.to_owned(),
                size: None,
                unit: "blocks",
                bytes_per_op: None,
                baseline: None,
                make: Box::new(move || make(&benchmark, &subject.get()?, scale)),
            }
        })
        .collect()
}

/// Files are obfuscated, as Core's are by default.
const KEY: [u8; 8] = [0x3b, 0xa1, 0x07, 0xe4, 0x5c, 0x92, 0xd8, 0x6f];

const MAGIC: [u8; 4] = [0xf9, 0xbe, 0xb4, 0xd9];

/// Magic and length.
const FRAME_BYTES: u64 = 8;

/// Repetitions that append to a file.
const APPENDS_MAX: u64 = 32;

/// A folder with the block in a file as Core would have written it.
struct BlockFolder {
    dir: TempDir,
    path: PathBuf,
}

impl BlockFolder {
    fn new(raw: &[u8]) -> Result<Self, BenchError> {
        let folder = Self::empty()?;
        let mut bytes = frame(raw.len());
        bytes.extend_from_slice(raw);
        xor_bytewise(&mut bytes, KEY, 0);
        std::fs::write(&folder.path, &bytes).map_err(file_error(&folder.path))?;
        let key = folder.dir.path().join("xor.dat");
        std::fs::write(&key, KEY).map_err(file_error(&key))?;
        Ok(folder)
    }

    fn empty() -> Result<Self, BenchError> {
        let dir = tempfile::tempdir().map_err(file_error(&std::env::temp_dir()))?;
        let path = dir.path().join("blk00000.dat");
        Ok(Self { dir, path })
    }
}

fn frame(size: usize) -> Vec<u8> {
    [&MAGIC[..], &(size as u32).to_le_bytes()].concat()
}

type Xor = fn(&mut [u8], [u8; 8], u64);

/// The raw block in one read, as Core's `ReadRawBlockFromDisk` takes it: open, frame, bytes.
fn read_raw(path: &PathBuf, xor: Xor) -> Result<Vec<u8>, BenchError> {
    let failed = file_error(path);
    let mut file = File::open(path).map_err(&failed)?;
    let mut head = [0; FRAME_BYTES as usize];
    file.read_exact(&mut head).map_err(&failed)?;
    xor(&mut head, KEY, 0);
    let size = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    let mut raw = vec![0; size as usize];
    file.read_exact(&mut raw).map_err(&failed)?;
    xor(&mut raw, KEY, FRAME_BYTES);
    Ok(raw)
}

fn read_block(
    name: &str,
    subject: &Arc<Subject>,
    scale: Scale,
) -> Result<Vec<Alternative<'static>>, BenchError> {
    let folder = Arc::new(BlockFolder::new(&subject.raw)?);
    let fields = |folder: &BlockFolder| {
        let failed = file_error(&folder.path);
        let mut stream = StreamReader::open(&folder.path, KEY, FRAME_BYTES).map_err(&failed)?;
        OwnedBlock::read(&mut stream).map_err(&failed)
    };
    let buffer = |folder: &BlockFolder, xor: Xor| {
        let raw = read_raw(&folder.path, xor)?;
        OwnedBlock::read(&mut &raw[..]).map_err(file_error(&folder.path))
    };
    let files = Arc::new(BlockFiles::open(folder.dir.path(), MAGIC).map_err(store_error)?);
    let place = BlockPlace { file: 0, offset: FRAME_BYTES, size: subject.raw.len() as u32 };
    let ours = move |files: &BlockFiles| {
        let raw = files.read(&place).map_err(store_error)?;
        Block::parse(raw, Encoding::Segwit).map_err(store_error)
    };
    expect(fields(&folder)? == subject.owned, name, FIELDS, "another block")?;
    expect(buffer(&folder, xor_bytewise)? == subject.owned, name, BUFFER, "another block")?;
    expect(buffer(&folder, xor_wordwise)? == subject.owned, name, BUFFER_WORDS, "another block")?;
    expect(ours(&files)?.bytes() == subject.raw, name, ASSAY, "another block")?;
    let store = StoreFolder::new()?;
    let pos = store.store.blocks.append_block(&subject.raw).map_err(store_error)?;
    let own = move |store: &StoreFolder| {
        let raw = store.store.blocks.read_block(pos).map_err(store_error)?;
        Block::parse(raw, Encoding::Segwit).map_err(store_error)
    };
    expect(own(&store)?.bytes() == subject.raw, name, ASSAY_STORE, "another block")?;
    let (one, two, three) = (Arc::clone(&folder), Arc::clone(&folder), folder);
    Ok(vec![
        scale.prepared(FIELDS, 1, || Ok(()), move |()| fields(&one).map(drop))?,
        scale.prepared(BUFFER, 1, || Ok(()), move |()| buffer(&two, xor_bytewise).map(drop))?,
        scale.prepared(
            BUFFER_WORDS,
            1,
            || Ok(()),
            move |()| buffer(&three, xor_wordwise).map(drop),
        )?,
        scale.prepared(ASSAY, 1, || Ok(()), move |()| ours(&files).map(drop))?,
        scale.prepared(ASSAY_STORE, 1, || Ok(()), move |()| own(&store).map(drop))?,
    ])
}

fn read_raw_block(
    name: &str,
    subject: &Arc<Subject>,
    scale: Scale,
) -> Result<Vec<Alternative<'static>>, BenchError> {
    let folder = Arc::new(BlockFolder::new(&subject.raw)?);
    let files = BlockFiles::open(folder.dir.path(), MAGIC).map_err(store_error)?;
    let place = BlockPlace { file: 0, offset: FRAME_BYTES, size: subject.raw.len() as u32 };
    for (alternative, raw) in [
        (BUFFER, read_raw(&folder.path, xor_bytewise)?),
        (BUFFER_WORDS, read_raw(&folder.path, xor_wordwise)?),
        (ASSAY, files.read(&place).map_err(store_error)?),
    ] {
        expect(raw == subject.raw, name, alternative, "other bytes")?;
    }
    let store = StoreFolder::new()?;
    let pos = store.store.blocks.append_block(&subject.raw).map_err(store_error)?;
    let (one, two) = (Arc::clone(&folder), folder);
    let read = |folder: &BlockFolder, xor| read_raw(&folder.path, xor).map(drop);
    Ok(vec![
        scale.prepared(BUFFER, 1, || Ok(()), move |()| read(&one, xor_bytewise))?,
        scale.prepared(BUFFER_WORDS, 1, || Ok(()), move |()| read(&two, xor_wordwise))?,
        scale.prepared(
            ASSAY,
            1,
            || Ok(()),
            move |()| files.read(&place).map(drop).map_err(store_error),
        )?,
        scale.prepared(
            ASSAY_STORE,
            1,
            || Ok(()),
            move |()| {
                // The whole of it, or its folder would be removed with the rest.
                let store: &StoreFolder = &store;
                store.store.blocks.read_block(pos).map(drop).map_err(store_error)
            },
        )?,
    ])
}

/// Our store on real files, with its coins in memory: they take no part.
struct StoreFolder {
    store: Store,
    _dir: TempDir,
}

impl StoreFolder {
    fn new() -> Result<Self, BenchError> {
        let dir = tempfile::tempdir().map_err(file_error(&std::env::temp_dir()))?;
        let io: Arc<dyn Io> = Arc::new(RealIo);
        let config = StoreConfig::new(dir.path(), MAGIC);
        let store =
            Store::open_with(&config, &io, Box::new(MemTier::new())).map_err(store_error)?;
        Ok(Self { store, _dir: dir })
    }
}

/// A file that grows by one record with each call.
struct Growing {
    folder: BlockFolder,
    position: u64,
}

impl Growing {
    fn new() -> Result<Self, BenchError> {
        let folder = BlockFolder::empty()?;
        File::create(&folder.path).map_err(file_error(&folder.path))?;
        Ok(Self { folder, position: 0 })
    }

    /// As Core does it: opens the file each time and goes to its end.
    fn open(&self) -> Result<File, BenchError> {
        let failed = file_error(&self.folder.path);
        let mut file =
            File::options().read(true).write(true).open(&self.folder.path).map_err(&failed)?;
        file.seek(SeekFrom::Start(self.position)).map_err(&failed)?;
        Ok(file)
    }

    /// Writes a record field by field.
    fn fields(
        &mut self,
        size: usize,
        write: impl FnOnce(&mut StreamWriter) -> std::io::Result<()>,
    ) -> Result<(), BenchError> {
        let mut stream = StreamWriter::new(self.open()?, KEY, self.position);
        let framed = super::serial::Sink::put(&mut stream, &MAGIC)
            .and_then(|()| super::serial::Sink::put(&mut stream, &(size as u32).to_le_bytes()));
        framed
            .and_then(|()| write(&mut stream))
            .and_then(|()| stream.finish())
            .map_err(file_error(&self.folder.path))?;
        self.position += FRAME_BYTES + size as u64;
        Ok(())
    }

    /// Writes a record that lies in a buffer, with room for the frame in front.
    fn buffer(&mut self, buffer: &mut [u8], xor: Xor) -> Result<(), BenchError> {
        xor(buffer, KEY, self.position);
        self.open()?.write_all(buffer).map_err(file_error(&self.folder.path))?;
        self.position += buffer.len() as u64;
        Ok(())
    }

    /// What the last record says.
    fn last(&self, size: usize) -> Result<Vec<u8>, BenchError> {
        let mut bytes = std::fs::read(&self.folder.path).map_err(file_error(&self.folder.path))?;
        xor_bytewise(&mut bytes, KEY, 0);
        Ok(bytes.split_off(bytes.len() - size))
    }
}

fn block_by_fields(file: &mut Growing, subject: &Subject) -> Result<(), BenchError> {
    file.fields(subject.raw.len(), |stream| subject.owned.write(stream))
}

fn block_by_buffer(file: &mut Growing, subject: &Subject, xor: Xor) -> Result<(), BenchError> {
    let size = subject.raw.len();
    let mut bytes = Bytes(Vec::with_capacity(size + FRAME_BYTES as usize));
    bytes.0.extend(frame(size));
    subject.owned.write(&mut bytes).map_err(file_error(&file.folder.path))?;
    file.buffer(&mut bytes.0, xor)
}

fn write_block(
    name: &str,
    subject: &Arc<Subject>,
    scale: Scale,
) -> Result<Vec<Alternative<'static>>, BenchError> {
    let scale = scale.at_most(APPENDS_MAX);
    let (size, mut file) = (subject.raw.len(), Growing::new()?);
    block_by_fields(&mut file, subject)?;
    expect(file.last(size)? == subject.raw, name, FIELDS, "other bytes")?;
    for (alternative, xor) in [(BUFFER, xor_bytewise as Xor), (BUFFER_WORDS, xor_wordwise)] {
        block_by_buffer(&mut file, subject, xor)?;
        expect(file.last(size)? == subject.raw, name, alternative, "other bytes")?;
    }
    let store = StoreFolder::new()?;
    let pos = store.store.blocks.append_block(&subject.raw).map_err(store_error)?;
    let again = store.store.blocks.read_block(pos).map_err(store_error)?;
    expect(again == subject.raw, name, ASSAY, "other bytes")?;
    let [one, two, three, four] = [(); 4].map(|()| Arc::clone(subject));
    Ok(vec![
        scale.prepared(FIELDS, 1, Growing::new, move |file| block_by_fields(file, &one))?,
        scale.prepared(BUFFER, 1, Growing::new, move |file| {
            block_by_buffer(file, &two, xor_bytewise)
        })?,
        scale.prepared(BUFFER_WORDS, 1, Growing::new, move |file| {
            block_by_buffer(file, &three, xor_wordwise)
        })?,
        scale.prepared(ASSAY, 1, StoreFolder::new, move |folder: &mut StoreFolder| {
            folder.store.blocks.append_block(&four.raw).map(drop).map_err(store_error)
        })?,
    ])
}

/// The block to which undo data belong; its hash goes into their checksum.
const PREV: [u8; 32] = [0x5a; 32];

/// Bytes of the checksum after undo data.
const CHECKSUM_BYTES: usize = 32;

/// Core serialises undo data twice: into the hasher and into the file.
fn undo_by_fields(file: &mut Growing, subject: &Subject) -> Result<(), BenchError> {
    file.fields(subject.undo.len() + CHECKSUM_BYTES, |stream| {
        let mut hasher = Sha256::new();
        hasher.update(&PREV);
        let mut hashed = Hashed { inner: stream, hasher };
        write_undo(&mut hashed, &subject.coins)?;
        let Hashed { inner, hasher } = hashed;
        super::serial::Sink::put(inner, &hasher.finalize_double())
    })
}

fn undo_by_buffer(file: &mut Growing, subject: &Subject, xor: Xor) -> Result<(), BenchError> {
    let size = subject.undo.len() + CHECKSUM_BYTES;
    let mut bytes = Bytes(Vec::with_capacity(size + FRAME_BYTES as usize));
    bytes.0.extend(frame(size));
    write_undo(&mut bytes, &subject.coins).map_err(file_error(&file.folder.path))?;
    let mut hasher = Sha256::new();
    hasher.update(&PREV);
    hasher.update(&bytes.0[FRAME_BYTES as usize..]);
    bytes.0.extend(hasher.finalize_double());
    file.buffer(&mut bytes.0, xor)
}

fn write_undo_data(
    name: &str,
    subject: &Arc<Subject>,
    scale: Scale,
) -> Result<Vec<Alternative<'static>>, BenchError> {
    let scale = scale.at_most(8 * APPENDS_MAX);
    let checksum = sha256d(&[&PREV, &subject.undo[..]].concat());
    let expected = [&subject.undo[..], &checksum].concat();
    let mut file = Growing::new()?;
    undo_by_fields(&mut file, subject)?;
    expect(file.last(expected.len())? == expected, name, FIELDS, "other bytes")?;
    for (alternative, xor) in [(BUFFER, xor_bytewise as Xor), (BUFFER_WORDS, xor_wordwise)] {
        undo_by_buffer(&mut file, subject, xor)?;
        expect(file.last(expected.len())? == expected, name, alternative, "other bytes")?;
    }
    let [one, two, three, four] = [(); 4].map(|()| Arc::clone(subject));
    let ours = |folder: &StoreFolder, subject: &Subject| {
        let mut undo = UndoWriter::with_capacity(subject.coins.len());
        for coin in &subject.coins {
            undo.push(coin.into());
        }
        folder.store.blocks.append_undo(0, &BlockHash(PREV), &undo.finish()).map_err(store_error)
    };
    let folder = StoreFolder::new()?;
    let pos = ours(&folder, subject)?;
    let again = folder.store.blocks.read_undo(pos, &BlockHash(PREV)).map_err(store_error)?;
    expect(again == subject.undo, name, ASSAY, "other bytes")?;
    Ok(vec![
        scale.prepared(FIELDS, 1, Growing::new, move |file| undo_by_fields(file, &one))?,
        scale.prepared(BUFFER, 1, Growing::new, move |file| {
            undo_by_buffer(file, &two, xor_bytewise)
        })?,
        scale.prepared(BUFFER_WORDS, 1, Growing::new, move |file| {
            undo_by_buffer(file, &three, xor_wordwise)
        })?,
        scale.prepared(ASSAY, 1, StoreFolder::new, move |folder: &mut StoreFolder| {
            ours(folder, &four).map(drop)
        })?,
    ])
}

fn read_undo_data(
    name: &str,
    subject: &Arc<Subject>,
    scale: Scale,
) -> Result<Vec<Alternative<'static>>, BenchError> {
    let mut file = Growing::new()?;
    undo_by_fields(&mut file, subject)?;
    let folder = Arc::new(file.folder);
    let checked = |sum: [u8; 32], expected: [u8; 32]| {
        if sum == expected { Ok(()) } else { Err(std::io::ErrorKind::InvalidData.into()) }
    };
    let fields = move |folder: &BlockFolder| -> std::io::Result<_> {
        let mut stream = StreamReader::open(&folder.path, KEY, FRAME_BYTES)?;
        let mut hasher = Sha256::new();
        hasher.update(&PREV);
        let mut hashed = Hashed { inner: &mut stream, hasher };
        let coins = read_undo(&mut hashed)?;
        let sum = hashed.hasher.finalize_double();
        let mut expected = [0; CHECKSUM_BYTES];
        super::serial::Source::get(&mut stream, &mut expected)?;
        checked(sum, expected).map(|()| coins)
    };
    let buffer = move |folder: &BlockFolder, xor: Xor| {
        let record = read_raw(&folder.path, xor)?;
        let (undo, expected) =
            record.split_last_chunk::<CHECKSUM_BYTES>().expect("a record ends with its checksum");
        let mut hasher = Sha256::new();
        hasher.update(&PREV);
        hasher.update(undo);
        checked(hasher.finalize_double(), *expected)
            .and_then(|()| read_undo(&mut &undo[..]))
            .map_err(file_error(&folder.path))
    };
    let by_fields = fields(&folder).map_err(file_error(&folder.path))?;
    expect(by_fields.len() == subject.coins.len(), name, FIELDS, "not all coins")?;
    let holds = by_fields.iter().zip(&subject.coins).all(|((code, value, script), coin)| {
        *code == u64::from(coin.height) << 1
            && *value == coin.value as u64
            && script.as_slice() == &*coin.script_pubkey
    });
    expect(holds, name, FIELDS, "other coins")?;
    expect(buffer(&folder, xor_bytewise)? == by_fields, name, BUFFER, "other coins")?;
    expect(buffer(&folder, xor_wordwise)? == by_fields, name, BUFFER_WORDS, "other coins")?;
    let store = StoreFolder::new()?;
    let hash = BlockHash(PREV);
    let pos = store.store.blocks.append_undo(0, &hash, &subject.undo).map_err(store_error)?;
    let ours = move |store: &StoreFolder| {
        let undo = store.store.blocks.read_undo(pos, &hash).map_err(store_error)?;
        decode_undo(&undo).map_err(store_error)
    };
    expect(ours(&store)? == subject.coins, name, ASSAY, "other coins")?;
    let (one, two, three) = (Arc::clone(&folder), Arc::clone(&folder), folder);
    Ok(vec![
        scale.prepared(
            FIELDS,
            1,
            || Ok(()),
            move |()| fields(&one).map(drop).map_err(file_error(&one.path)),
        )?,
        scale.prepared(BUFFER, 1, || Ok(()), move |()| buffer(&two, xor_bytewise).map(drop))?,
        scale.prepared(
            BUFFER_WORDS,
            1,
            || Ok(()),
            move |()| buffer(&three, xor_wordwise).map(drop),
        )?,
        scale.prepared(ASSAY, 1, || Ok(()), move |()| ours(&store).map(drop))?,
    ])
}
