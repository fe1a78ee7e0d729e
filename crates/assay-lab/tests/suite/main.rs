//! Integration tests of logs of every program and version: printed lines, real logs, damaged logs.

mod prefixes;

use std::fs::File;
use std::io::Write;
use std::path::Path;

use assay_lab::logs::{
    self, Event, FileSummary, Format, Found, LINE_BYTES_MAX, Parser, Row, Sessions, Step,
    Throughput, Txs,
};
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

const LINES: &str = include_str!("lines.txt");

fn parse(text: &[u8], piece: usize) -> Vec<Found> {
    let (mut parser, mut all) = (Parser::new(), Vec::new());
    text.chunks(piece).for_each(|piece| parser.feed(piece, &mut |found| all.push(found)));
    parser.finish(&mut |found| all.push(found));
    all
}

fn rows(text: &[u8]) -> Vec<Row> {
    let (mut sessions, mut rows) = (Sessions::new(), Vec::new());
    rows.extend(parse(text, 1 << 16).into_iter().filter_map(|found| sessions.take(found)));
    rows.extend(sessions.finish());
    rows
}

fn read(path: &Path) -> (FileSummary, Vec<Row>) {
    let mut rows = Vec::new();
    let summary = logs::read(path, &mut Throughput::default(), &mut |row| {
        rows.push(row);
        Ok(())
    });
    (summary.expect("a readable log"), rows)
}

/// One line of each format as programs print it, mostly as quoted in the projects' issue trackers.
#[test]
fn every_format() {
    use Format as F;
    use Txs::{OfBlock, Since, Total, Unknown};
    let expected: [(F, u32, Txs, Option<u64>, bool); 34] = [
        (F::Core0_7, 182_338, Unknown, None, true),
        (F::Core0_8_0, 222_010, Total(13_504_242), None, true),
        (F::Core0_8_0, 222_011, Total(13_504_342), None, false),
        (F::Core0_8_2, 228_337, Total(15_075_580), None, true),
        (F::Core0_9, 308_004, Total(41_447_698), None, true),
        (F::Core0_10, 343_000, Total(59_447_698), None, true),
        (F::Core0_11, 370_000, Total(79_447_698), Some(26_738_688), true),
        (F::Core0_13, 405_532, Total(119_994_369), Some(26_738_688), true),
        (F::Core0_15, 486_000, Total(255_994_369), Some(2_621_440), true),
        (F::Core0_17, 544_660, Total(346_814_908), Some(32 << 20), true),
        (F::Core0_17, 890_000, Total(1_172_414_692), Some(1_655_596_646), true),
        (F::Core0_17, 846_000, Total(1_012_414_692), Some(1_655_596_646), true),
        (F::Core0_17, 7, Total(8), Some(0), true),
        (F::Btcd, 830_421, Since(4197), Some(112 << 20), true),
        (F::Btcd, 235_912, Since(273), None, true),
        (F::Btcd, 555_567, Since(1), None, true),
        (F::BtcdIndex, 230_421, Since(94_197), None, true),
        (F::Bcoin, 101, OfBlock(1), None, false),
        (F::Bcoin, 325_001, OfBlock(1043), None, true),
        (F::BcoinStatus, 32_500, Unknown, None, true),
        (F::Fulcrum, 597_000, Txs::PerBlock(39260.4 / 18.1), None, true),
        (F::Fulcrum, 598_000, Txs::PerBlock(9260.4 / 60.0 / (3.85 / 60.0)), None, true),
        (F::Fulcrum, 440_000, Txs::PerBlock(7416.5 / 4.06), None, true),
        (F::FulcrumBlock, 750_000, Since(2345), None, true),
        (F::Electrs0_9, 358_890, Unknown, None, true),
        (F::Electrs0_9Batch, 0, Unknown, None, true),
        (F::Electrs0_12, 891_000, Unknown, None, true),
        (F::Electrs0_8, 537_000, Unknown, None, true),
        (F::Electrs0_8, 537_001, Unknown, None, true),
        (F::ElectrumX, 384_447, Unknown, Some(2_054_000_000), false),
        (F::ElectrumXFlush, 384_447, Total(93_438_029), None, false),
        (F::ElectrumXFlush, 384_447, Total(93_438_029), None, true),
        (F::Libbitcoin3, 834_632, OfBlock(1), None, true),
        (F::Libbitcoin4, 834_632, Unknown, None, true),
    ];
    assert_eq!(LINES.lines().count(), expected.len());
    for (line, (format, height, txs, cache_bytes, has_stamp)) in LINES.lines().zip(expected) {
        // Surrounding lines make no difference.
        for text in [format!("{line}\n"), format!("\n\n{line}\r\nmore\n")] {
            let found = parse(text.as_bytes(), text.len());
            let [Found { event: Ok(Event::Progress(progress)), .. }] = &found[..] else {
                panic!("{line}: {found:?}");
            };
            assert_eq!(progress.format, format, "{line}");
            assert_eq!(progress.height, height, "{line}");
            assert_eq!(progress.txs, txs, "{line}");
            assert_eq!(progress.cache_bytes, cache_bytes, "{line}");
            assert_eq!(progress.stamp.is_some(), has_stamp, "{line}");
            assert_eq!(progress.background, line.contains("[background"), "{line}");
        }
    }
}

