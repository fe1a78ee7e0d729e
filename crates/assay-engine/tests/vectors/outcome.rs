//! Counts cases and prints the table.

use std::panic::{AssertUnwindSafe, catch_unwind};

pub(crate) struct Outcome {
    file: String,
    cases: usize,
    passed: usize,
    /// Evaluations, counting each combination of flags.
    runs: usize,
    failures: Vec<String>,
    notes: Vec<String>,
}

#[derive(Default)]
pub(crate) struct Case {
    runs: usize,
    wrong: Vec<String>,
}

impl Case {
    /// Counts an evaluation.
    pub(crate) fn run(&mut self) {
        self.runs += 1;
    }

    /// Counts an evaluation and reports it if it is wrong.
    pub(crate) fn check(&mut self, right: bool, what: impl FnOnce() -> String) {
        self.run();
        if !right {
            self.wrong(what());
        }
    }

    /// Reports an error, which fails the case.
    pub(crate) fn wrong(&mut self, what: impl Into<String>) {
        self.wrong.push(what.into());
    }
}

impl Outcome {
    fn new(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            cases: 0,
            passed: 0,
            runs: 0,
            failures: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Runs one case. A panic fails this case and no other.
    pub(crate) fn case(&mut self, name: &str, run: impl FnOnce(&mut Case)) {
        let mut case = Case::default();
        if catch_unwind(AssertUnwindSafe(|| run(&mut case))).is_err() {
            case.wrong("panicked");
        }
        self.count(name, case);
    }

    /// Runs a case per item on all cores; `name` returns the identifier of an item.
    pub(crate) fn cases_in_parallel<T: Sync>(
        &mut self,
        items: &[T],
        name: impl Fn(&T) -> String,
        run: impl Fn(&T, &mut Case) + Sync,
    ) {
        use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
        let done: Vec<Case> = items
            .par_iter()
            .map(|item| {
                let mut case = Case::default();
                if catch_unwind(AssertUnwindSafe(|| run(item, &mut case))).is_err() {
                    case.wrong("panicked");
                }
                case
            })
            .collect();
        for (item, case) in items.iter().zip(done) {
            self.count(&name(item), case);
        }
    }

    fn count(&mut self, name: &str, case: Case) {
        self.cases += 1;
        self.runs += case.runs;
        self.passed += usize::from(case.wrong.is_empty());
        let short: String = name.chars().take(200).collect();
        self.failures.extend(case.wrong.into_iter().map(|what| format!("{what}: {short}")));
    }

    /// Adds a line below the table.
    pub(crate) fn note(&mut self, note: String) {
        self.notes.push(note);
    }
}

/// All files so far. Prints each line as soon as it is complete.
pub(crate) struct Report {
    filters: Vec<String>,
    rows: usize,
    failures: Vec<String>,
    notes: Vec<String>,
    absent: Vec<String>,
}

impl Report {
    /// A report on the files whose names contain one of `filters`, or on all if there is none.
    pub(crate) fn new(filters: Vec<String>) -> Self {
        Self { filters, rows: 0, failures: Vec::new(), notes: Vec::new(), absent: Vec::new() }
    }

    /// Runs the cases of one file, or reports the file as absent.
    pub(crate) fn file<D>(
        &mut self,
        file: &str,
        data: impl FnOnce() -> Option<D>,
        run: impl FnOnce(&D, &mut Outcome),
    ) {
        if !self.filters.is_empty() && !self.filters.iter().any(|text| file.contains(text)) {
            return;
        }
        if self.rows == 0 {
            println!("{:<44}{:>7}{:>8}{:>9}", "file", "cases", "passed", "runs");
        }
        self.rows += 1;
        let Some(data) = data() else {
            println!("{file:<44}{:>15}", "absent");
            self.absent.push(file.to_owned());
            return;
        };
        let mut outcome = Outcome::new(file);
        if catch_unwind(AssertUnwindSafe(|| run(&data, &mut outcome))).is_err() {
            outcome.failures.push("the file cannot be run".into());
        }
        if outcome.cases == 0 {
            outcome.failures.push("the file holds no case".into());
        }
        let Outcome { file, cases, passed, runs, failures, notes } = outcome;
        println!("{file:<44}{cases:>7}{passed:>8}{runs:>9}");
        self.failures.extend(failures.into_iter().map(|failure| format!("{file}: {failure}")));
        self.notes.extend(notes.into_iter().map(|note| format!("{file}: {note}")));
    }

    /// Prints notes and failures; returns true if there were no failures.
    pub(crate) fn finish(self) -> bool {
        for note in &self.notes {
            println!("{note}");
        }
        for file in &self.absent {
            println!("skipped: {file} is absent");
        }
        for failure in &self.failures {
            println!("FAILED {failure}");
        }
        if self.rows > 0 {
            println!("{} failures", self.failures.len());
        }
        self.failures.is_empty()
    }
}

/// Runs the cases of a JSON file.
pub(crate) type Run = fn(&serde_json::Value, &mut Outcome);
