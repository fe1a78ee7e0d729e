//! Studies of the measurements: gain of assembly, code for carries, and all counts.

use assay_bench::harness::Row;
use assay_bench::suite::{Study, StudyChart};
use assay_report::number::three_digits;

use super::build::Build;
use super::discover::{Compiler, Family};
use super::kernel::{KERNELS, Kernel, Style};
use super::tables::{self, Timed, fastest};
use super::{Missing, Programs, benchmark_name, published};
use crate::pairing::{interval, table};

pub(super) fn all(programs: &Programs, rows: &[Row]) -> Vec<Study> {
    let mut studies = vec![first(programs, rows)];
    studies.extend(published::study(programs, rows));
    studies.push(times(programs, rows));
    studies.push(code(programs));
    studies.push(participants(programs));
    studies
}

fn kernel(name: &str) -> Kernel {
    KERNELS.into_iter().find(|kernel| kernel.name == name).unwrap_or(KERNELS[0])
}

/// Row of a kernel; that of latencies, if measured.
fn row_of(rows: &[Row], kernel: Kernel) -> Option<&Row> {
    let latency = benchmark_name(kernel, "latency");
    rows.iter()
        .find(|row| row.name == latency)
        .or_else(|| rows.iter().find(|row| tables::is_of(row, kernel)))
}

/// Main study: chart, summary, table of the report's example.
fn first(programs: &Programs, rows: &[Row]) -> Study {
    let level = programs.builds.iter().map(|build| build.flags.level).max().unwrap_or_default();
    let (add256, products) = (kernel("add256"), [kernel("mont-mul-6"), kernel("mont-mul-4")]);
    let mut charts = Vec::new();
    let mut found = vec![tables::carries(programs, row_of(rows, add256), add256)];
    for kernel in products {
        if let Some(row) = row_of(rows, kernel) {
            charts.push(chart(programs, row, kernel, level));
            found.push(tables::by_compiler(programs, row, kernel, level));
        }
    }
    let sentences = [products_lead(programs, rows, products), carries_lead(programs, add256)];
    let lead = sentences.into_iter().flatten().collect::<Vec<_>>().join(" ");
    Study {
        id: "compilers-assembly".to_owned(),
        title: "What assembly buys".to_owned(),
        lead: Some(lead).filter(|lead| !lead.is_empty()),
        charts,
        prose: prose(programs),
        tables: found,
        ..Study::default()
    }
}

fn prose(programs: &Programs) -> Vec<String> {
    let mut prose = vec![
        "Each program is one compiler with one set of flags; all kernels are called through pointers, operands and result lie in memory. \
         Latency is the time of a call whose operand is the result of the call before, throughput that of one of eight such chains; both hold the call."
            .to_owned(),
        "`+mulx` is `-mbmi2 -madx` (rustc: `-C target-feature=+bmi2,+adx`), without it the code runs on any x86-64. Inline assembly is the same text \
         with all flags; that of products uses MULX, ADCX and ADOX."
            .to_owned(),
        "Before timing, every kernel of every program gave what plain Rust gives, on pairs of edge cases and random operands.".to_owned(),
    ];
    if !programs.has_mulx {
        prose.push(
            "Skipped: this processor has no MULX, ADCX and ADOX, so nothing was compiled with `+mulx`, and products in assembly were not run.".to_owned(),
        );
    }
    prose
}

/// Summary of the fastest of each style for six words, or for four if six were not measured.
fn products_lead(programs: &Programs, rows: &[Row], products: [Kernel; 2]) -> Option<String> {
    let (kernel, row) =
        products.into_iter().find_map(|kernel| Some((kernel, row_of(rows, kernel)?)))?;
    let best = |style: Style| fastest(programs, row, kernel, |_, other| other == style);
    let said = |timed: &Timed<'_>| {
        let Build { flags, .. } = timed.build;
        format!(
            "{} ns ({} {})",
            three_digits(timed.figures.ns_per_op),
            programs.compiler(timed.build).label,
            flags.label()
        )
    };
    let (portable, intrinsics) = (best(Style::Portable)?, best(Style::Intrinsics)?);
    let compiled = if portable.figures.ns_per_op < intrinsics.figures.ns_per_op {
        &portable
    } else {
        &intrinsics
    };
    let mut text = format!(
        "A Montgomery multiplication of {} words takes at best {} from portable code and {} from intrinsics",
        kernel.words,
        said(&portable),
        said(&intrinsics)
    );
    if let Some(assembly) = best(Style::Assembly) {
        text = format!("{text}, and {} in assembly", said(&assembly));
        if let Some(ratio) = row.ratio(&compiled.figures.name, &assembly.figures.name) {
            text = format!(
                "{text}: {} times the speed of the fastest compiled code",
                interval(&ratio)
            );
        }
    }
    Some(format!("{text} ({}).", row.name))
}

