//! Tables of times and of machine code.

use assay_bench::harness::{Figures, Row};
use assay_bench::suite::StudyTable;
use assay_report::number::three_digits;

use super::Programs;
use super::build::{Build, Routine};
use super::kernel::{Kernel, Style};
use crate::pairing::{interval, table};

/// Time of a program for a kernel.
pub(super) struct Timed<'a> {
    pub(super) build: &'a Build,
    pub(super) style: Style,
    pub(super) figures: &'a Figures,
}

/// True if a benchmark is of this kernel.
pub(super) fn is_of(row: &Row, kernel: Kernel) -> bool {
    row.name.split_once('/').is_some_and(|(name, _)| name == kernel.name)
}

pub(super) fn timed<'a>(
    programs: &'a Programs,
    row: &'a Row,
    kernel: Kernel,
) -> impl Iterator<Item = Timed<'a>> {
    programs.runnable(kernel).filter_map(|(build, style)| {
        let figures = row.of(&programs.label(build, style))?;
        Some(Timed { build, style, figures })
    })
}

/// The fastest of the programs that the filter accepts.
pub(super) fn fastest<'a>(
    programs: &'a Programs,
    row: &'a Row,
    kernel: Kernel,
    admits: impl Fn(&Build, Style) -> bool,
) -> Option<Timed<'a>> {
    timed(programs, row, kernel)
        .filter(|timed| admits(timed.build, timed.style))
        .min_by(|a, b| a.figures.ns_per_op.total_cmp(&b.figures.ns_per_op))
}

fn none() -> String {
    "-".to_owned()
}

/// Time of a kernel by compiler at one level: each style, with and without MULX, and the gain of
/// assembly over the fastest of the others.
pub(super) fn by_compiler(programs: &Programs, row: &Row, kernel: Kernel, level: u8) -> StudyTable {
    let head = [
        "compiler",
        "portable",
        "portable +mulx",
        "intrinsics",
        "intrinsics +mulx",
        "assembly",
        "fastest compiled / assembly",
    ];
    let mut rows = Vec::new();
    for (index, compiler) in programs.found.compilers.iter().enumerate() {
        let is_it = |build: &Build| build.compiler == index && build.flags.level == level;
        let of = |style: Style, mulx: Option<bool>| {
            fastest(programs, row, kernel, |build, other| {
                is_it(build) && other == style && mulx.is_none_or(|mulx| mulx == build.flags.mulx)
            })
        };
        let assembly = of(Style::Assembly, None);
        let compiled =
            fastest(programs, row, kernel, |build, style| is_it(build) && style != Style::Assembly);
        if assembly.is_none() && compiled.is_none() {
            continue;
        }
        let ratio = compiled.zip(assembly.as_ref()).and_then(|(compiled, assembly)| {
            row.ratio(&compiled.figures.name, &assembly.figures.name)
        });
        let cell = |timed: Option<&Timed<'_>>| {
            timed.map_or_else(none, |timed| three_digits(timed.figures.ns_per_op))
        };
        rows.push(vec![
            compiler.label.clone(),
            cell(of(Style::Portable, Some(false)).as_ref()),
            cell(of(Style::Portable, Some(true)).as_ref()),
            cell(of(Style::Intrinsics, Some(false)).as_ref()),
            cell(of(Style::Intrinsics, Some(true)).as_ref()),
            cell(assembly.as_ref()),
            ratio.map_or_else(none, |ratio| interval(&ratio)),
        ]);
    }
    table(format!("{}, {}: ns at -O{level}", row.name, kernel.title), &head, 1, rows)
}

/// Time of a kernel in every program.
pub(super) fn times(programs: &Programs, row: &Row, kernel: Kernel) -> StudyTable {
    let head = [&["compiler", "flags"][..], &Style::ALL.map(Style::name)].concat();
    let line = |build: &Build| {
        let mut cells = vec![programs.compiler(build).label.clone(), build.flags.label()];
        cells.extend(Style::ALL.iter().map(|style| {
            let figures = row.of(&programs.label(build, *style));
            figures.map_or_else(none, |figures| {
                format!("{} ±{:.1} %", three_digits(figures.ns_per_op), figures.err_percent)
            })
        }));
        cells
    };
    let caption = format!("{}, {}: ns, with the median absolute deviation", row.name, kernel.title);
    table(caption, &head, 2, programs.builds.iter().map(line).collect())
}

/// Generated code for the report's example, by compiler.
pub(super) fn carries(programs: &Programs, row: Option<&Row>, kernel: Kernel) -> StudyTable {
    let head = [
        "compiler",
        "flags",
        "intrinsics: instructions",
        "carries saved",
        "branches",
        "ns",
        "portable: instructions",
        "carries saved",
        "branches",
        "ns",
        "assembly: instructions",
        "ns",
    ];
    let line = |build: &Build| {
        let mut cells = vec![programs.compiler(build).label.clone(), build.flags.label()];
        for style in [Style::Intrinsics, Style::Portable, Style::Assembly] {
            let code = build.routine(kernel, style).map(|routine| routine.code);
            let count = |count: Option<u64>| count.map_or_else(none, |count| count.to_string());
            cells.push(count(code.map(|code| code.instructions)));
            if style != Style::Assembly {
                cells.push(count(code.map(|code| code.saved_carries)));
                cells.push(count(code.map(|code| code.branches)));
            }
            let figures = row.and_then(|row| row.of(&programs.label(build, style)));
            cells.push(figures.map_or_else(none, |figures| three_digits(figures.ns_per_op)));
        }
        cells
    };
    let rows = programs.builds.iter().filter(|build| !build.flags.mulx).map(line).collect();
    table(
        "The report's `add256`: instructions in the routine (a branch is a loop of 4 rounds), carries that go through a register, and latency",
        &head,
        2,
        rows,
    )
}

/// Instructions, size and stack of a kernel in every program.
pub(super) fn code(programs: &Programs, kernel: Kernel) -> StudyTable {
    let head = [
        "compiler",
        "flags",
        "style",
        "instructions",
        "mulx",
        "mul",
        "adc, sbb",
        "adcx",
        "adox",
        "carries saved",
        "stack accesses",
        "branches",
        "calls",
        "code, bytes",
        "stack, bytes",
        "stack as the compiler reports",
    ];
    let pairs = programs.builds.iter().flat_map(|build| Style::ALL.map(|style| (build, style)));
    let line = |(build, style): (&Build, Style)| {
        let Routine { code, reported_stack } = build.routine(kernel, style)?;
        let mut cells = vec![
            programs.compiler(build).label.clone(),
            build.flags.label(),
            style.name().to_owned(),
        ];
        let counts = [
            code.instructions,
            code.mulx,
            code.mul,
            code.adc,
            code.adcx,
            code.adox,
            code.saved_carries,
            code.stack_accesses,
            code.branches,
            code.calls,
            code.bytes,
            code.stack_bytes,
        ];
        cells.extend(counts.map(|count| count.to_string()));
        cells.push(reported_stack.map_or_else(none, |bytes| bytes.to_string()));
        Some(cells)
    };
    let caption = format!("{}: {}", kernel.name, kernel.title);
    table(caption, &head, 3, pairs.filter_map(line).collect())
}