#[test]
fn ignores_other_lines() {
    let text = "2016-04-03 11:09:23 UpdateTip: 7 of last 100 blocks have unexpected version\n\
        2025-01-01T00:00:00Z Loaded best chain: hashBestChain=00ff height=12 date=2024-01-01T00:00:00Z progress=0.5\n\
        2025-01-01T00:00:00Z InvalidChainFound:  current best=00ff  height=12  log2_work=1\n\
        [2025-01-27 00:33:18.850] <Controller> Storage UTXO Cache: Flushing to DB ...\n\
        2025-01-01T00:00:00Z [bench]   - Something new: 1.00ms\n\
        INFO:DB:tx/sec since genesis: 10,522, since last flush: 5,712\n\
        INFO:DB:sync time: 02h 27m 59s  ETA: 22h 07m 55s\n\
        Block me\nProcessed food\nIndexed by nobody\nSaved my day\nStatus: well\nProcessed 2000 headers in the last 10s (height 2000)\n- \n  -\n";
    assert_eq!(parse(text.as_bytes(), 64), []);
}

#[test]
fn reports_faults_by_line() {
    let good = LINES.lines().nth(10).expect("a line of today");
    let mut text = format!("{good}\n");
    let bad = [
        good.replace("height=890000", "height=89x000"),
        good.replace("height=890000", "height=99999999999"),
        good.replace("tx=1172414692", "tx="),
        good.replace("date='2025-03-29", "date='2025-13-29"),
        good.replace("progress=0.964378", "progress=."),
        good.replace("txo)", ""),
        good.replace("new best=...47e5", "new best=...47g5"),
        good.replace("UpdateTip: ", "UpdaXeTip: "),
        good.split(" log2_work").next().expect("a part").to_owned(),
        "[2025-01-27 00:32:47.810] <Controller> Processed height: 59x".to_owned(),
        "2025-01-01T00:00:00Z [bench] - Connect block: 1x.0ms".to_owned(),
        "x".repeat(LINE_BYTES_MAX + 1),
    ];
    for line in &bad {
        text += line;
        text.push('\n');
    }
    text += good.split(" tx=").next().expect("a part");
    for piece in [7, 4096, text.len()] {
        let found = parse(text.as_bytes(), piece);
        assert!(found[0].event.is_ok());
        let lines: Vec<u64> = found[1..].iter().map(|found| found.line).collect();
        assert_eq!(lines, (2..=bad.len() as u64 + 2).collect::<Vec<_>>(), "piece {piece}");
        assert!(found[1..].iter().all(|found| found.event.is_err()), "{found:?}");
    }
    // Numbers at the end of a truncated log may have lost digits.
    for line in ["block_organized..... 834632 52", "2025-01-01T00:00:00Z UpdateTip: new b"] {
        let found = parse(line.as_bytes(), 8);
        assert_eq!(found.len(), 1, "{line}");
        assert_eq!(found[0].event, Err(logs::Fault::Cut), "{line}");
    }
}

/// Malformed lines are counted by reason, with the first of each.
#[test]
fn faults_are_counted_by_reason() {
    let good = LINES.lines().nth(10).expect("a line of today");
    let (one, other) = (good.replace("tx=", "tx=x"), good.replace("height=", "height=x"));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("debug.log");
    std::fs::write(&path, format!("{good}\n{one}\n{other}\n\x1b[1m{one}\n")).expect("writable");
    let (summary, rows) = read(&path);
    assert_eq!((rows.len(), summary.faults, summary.faults_by_reason.len()), (1, 3, 2));
    let count = &summary.faults_by_reason[0];
    assert_eq!((count.lines, count.first_line, &count.example), (2, 2, &one));
    assert_eq!(count.reason, "UpdateTip: tx is missing or malformed");
}

