//! Line prefixes of journals, syslog daemons, supervisors and container runtimes.

use assay_lab::logs::{Event, Fault, Format, Found, Progress, Txs};
use proptest::prelude::*;
use proptest::sample::select;

use super::{LINES, parse};

/// 09:07:05.250 on 9 January 2019, UTC, in microseconds since 1970.
const DATED: i64 = 1_547_024_825_250_000;
/// The same without the year, in the substitute leap year.
const UNDATED: i64 = (731 + 7) * 86_400_000_000 + 32_825_250_000;

/// Adds a prefix to a line; `LINE` stands for the line, `_` for one or more blanks.
struct Envelope {
    text: &'static str,
    /// Time of its stamp, if it has one.
    us: Option<i64>,
    /// True if the line is encoded, so that no prefix can precede it.
    is_outermost: bool,
}

const fn stamped(text: &'static str, us: i64) -> Envelope {
    Envelope { text, us: Some(us), is_outermost: false }
}

const fn bare(text: &'static str) -> Envelope {
    Envelope { text, us: None, is_outermost: false }
}

const fn encoded(text: &'static str, us: i64) -> Envelope {
    Envelope { text, us: Some(us), is_outermost: true }
}

const SECOND: i64 = 250_000;

const ENVELOPES: [Envelope; 44] = [
    // journalctl: short, short-precise, short-iso (old and new), short-iso-precise, short-full, short-unix, short-monotonic,
    // short-delta, --no-hostname, verbose, export.
    stamped("Jan_09 09:07:05_host_unit[123]:_LINE", UNDATED - SECOND),
    stamped("Jan 09 09:07:05.250000_host_unit[123]:_LINE", UNDATED),
    stamped("2019-01-09T10:07:05+0100_host.example_unit.service[1]:_LINE", DATED - SECOND),
    stamped("2019-01-09T03:07:05-06:00_LINE", DATED - SECOND),
    stamped("2019-01-09T03:07:05.250000-06:00_host_(unit)[1]:_LINE", DATED),
    stamped("Wed 2019-01-09 09:07:05 UTC_host_unit[123]:_LINE", DATED - SECOND),
    stamped("Wed 2019-01-09 12:07:05 +03_host_unit[123]:_LINE", DATED - SECOND),
    stamped("1547024825.250000_host_unit[123]:_LINE", DATED),
    stamped("[_12.250000]_host_unit[123]:_LINE", 12_250_000),
    stamped("[_12.250000 <_0.000100 >]_host_unit[123]:_LINE", 12_250_000),
    stamped("Jan 09 09:07:05_unit[123]:_LINE", UNDATED - SECOND),
    bare("_MESSAGE=LINE"),
    // syslog: files of RFC 3164 daemons, its wire format, busybox, rsyslog with ISO times, logger, RFC 5424, sd-daemon.
    stamped("Jan  9 09:07:05_host_unit:_LINE", UNDATED - SECOND),
    stamped("<30>Jan  9 09:07:05_host_unit[123]:_LINE", UNDATED - SECOND),
    stamped("Jan  9 09:07:05_host_daemon.info_unit[123]:_LINE", UNDATED - SECOND),
    stamped("Jan  9 09:07:05 2019_host_unit[123]:_LINE", DATED - SECOND),
    stamped("2019-01-09T09:07:05.250000+00:00_host_unit[123]:_LINE", DATED),
    bare("unit[123]:_LINE"),
    stamped("<165>1 2019-01-09T09:07:05.250Z host app 123 ID47 - LINE", DATED),
    stamped(
        "<165>1 2019-01-09T09:07:05.250Z host app - - [a@1 k=\"v]\\\"\" b=\"\"][c@2] \u{feff}LINE",
        DATED,
    ),
    bare("<6>LINE"),
    // Supervisors: s6, svlogd -t, -tt, -ttt, s6-log T, supervisord, pm2, foreman.
    stamped("@400000005c35b9c30ee6b280_LINE", DATED),
    stamped("2019-01-09_09:07:05.25000_LINE", DATED),
    stamped("2019-01-09T09:07:05.25000_LINE", DATED),
    stamped("2019-01-09 09:07:05.250000000  LINE", DATED),
    stamped("2019-01-09 09:07:05,250_INFO_LINE", DATED),
    bare("unit_stdout | LINE"),
    bare("0|unit_| LINE"),
    stamped("2019-01-09T09:07:05: LINE", DATED - SECOND),
    stamped("09:07:05 web.1_| LINE", 32_825_000_000),
    // Containers: docker logs -t, compose with names and colours, CRI (Kubernetes, podman), kubectl --prefix, podman --names.
    stamped("2019-01-09T09:07:05.250000000Z_LINE", DATED),
    bare("unit-1_| LINE"),
    bare("\u{1b}[36munit-1_|\u{1b}[0m LINE"),
    bare("\u{1b}[38;5;6munit-1_| \u{1b}[0mLINE"),
    stamped("2019-01-09T09:07:05.250000000Z stdout F LINE", DATED),
    stamped("2019-01-09T10:07:05.25+01:00 stderr F LINE", DATED),
    bare("[pod/unit-0/unit]_LINE"),
    bare("0123456789ab_LINE"),
    encoded(
        "{\"log\":\"LINE\\n\",\"stream\":\"stdout\",\"time\":\"2019-01-09T09:07:05.25Z\"}",
        DATED,
    ),
    encoded(
        "{\"log\":\"LINE\\n\",\"stream\":\"stderr\",\"attrs\":{\"tag\":\"x\"},\"time\":\"2019-01-09T09:07:05.25Z\"}",
        DATED,
    ),
    encoded(
        "{\"__REALTIME_TIMESTAMP\":\"1547024825250000\",\"PRIORITY\":\"6\",\"MESSAGE\":\"LINE\"}",
        DATED,
    ),
    // Loggers: klog, Go, Python.
    stamped("I0109 09:07:05.250000_123 main.go:12]_LINE", UNDATED),
    stamped("2019/01/09 09:07:05_LINE", DATED - SECOND),
    stamped("2019-01-09 09:07:05,250 - unit - INFO - LINE", DATED),
];

