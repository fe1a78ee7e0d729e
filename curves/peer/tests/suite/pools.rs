//! Workloads of thread pools: known answers, the same for all pools; traces of loops.

use assay_peer_pairing::pools::render::{
    COLUMNS, FRACTION, ROWS, STEPS_MAX, draw_row, steps_inside,
};
use assay_peer_pairing::pools::workloads::{call_price, normal};
use assay_peer_pairing::pools::{NAMES, table};
use assay_peer_pairing::table::Work;
use assay_peer_pairing::trace::{Record, SPANS_MAX, Span, Thread, Trace};

fn answer(name: &str, operation: &str) -> Option<Vec<u8>> {
    let (_, table) = table(name).expect("a pool");
    let work = Work {
        curve: "pool".to_owned(),
        operation: operation.to_owned(),
        seed: 7,
        ..Work::default()
    };
    let found = table.find("pool", operation)?;
    Some((found.prepare)(&work).expect("no pool refuses").answer)
}

#[test]
fn known_answers() {
    for name in NAMES {
        for (operation, right) in [("fibonacci", 46_368u64), ("dfs", 117_649), ("nqueens", 352)] {
            if let Some(answer) = answer(name, operation) {
                assert_eq!(answer, right.to_be_bytes(), "{name} {operation}");
            }
        }
    }
    assert!((normal(1.96) - 0.975).abs() < 1e-4);
    // Hull, Options, Futures and Other Derivatives, has 4.76 for other rates; put-call parity holds for ours.
    let (call, parity) = (call_price(100.0, 100.0, 1.0), 100.0 - 100.0 * (-0.02f64).exp());
    assert!(call > parity && call < 100.0, "{call}");
}

#[test]
fn pools_agree() {
    let (_, all) = table("sequential").expect("a pool");
    for operation in &all.0 {
        let right = answer("sequential", &operation.name);
        for name in &NAMES[1..] {
            if let Some(answer) = answer(name, &operation.name) {
                assert_eq!(Some(answer), right, "{name} {}", operation.name);
            }
        }
    }
}

#[test]
fn points_of_the_set_and_around_it() {
    let one = 1 << FRACTION;
    // 0 and -1 have periods of one and two, -2 maps to the fixed point 2, 1 to 1, 2, 5; 2 + 2i escapes at once.
    for (re, im, steps) in
        [(0, 0, STEPS_MAX), (-1, 0, STEPS_MAX), (-2, 0, STEPS_MAX), (1, 0, 3), (2, 2, 1)]
    {
        assert_eq!(steps_inside(re * one, im * one), steps, "{re} {im}");
    }
}

#[test]
fn rows_differ_in_cost() {
    let cost = |number| {
        let mut steps = [0; COLUMNS];
        draw_row(number, ROWS as i64, &mut steps);
        steps.into_iter().map(u64::from).sum::<u64>()
    };
    let costs: Vec<u64> = (0..ROWS as i64).map(cost).collect();
    let least = costs.iter().min().expect("rows");
    let most = costs.iter().max().expect("rows");
    assert!(*most > 100 * least, "{least} to {most}");
    let (upper, lower) = costs.split_at(ROWS / 2);
    assert!(lower.iter().sum::<u64>() > 3 * upper.iter().sum::<u64>(), "equal parts would do");
}

#[test]
fn spans_cover_all_rows_without_overlap_within_a_thread() {
    for name in NAMES {
        let (_, table) = table(name).expect("a pool");
        let work = Work {
            curve: "pool".to_owned(),
            operation: "render".to_owned(),
            size: 64,
            seed: 7,
            ..Work::default()
        };
        let found = table.find("pool", "render").expect("every pool has loops");
        let mut prepared = (found.prepare)(&work).expect("64 rows");
        let trace = prepared.trace.as_mut().expect("it is for traces")();
        assert_eq!(trace.answer, prepared.answer, "{name}");
        let rows: usize = trace.threads.iter().map(|thread| thread.rows).sum();
        assert_eq!(rows, 64, "{name}");
        for thread in &trace.threads {
            assert!(thread.spans.iter().all(|span| span.start_ns <= span.end_ns), "{name}");
            let pairs = || thread.spans.windows(2);
            assert!(pairs().all(|pair| pair[0].end_ns < pair[1].start_ns), "{name}");
            let covered: u64 = thread.spans.iter().map(|span| span.end_ns - span.start_ns).sum();
            assert!(covered >= thread.busy_ns, "{name}: rows outside of spans");
            assert!(thread.spans.last().is_some_and(|span| span.end_ns <= trace.wall_ns));
        }
    }
}

#[test]
fn an_image_too_large_is_an_error() {
    let (_, table) = table("sequential").expect("a pool");
    let work: Work =
        serde_json::from_str(r#"{"curve":"pool","operation":"render","size":1000000,"seed":7}"#)
            .expect("an order");
    let found = table.find("pool", "render").expect("it is there");
    let error = (found.prepare)(&work).err().expect("too many rows").to_string();
    assert!(error.contains("4096"), "{error}");
}

fn record(thread: u32, start_ns: u64, end_ns: u64) -> Record {
    Record { thread, span: Span { start_ns, end_ns } }
}

#[test]
fn rows_of_a_thread_are_merged_across_small_gaps() {
    let records = [
        record(7, 5_000, 6_000),
        record(3, 100, 2_000),
        record(3, 2_100, 3_000),
        record(3, 9_000, 9_500),
    ];
    let trace = Trace::new(10_000, records.into_iter(), Vec::new());
    let span = |start_ns, end_ns| Span { start_ns, end_ns };
    assert_eq!(
        trace.threads,
        [
            Thread { rows: 3, busy_ns: 3_300, spans: vec![span(100, 3_000), span(9_000, 9_500)] },
            Thread { rows: 1, busy_ns: 1_000, spans: vec![span(5_000, 6_000)] },
        ]
    );
}

#[test]
fn spans_are_bounded() {
    // Gaps of 2 to 5 µs: the smallest are merged first.
    let records = (0..1_000u64).map(|row| record(0, row * 10_000, row * 10_000 + 5_000 + row * 3));
    let trace = Trace::new(10_000_000, records, Vec::new());
    let [thread] = &trace.threads[..] else { panic!("{:?}", trace.threads) };
    assert!(thread.spans.len() <= SPANS_MAX, "{}", thread.spans.len());
    assert_eq!(thread.rows, 1_000);
    assert_eq!(thread.busy_ns, 1_000 * 5_000 + 3 * 999 * 1_000 / 2);
    let ends = (thread.spans[0].start_ns, thread.spans.last().map(|span| span.end_ns));
    assert_eq!(ends, (0, Some(9_990_000 + 5_000 + 2_997)));
}