#[test]
fn restarts_jumps_of_the_clock_and_midnight() {
    let tip = |time: &str, height: u32| {
        format!(
            "{time} UpdateTip: new best=...47e5 height={height} version=0x20000000 log2_work=1.0 \
             tx={height} date='2025-03-29T17:29:01Z' progress=0.5 cache=1.0MiB(1txo)\n"
        )
    };
    let start = |time: &str| format!("{time} Bitcoin Core version v29.0.0 (release build)\n");
    let mut text = start("2025-01-01T00:00:00Z");
    text += &tip("2025-01-01T00:00:10Z", 1);
    text += &tip("2025-01-01T00:00:20Z", 2);
    // Lines of concurrent threads are out of order.
    text += &tip("2025-01-01T00:00:19Z", 3);
    // The clock is set back by an hour; elapsed time continues.
    text += &tip("2024-12-31T23:00:20Z", 4);
    text += &tip("2024-12-31T23:00:25Z", 5);
    // A start without progress, and one with progress two days later.
    text += &start("2025-01-03T00:00:00Z");
    text += &start("2025-01-03T00:01:00Z");
    text += &tip("2025-01-03T00:01:07Z", 6);
    let rows = rows(text.as_bytes());
    let times: Vec<_> =
        rows.iter().map(|row| (row.session, row.elapsed_s, row.running_s)).collect();
    let time = |session, elapsed: f64, running: f64| (session, Some(elapsed), Some(running));
    assert_eq!(
        times,
        [
            time(1, 10.0, 10.0),
            time(1, 20.0, 20.0),
            time(1, 20.0, 20.0),
            time(1, 20.0, 20.0),
            time(1, 25.0, 25.0),
            time(2, 7.0, 32.0),
        ]
    );
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("debug.log");
    std::fs::write(&path, &text).expect("writable");
    let (summary, _) = read(&path);
    assert_eq!((summary.clock_set_back, summary.session_count, summary.faults), (1, 2, 0));
    assert_eq!(summary.sessions[1].version.as_deref(), Some("Bitcoin Core v29.0.0"));

    let text = "23:59:59.000000 INFO [blockchain] Block [1]    1 txs    1 ins\n\
                00:00:01.000000 INFO [blockchain] Block [2]    1 txs    1 ins\n";
    let midnight: Vec<_> = self::rows(text.as_bytes()).iter().map(|row| row.elapsed_s).collect();
    assert_eq!(midnight, [Some(0.0), Some(2.0)]);
}

#[test]
fn transactions_are_added_up() {
    let text = "2024-02-16 14:52:26.696 [INF] SYNC: Processed 2 blocks in the last 11.4s (4197 transactions, height 830421, d, ~112 MiB cache)\n\
        2024-02-16 14:52:36.696 [INF] SYNC: Processed 2 blocks in the last 10s (3 transactions, height 830423, d, ~112 MiB cache)\n";
    let totals: Vec<_> = rows(text.as_bytes()).iter().map(|row| row.txs_total).collect();
    assert_eq!(totals, [Some(4197), Some(4200)]);
    let text = "[2025-01-27 00:32:47.810] <Controller> Processed height: 597000, 67.8%, 10.0 blocks/sec, 20000.0 txs/sec, 1.0 addrs/sec\n\
        [2025-01-27 00:34:27.810] <Controller> Processed height: 598000, 67.9%, 10.0 blocks/sec, 25000.0 txs/sec, 1.0 addrs/sec\n\
        [2025-01-27 00:34:28.000] <Controller> Processed 2 new blocks with 10 txs (20 inputs, 30 outputs, 40 addresses), verified ok.\n";
    let got: Vec<_> =
        rows(text.as_bytes()).iter().map(|row| (row.progress.height, row.txs_total)).collect();
    assert_eq!(got, [(597_000, None), (598_000, Some(2_500_000)), (598_002, Some(2_500_010))]);
}