impl Envelope {
    fn around(&self, line: &str, blanks: usize) -> String {
        let line = if self.is_outermost {
            let text = serde_json::to_string(line).expect("a string");
            // Encoding of Go.
            let text = text.replace('<', "\\u003c").replace('>', "\\u003e");
            text[1..text.len() - 1].to_owned()
        } else {
            line.to_owned()
        };
        let (before, behind) = self.text.split_once("LINE").expect("a place for the line");
        let is_json = self.is_outermost;
        let before =
            if is_json { before.to_owned() } else { before.replace('_', &" ".repeat(blanks)) };
        // `svlogd -tt` has the only stamp with an underscore.
        let before =
            before.replacen(&format!("2019-01-09{}09", " ".repeat(blanks)), "2019-01-09_09", 1);
        format!("{before}{line}{behind}\n")
    }
}

/// The single event of a text.
fn progress(text: &str) -> Progress {
    match &parse(text.as_bytes(), 1 << 16)[..] {
        [Found { event: Ok(Event::Progress(progress)), .. }] => progress.clone(),
        found => panic!("{text}: {found:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Every line of every program has the same meaning after any prefixes, and its own stamp wins.
    #[test]
    fn prefixes_change_nothing(
        line in select(LINES.lines().collect::<Vec<_>>()),
        outer in 0..ENVELOPES.len(),
        inner in prop::option::of(0..ENVELOPES.len()),
        blanks in 1..4usize,
        is_coloured: bool,
    ) {
        let plain = progress(&format!("{line}\n"));
        let mut expected = plain.clone();
        let mut text = line.to_owned();
        if is_coloured {
            text = format!("\u{1b}[1;32m{text}\u{1b}[0m");
        }
        let inner = inner.map(|inner| &ENVELOPES[inner]).filter(|inner| !inner.is_outermost);
        for envelope in inner.into_iter().chain([&ENVELOPES[outer]]) {
            text = envelope.around(&text, blanks).trim_end_matches('\n').to_owned();
            if expected.stamp.is_none() && let Some(us) = envelope.us {
                let is_dated = us.abs_diff(DATED) < 1_000_000;
                expected.stamp = Some(assay_lab::logs::Stamp { us, is_dated });
            }
        }
        prop_assert_eq!(progress(&format!("{text}\n")), expected, "{}", text);
    }
}

/// Step lines begin with blanks of their own.
#[test]
fn steps_behind_prefixes() {
    for envelope in &ENVELOPES {
        let text = envelope.around("2016-04-03 11:09:23   - Connect block: 11.96ms [313.16s]", 2);
        let found = parse(text.as_bytes(), 1 << 16);
        assert!(
            matches!(found[..], [Found { event: Ok(Event::Steps(_)), .. }]),
            "{text}: {found:?}"
        );
    }
}

/// Lines that container runtimes split, with interleaved streams.
#[test]
fn parts_of_lines() {
    let text = "2019-01-09T09:07:05Z stdout P 2025-07-16T04:50:47Z UpdateTip: new best=...47e5 height=89\n\
        2019-01-09T09:07:05Z stderr P 2025-07-16T04:50:47Z UpdateTip: new best=...\n\
        2019-01-09T09:07:05Z stdout P 0000 version=0x25e9a000 log2_work=95.523053 tx=1172414692 \n\
        2019-01-09T09:07:05Z stdout F date='2025-03-29T17:29:01Z' progress=0.964378 cache=1578.9MiB(11964898txo)\n\
        2019-01-09T09:07:06Z stderr F 47e5 height=2 version=0x25e9a000 log2_work=95.523053 tx=9 date='2025-03-29T17:29:01Z' progress=0.964378\n";
    for piece in [5, 1 << 16] {
        let found = parse(text.as_bytes(), piece);
        let heights: Vec<_> = found
            .iter()
            .map(|found| match &found.event {
                Ok(Event::Progress(progress)) => {
                    (found.line, progress.height, progress.stamp.map(|stamp| stamp.us))
                }
                other => panic!("{other:?}"),
            })
            .collect();
        let stamp = Some(1_752_641_447_000_000);
        assert_eq!(heights, [(4, 890_000, stamp), (5, 2, stamp)]);
    }
    let cut = &text[..text.find("2019-01-09T09:07:05Z stderr").expect("a part")];
    assert_eq!(parse(cut.as_bytes(), 64)[0].event, Err(Fault::Cut));
}

/// Fields of other programs, such as `bits` of Bitcoin Unlimited, are skipped.
#[test]
fn unknown_fields() {
    let line = "2018-11-24 13:00:00 UpdateTip: new best=000000000000000000017f1e5cf4c2f3a0a32d7b1c3ca4a4c2a7b8a6d2a947e5  \
                height=557957 bits=402792411 log2_work=87.754571  tx=267614397  date=2018-11-24 12:59:01 \
                progress=1.000000 note='a b' more=\"c d\" cache=25.5MiB(7394tx) last=";
    let progress = progress(&format!("{line}\n"));
    assert_eq!((progress.format, progress.height), (Format::Core0_11, 557_957));
    assert_eq!((progress.txs, progress.cache_coins), (Txs::Total(267_614_397), Some(7394)));
}

/// A tip after an unknown prefix is parsed, and its missing time is reported with the line.
#[test]
fn unknown_prefixes_are_reported() {
    let tip = LINES.lines().nth(2).expect("a tip without a stamp");
    let found = parse(format!("{tip}\n>>> {tip}\n").as_bytes(), 1 << 16);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[..2].iter().all(|found| found.event.is_ok() && found.excerpt.is_empty()));
    assert_eq!(
        (found[2].line, &found[2].event),
        (2, &Err(Fault::Prefix { format: "SetBestChain" }))
    );
    assert!(found[2].excerpt.starts_with(">>> SetBestChain: "), "{}", found[2].excerpt);
}