/// Instructions of the report's example by the newest gcc and clang at the highest level.
fn carries_lead(programs: &Programs, kernel: Kernel) -> Option<String> {
    let count = |family: Family| {
        let is_it = |build: &&Build| programs.compiler(build).family == family && !build.flags.mulx;
        let newest = |build: &&Build| (programs.compiler(build).release.clone(), build.flags.level);
        let build = programs.builds.iter().filter(is_it).max_by_key(newest)?;
        let code = build.routine(kernel, Style::Intrinsics)?.code;
        let how = if code.branches > 0 { " in a loop" } else { "" };
        Some((
            format!("{} {} compiles", programs.compiler(build).label, build.flags.label()),
            format!(
                "{} instructions{how}, {} saved carries",
                code.instructions, code.saved_carries
            ),
        ))
    };
    let (gcc, clang) = (count(Family::Gcc)?, count(Family::Clang)?);
    Some(format!("{} the report's `add256` to {}; {} it to {}.", gcc.0, gcc.1, clang.0, clang.1))
}

/// Time by compiler: portable against intrinsics against assembly.
fn chart(programs: &Programs, row: &Row, kernel: Kernel, level: u8) -> StudyChart {
    let mut bars = Vec::new();
    for (label, style, mulx) in [
        ("portable", Style::Portable, Some(false)),
        ("portable +mulx", Style::Portable, Some(true)),
        ("intrinsics", Style::Intrinsics, Some(false)),
        ("intrinsics +mulx", Style::Intrinsics, Some(true)),
        ("assembly", Style::Assembly, None),
    ] {
        let of = |index: usize| {
            let timed = fastest(programs, row, kernel, |build, other| {
                build.compiler == index
                    && build.flags.level == level
                    && other == style
                    && mulx.is_none_or(|mulx| mulx == build.flags.mulx)
            });
            timed.map(|timed| timed.figures.ns_per_op)
        };
        let values: Vec<Option<f64>> = (0..programs.found.compilers.len()).map(of).collect();
        if values.iter().any(Option::is_some) {
            bars.push((label.to_owned(), values));
        }
    }
    StudyChart {
        title: format!("{}, {}, by compiler at -O{level}", row.name, kernel.title),
        y_label: "ns".to_owned(),
        groups: programs.found.compilers.iter().map(|compiler| compiler.label.clone()).collect(),
        bars,
    }
}

fn times(programs: &Programs, rows: &[Row]) -> Study {
    let mut found = Vec::new();
    for kernel in KERNELS {
        let of_kernel = rows.iter().filter(|row| tables::is_of(row, kernel));
        found.extend(of_kernel.map(|row| tables::times(programs, row, kernel)));
    }
    Study {
        id: "compilers-times".to_owned(),
        title: "Times of all programs".to_owned(),
        tables: found,
        ..Study::default()
    }
}

fn code(programs: &Programs) -> Study {
    Study {
        id: "compilers-code".to_owned(),
        title: "Instructions, code size and stack".to_owned(),
        prose: vec![
            "Counted in the machine code of each linked program: the instructions of a loop once, `nop` and `endbr64` not at all. `carries saved` are \
             `setb`, `setae`, `seto` and `setno`: a flag that goes to a register and back. `stack accesses` are all but pushes and pops."
                .to_owned(),
            "`stack` is the most that the routine uses below its return address: pushes, what is subtracted from `rsp`, and what is used of the red zone \
             beneath. gcc and clang report theirs with `-fstack-usage`, without the red zone (the return address, which gcc counts, is taken off); rustc \
             reports none."
                .to_owned(),
        ],
        tables: KERNELS.map(|kernel| tables::code(programs, kernel)).to_vec(),
        ..Study::default()
    }
}

/// Table of compilers, missing ones, and failures.
fn participants(programs: &Programs) -> Study {
    let found = &programs.found;
    let line = |(index, compiler): (usize, &Compiler)| {
        let made = programs.builds.iter().filter(|build| build.compiler == index).count();
        let mut names = vec![compiler.name.clone()];
        names.extend(compiler.also.clone());
        vec![
            compiler.label.clone(),
            names.join(", "),
            compiler.version.clone(),
            compiler.program.display().to_string(),
            made.to_string(),
        ]
    };
    let mut tables = vec![table(
        "Compilers",
        &["compiler", "in the plan", "version", "path", "programs"],
        4,
        found.compilers.iter().enumerate().map(line).collect(),
    )];
    let absent: Vec<Vec<String>> =
        found.absent.iter().map(|one| vec![one.name.clone(), one.why.clone()]).collect();
    if !absent.is_empty() {
        tables.push(table("Absent", &["compiler", "why, and what to do"], 2, absent));
    }
    let missing = |one: &Missing| {
        vec![
            found.compilers[one.compiler].label.clone(),
            one.flags.label(),
            format!("{:#}", one.why),
        ]
    };
    let failed: Vec<Vec<String>> = programs.missing.iter().map(missing).collect();
    if !failed.is_empty() {
        tables.push(table(
            "Programs that could not be made",
            &["compiler", "flags", "why"],
            3,
            failed,
        ));
    }
    Study {
        id: "compilers-who".to_owned(),
        title: "Compilers".to_owned(),
        prose: vec![
            "A compiler that is there under several names takes part once. `compilers` in the plan takes names on PATH and paths.".to_owned(),
        ],
        tables,
        ..Study::default()
    }
}