/// Old and new forms of `-debug=bench`.
#[test]
fn steps_of_blocks() {
    let text = "2016-04-03 11:09:22   - Load block from disk: 3.11ms [51.13s]\n\
        2016-04-03 11:09:22     - Sanity checks: 1.00ms [1.00s]\n\
        2016-04-03 11:09:22     - Fork checks: 0.50ms [1.00s]\n\
        2016-04-03 11:09:22       - Connect 484 transactions: 4.14ms (0.009ms/tx, 0.005ms/txin) [64.37s]\n\
        2016-04-03 11:09:22     - Verify 860 txins: 4.25ms (0.005ms/txin) [66.98s]\n\
        2016-04-03 11:09:22     - Index writing: 0.10ms [1.00s]\n\
        2016-04-03 11:09:22     - Callbacks: 0.20ms [1.00s]\n\
        2016-04-03 11:09:22   - Connect total: 6.00ms [1.00s]\n\
        2016-04-03 11:09:22   - Flush: 0.30ms [1.00s]\n\
        2016-04-03 11:09:22   - Writing chainstate: 0.40ms [1.00s]\n\
        2016-04-03 11:09:23 UpdateTip: new best=...14db  height=405532  log2_work=84.416823  tx=119994369  date=2016-04-03 11:09:01 progress=1.000000  cache=25.5MiB(7394tx)\n\
        2016-04-03 11:09:23   - Connect postprocess: 0.60ms [1.00s]\n\
        2016-04-03 11:09:23 - Connect block: 11.96ms [313.16s]\n\
        2025-01-01T00:00:00Z [bench]   - Using cached block\n\
        2025-01-01T00:00:01Z UpdateTip: new best=...14db height=405533 version=0x20000000 log2_work=84.416823 tx=119994370 date='2016-04-03T11:09:01Z' progress=1.000000 cache=25.5MiB(7394txo)\n\
        2025-01-01T00:00:01Z [bench] - Connect block: 1.50ms [0.00s (1.50ms/blk)]\n";
    let rows = rows(text.as_bytes());
    assert_eq!(rows.len(), 2);
    let steps = rows[0].steps.expect("steps");
    assert_eq!((steps.txs, steps.inputs), (Some(484), Some(860)));
    let of = [Step::Load, Step::Sanity, Step::Connect, Step::Verify, Step::Callbacks, Step::Total];
    let expected = [3.11, 1.0, 4.14, 4.25, 0.2, 11.96].map(Some);
    assert_eq!(of.map(|step| steps.of(step)), expected);
    let steps = rows[1].steps.expect("steps");
    assert_eq!((steps.of(Step::Load), steps.of(Step::Total)), (Some(0.0), Some(1.5)));
    assert_eq!(steps.of(Step::Flush), None, "nothing is left of the block before");
    let mut csv = String::new();
    logs::csv_row("a,b.log", &rows[0], &mut csv);
    let columns = logs::CSV_HEAD.split(',').count() + logs::STEPS.len();
    assert!(csv.starts_with("\"a,b.log\",11,1,Bitcoin Core 0.11-0.12,per block,405532,"), "{csv}");
    assert_eq!(csv.matches(',').count(), columns, "one comma in the name, one less than columns");
}

/// Real logs of nodes on a regression-test chain.
#[test]
fn real_logs() {
    let root = assay_testkit::data::folder();
    let log = |name: &str| {
        let path = root.as_ref()?.join("logs").join(name);
        path.exists().then_some(path)
    };
    let (Some(core), Some(bchn)) = (
        log("bitcoin-core-31.99-reindex-chainstate-bench-micros.log"),
        log("bchn-28.0.1-regtest.log"),
    ) else {
        return eprintln!("skipped: no logs in ASSAY_TEST_DATA");
    };
    let (summary, rows) = read(&core);
    assert_eq!((summary.rows, summary.faults, summary.height_jumps), (223, 0, 0));
    assert_eq!(
        rows.iter().map(|row| row.progress.height).collect::<Vec<_>>(),
        (0..223).collect::<Vec<_>>()
    );
    assert!(rows.iter().all(|row| row.steps.is_some() && row.progress.format == Format::Core0_17));
    let version = summary.sessions[0].version.as_deref();
    assert_eq!(version, Some("Bitcoin Core v31.99.0-b88bffe550a3"));
    // From the banner, 23.298159, to the last tip, 23.691644.
    assert_eq!(rows.last().and_then(|row| row.elapsed_s), Some(0.393485));
    assert_eq!(rows.last().and_then(|row| row.txs_total), Some(223));
    let last = rows.last().and_then(|row| row.steps).expect("steps");
    assert_eq!((last.of(Step::Total), last.inputs), (Some(0.04), Some(0)));

    let (summary, rows) = read(&bchn);
    assert_eq!((summary.rows, summary.faults, summary.height_jumps), (401, 0, 0));
    assert_eq!(
        rows.iter().map(|row| row.progress.height).collect::<Vec<_>>(),
        (0..=400).collect::<Vec<_>>()
    );
    let version = summary.sessions[0].version.as_deref();
    assert_eq!(version, Some("Bitcoin Cash Node v28.0.1-631badbf6"));
    assert_eq!(rows.last().and_then(|row| row.elapsed_s), Some(3.0));
}

