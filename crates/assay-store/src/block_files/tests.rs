use super::*;

const MAGIC: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];
const KEY: [u8; 8] = [0x11, 0xa2, 0x00, 0x34, 0x45, 0x56, 0xc7, 0x78];

/// A block whose header ends in a marker byte that replaces its proof of work.
fn block(number: u8, bytes: usize) -> Vec<u8> {
    let mut raw = vec![number; bytes];
    raw[76..80].copy_from_slice(b"work");
    raw
}

fn frame(raw: &[u8]) -> Vec<u8> {
    let mut record = MAGIC.to_vec();
    record.extend((raw.len() as u32).to_le_bytes());
    record.extend(raw);
    record
}

const RULES: RecordRules<'static> = RecordRules { bytes_max: 100_000, is_header: &is_header };

fn is_header(header: &[u8; 80]) -> bool {
    header.ends_with(b"work")
}

/// Writes a file, plain and obfuscated, and checks the findings of both scans.
fn check(parts: &[Vec<u8>], expected: &[(u64, u64, Option<StrayKind>)]) {
    let plain = parts.concat();
    for key in [XorKey::NONE, XorKey::new(KEY)] {
        let dir = tempfile::tempdir().unwrap();
        let mut bytes = plain.clone();
        key.apply(&mut bytes, 0);
        fs::write(dir.path().join("blk00000.dat"), &bytes).unwrap();
        if key != XorKey::NONE {
            fs::write(dir.path().join("xor.dat"), KEY).unwrap();
        }
        let files = BlockFiles::open(dir.path(), MAGIC).unwrap();
        assert_eq!(files.is_obfuscated(), key != XorKey::NONE);
        let mut found = Vec::new();
        files
            .scan(0, &RULES, &mut |finding, _| match finding {
                Finding::Block { place, header } => {
                    let raw = files.read(&place).unwrap();
                    assert_eq!(raw[..80], header);
                    assert_eq!(raw, plain[place.offset as usize..][..place.size as usize]);
                    assert_eq!(files.read_part(&place, 5).unwrap(), raw[..5]);
                    found.push((place.offset, u64::from(place.size), None));
                }
                Finding::Stray { offset, bytes, kind, .. } => {
                    found.push((offset, bytes, Some(kind)));
                }
            })
            .unwrap();
        assert_eq!(found, expected);
    }
}

#[test]
fn records_one_after_the_other() {
    check(&[], &[]);
    let (a, b) = (frame(&block(1, 100)), frame(&block(2, 81)));
    check(&[a.clone(), b.clone(), a], &[(8, 100, None), (116, 81, None), (205, 100, None)]);
    check(&[b], &[(8, 81, None)]);
}

#[test]
fn padding_and_garbage_between_records() {
    use StrayKind::{Garbage, Padding};
    let a = frame(&block(1, 100));
    check(
        &[
            vec![0; 50],
            a.clone(),
            vec![0; 3 << 20],
            a.clone(),
            vec![7; 9],
            a.clone(),
            vec![0; 4096],
        ],
        &[
            (0, 50, Some(Padding)),
            (58, 100, None),
            (158, 3 << 20, Some(Padding)),
            (158 + (3 << 20) + 8, 100, None),
            (266 + (3 << 20), 9, Some(Garbage)),
            (275 + (3 << 20) + 8, 100, None),
            (383 + (3 << 20), 4096, Some(Padding)),
        ],
    );
    // A magic without a record, one across the boundary of two windows, and one at the end.
    let mut gap = vec![0xfa; (1 << 20) - 2];
    gap[100..104].copy_from_slice(&MAGIC);
    check(
        &[gap, a.clone(), MAGIC.to_vec()],
        &[
            (0, (1 << 20) - 2, Some(Garbage)),
            ((1 << 20) + 6, 100, None),
            ((1 << 20) + 106, 4, Some(StrayKind::Truncated)),
        ],
    );
}

#[test]
fn a_record_that_is_cut_off() {
    let a = frame(&block(1, 100));
    for left in [4, 50, 88, 107] {
        let kind = Some(StrayKind::Truncated);
        check(&[a.clone(), a[..left].to_vec()], &[(8, 100, None), (108, left as u64, kind)]);
    }
    check(&[a[..3].to_vec()], &[(0, 3, Some(StrayKind::Garbage))]);
}

#[test]
fn padding_and_garbage_in_one_gap() {
    let a = frame(&block(1, 100));
    let kinds = [StrayKind::Padding, StrayKind::Garbage, StrayKind::Padding, StrayKind::Truncated];
    let [padding, garbage, more, cut] = kinds.map(Some);
    check(
        &[vec![0; 9], vec![7; 9], a.clone(), vec![0; 99], a[..95].to_vec()],
        &[(0, 9, padding), (9, 9, garbage), (26, 100, None), (126, 99, more), (225, 95, cut)],
    );
    // A few zeros are not reported as padding.
    check(&[vec![7, 0, 0, 7], a], &[(0, 4, garbage), (12, 100, None)]);
}

#[test]
fn zeros_on_the_disk_may_run_into_an_obfuscated_record() {
    let dir = tempfile::tempdir().unwrap();
    // The first two bytes of the magic become zeros, too.
    let mut key = KEY;
    key[..2].copy_from_slice(&MAGIC[..2]);
    let mut bytes = vec![0; 64];
    let mut record = frame(&block(1, 100));
    XorKey::new(key).apply(&mut record, 64);
    assert_eq!(record[..2], [0, 0]);
    bytes.extend(record);
    fs::write(dir.path().join("blk00000.dat"), bytes).unwrap();
    fs::write(dir.path().join("xor.dat"), key).unwrap();
    let files = BlockFiles::open(dir.path(), MAGIC).unwrap();
    let mut found = Vec::new();
    files.scan(0, &RULES, &mut |finding, _| found.push(finding)).unwrap();
    assert!(matches!(
        found[0],
        Finding::Stray { offset: 0, bytes: 64, kind: StrayKind::Padding, .. }
    ));
    assert!(matches!(found[1], Finding::Block { place, .. } if place.offset == 72));
}

#[test]
fn a_flipped_bit_costs_one_record_at_most() {
    let records = [frame(&block(1, 100)), frame(&block(2, 300)), frame(&block(3, 120))];
    let flipped = |byte: usize, mask: u8| {
        let mut records = records.clone();
        records[1][byte] ^= mask;
        records
    };
    let (first, last) = ((8, 100, None), (424, 120, None));
    // Magic and header.
    check(&flipped(2, 1), &[first, (108, 308, Some(StrayKind::Garbage)), last]);
    check(&flipped(84, 1), &[first, (108, 308, Some(StrayKind::BadHeader)), last]);
    // Length: too long for the file, into the middle of the next record, too short.
    check(&flipped(7, 0x80), &[first, (108, 308, Some(StrayKind::Truncated)), last]);
    check(&flipped(4, 0x10), &[first, (116, 316, None), last]);
    check(&flipped(4, 0x04), &[first, (116, 296, None), (412, 4, Some(StrayKind::Garbage)), last]);
    // Shorter than a header.
    check(&flipped(5, 0x01), &[first, (108, 308, Some(StrayKind::BadHeader)), last]);
}

#[test]
fn files_are_found_by_name_and_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let empty = BlockFiles::open(dir.path(), MAGIC).unwrap_err();
    assert!(matches!(empty, BlockFilesError::Empty { .. }), "{empty}");
    let blocks = dir.path().join("blocks");
    fs::create_dir(&blocks).unwrap();
    for name in
        ["blk00010.dat", "blk00002.dat", "blk100000.dat", "rev00002.dat", "blk.dat", "blkx.dat"]
    {
        fs::write(blocks.join(name), name).unwrap();
    }
    fs::create_dir(blocks.join("blk00003.dat")).unwrap();
    let files = BlockFiles::open(dir.path(), MAGIC).unwrap();
    let names: Vec<_> =
        files.files().iter().map(|file| file.path.file_name().unwrap().to_owned()).collect();
    assert_eq!(names, ["blk00002.dat", "blk00010.dat", "blk100000.dat"]);
    assert_eq!(files.bytes(), 12 + 12 + 13);

    // The key applies to numbered files only.
    fs::write(blocks.join("xor.dat"), KEY).unwrap();
    fs::write(blocks.join("bootstrap.dat"), "b").unwrap();
    assert!(BlockFiles::open(&blocks.join("blk00002.dat"), MAGIC).unwrap().is_obfuscated());
    assert!(!BlockFiles::open(&blocks.join("bootstrap.dat"), MAGIC).unwrap().is_obfuscated());
    fs::write(blocks.join("xor.dat"), [0; 8]).unwrap();
    assert!(!BlockFiles::open(&blocks, MAGIC).unwrap().is_obfuscated());
    fs::write(blocks.join("xor.dat"), [0; 7]).unwrap();
    let error = BlockFiles::open(&blocks, MAGIC).unwrap_err();
    assert!(matches!(error, BlockFilesError::Key { bytes: 7, .. }), "{error}");
    assert!(BlockFiles::open(&dir.path().join("none"), MAGIC).is_err());
}

#[test]
fn a_shrunken_file_is_not_an_io_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("blk00000.dat");
    fs::write(&path, frame(&block(1, 100))).unwrap();
    let files = BlockFiles::open(&path, MAGIC).unwrap();
    fs::write(&path, [0; 50]).unwrap();
    let place = BlockPlace { file: 0, offset: 8, size: 100 };
    assert!(matches!(files.read(&place), Err(BlockFilesError::Short { offset: 8, size: 100, .. })));
}

#[test]
fn skips_impossible_block_lengths() {
    let a = frame(&block(1, 100));
    let mut long = frame(&block(2, 100_001));
    let kind = Some(StrayKind::BadLength);
    check(
        &[a.clone(), long.clone(), a.clone()],
        &[(8, 100, None), (108, 100_009, kind), (100_125, 100, None)],
    );
    // The scan finds the record inside it.
    long[5000..5108].copy_from_slice(&a);
    check(
        &[long, a],
        &[
            (0, 5000, kind),
            (5008, 100, None),
            (5108, 94_901, Some(StrayKind::Garbage)),
            (100_017, 100, None),
        ],
    );
}