#[test]
fn compressed_logs_whole_and_cut_off() {
    let text = LINES.repeat(40);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).expect("memory");
    let packed = encoder.finish().expect("memory");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("debug.log.gz");
    let write = |bytes: &[u8]| {
        File::create(&path).and_then(|mut file| file.write_all(bytes)).expect("writable");
    };
    write(&packed);
    let (whole, _) = read(&path);
    assert_eq!((whole.rows, whole.faults, whole.compressed), (34 * 40, 0, true));
    // Two in one file, as rotation may leave them.
    write(&[&packed[..], &packed[..]].concat());
    assert_eq!(read(&path).0.rows, 2 * 34 * 40);
    write(&packed[..packed.len() - 12]);
    let (cut, _) = read(&path);
    assert!(cut.faults >= 1, "{cut:?}");
    assert!(cut.faults_by_reason[0].reason.starts_with("compressed data: "), "{cut:?}");
    write(b"\x1f\x8bnonsense");
    assert_eq!((read(&path).0.faults, read(&path).0.rows), (1, 0));
    write(b"");
    assert_eq!((read(&path).0.faults, read(&path).0.lines), (0, 0));
}

#[test]
fn charts_and_pages() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("<debug>.log");
    std::fs::write(&path, LINES).expect("writable");
    let mut charted = logs::Charted::default();
    let mut throughput = Throughput::default();
    let summary = logs::read(&path, &mut throughput, &mut |row| {
        charted.take(&row);
        Ok(())
    });
    let files = [(summary.expect("readable"), charted)];
    assert_eq!(throughput.bytes, LINES.len() as u64);
    let page = logs::record(&files, &throughput).page();
    let (_, svg) = page.pictures().into_iter().next().expect("a curve");
    assert!(
        svg.contains("&lt;debug&gt;.log") && svg.contains("height against running time"),
        "{svg}"
    );
    let html = page.html();
    assert!(html.contains("per interval of 10 s or more") && !html.contains("<debug>"));
    assert!(html.contains("Bitcoin Core 0.11-0.12") && html.contains("GB/s"), "{html:.9000}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Damaged logs never cause a panic, and their split into pieces makes no difference.
    #[test]
    fn damaged_logs(
        lines in prop::collection::vec(0..33usize, 1..8),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4u8), 0..12),
        piece in 1..200usize,
        cut in any::<prop::sample::Index>(),
    ) {
        let all: Vec<&str> = LINES.lines().collect();
        let mut text = Vec::new();
        for line in lines {
            text.extend_from_slice(all[line].as_bytes());
            text.push(b'\n');
        }
        for (at, byte, kind) in damage {
            let at = at.index(text.len().max(1)).min(text.len());
            match kind {
                0 if at < text.len() => text[at] = byte,
                1 if at < text.len() => drop(text.remove(at)),
                2 => text.insert(at, byte),
                _ => text.insert(at, b"0123456789=.,[]() \n"[usize::from(byte) % 19]),
            }
        }
        let cut = cut.index(text.len() + 1);
        let text = &text[..cut];
        let whole = parse(text, text.len().max(1));
        prop_assert_eq!(&whole, &parse(text, piece));
        let count = text.split(|byte| *byte == b'\n').count() as u64;
        prop_assert!(whole.iter().all(|found| (1..=count).contains(&found.line)));
        rows(text);
    }

    /// Every prefix of a valid line is either an event of the same height or a fault, if it is long enough to be recognised.
    #[test]
    fn cut_lines_never_give_other_heights(line in 0..33usize, cut in any::<prop::sample::Index>()) {
        let text = LINES.lines().nth(line).expect("a line").as_bytes();
        let whole = parse(&[text, b"\n"].concat(), 1 << 16);
        let [Found { event: Ok(Event::Progress(progress)), .. }] = &whole[..] else { panic!() };
        for found in parse(&text[..cut.index(text.len())], 1 << 16) {
            if let Ok(Event::Progress(cut)) = found.event {
                prop_assert_eq!(cut.height, progress.height);
                prop_assert!(cut.txs == progress.txs, "{:?} {:?}", cut.txs, progress.txs);
            }
        }
    }
}
