//! Thread pools: number of workloads in which each is clearly slower than another.

use assay_bench::harness::Row;
use assay_bench::suite::Study;

use super::ranking::table;
use super::subjects::figures_of;

/// `None` with fewer than two pools. `names` are the subjects in the order of the report.
pub(super) fn losses(names: &[&str], rows: &[&Row]) -> Option<Study> {
    let takes_part = |name: &&str| rows.iter().any(|row| figures_of(row, name).is_some());
    let pools: Vec<&str> = names.iter().copied().filter(takes_part).collect();
    if pools.len() < 2 {
        return None;
    }
    let mut lines: Vec<(usize, Vec<String>)> =
        pools.iter().map(|pool| line(pool, &pools, rows)).collect();
    lines.sort_by_key(|(losses, _)| *losses);
    let head = ["pool", "slower where, and than which", "slower in", "fastest in", "cannot run"];
    let prose = "A pool is slower in a workload if the interval of its time over another's lies above 1, for any of the others; \
                 it is the fastest if every other is slower than it. A pool without forks cannot run workloads that fork. \
                 `sequential` is one thread and no pool: what is slower than it was not worth distributing."
        .to_owned();
    Some(Study {
        id: "pairing-pools".to_owned(),
        title: "Thread pools: who is slower how often".to_owned(),
        prose: vec![prose],
        tables: vec![table(
            format!("{} workloads, each pool against all others", rows.len()),
            &head,
            2,
            lines.into_iter().map(|(_, cells)| cells).collect(),
        )],
        ..Study::default()
    })
}

/// Number of workloads in which the pool is slower than another, and the cells of its line.
fn line(pool: &str, pools: &[&str], rows: &[&Row]) -> (usize, Vec<String>) {
    let is_slower = |row: &Row, one: &str, other: &str| {
        let [above, below] = [one, other].map(|name| figures_of(row, name));
        above
            .zip(below)
            .and_then(|(above, below)| row.ratio(&above.name, &below.name))
            .is_some_and(|ratio| ratio.low > 1.0)
    };
    let (mut fastest, mut absent, mut lost) = (0, 0, Vec::new());
    for row in rows {
        let others =
            || pools.iter().filter(|other| **other != pool && figures_of(row, other).is_some());
        if figures_of(row, pool).is_none() {
            absent += 1;
            continue;
        }
        let winners: Vec<&str> =
            others().copied().filter(|other| is_slower(row, pool, other)).collect();
        if !winners.is_empty() {
            let workload = row.name.rsplit('/').next().unwrap_or(&row.name);
            lost.push(format!("{workload} ({})", winners.join(", ")));
        }
        fastest += usize::from(others().all(|other| is_slower(row, other, pool)));
    }
    let count = |number: usize| number.to_string();
    let cells =
        vec![pool.to_owned(), lost.join("; "), count(lost.len()), count(fastest), count(absent)];
    (lost.len(), cells)
}

#[cfg(test)]
mod tests {
    use super::super::ranking::tests::row;
    use super::*;

    #[test]
    fn a_loss_names_the_faster_pool() {
        let rows = [
            row("pool/heat", &[("a", 100), ("b", 200), ("c", 150)]),
            row("pool/dfs", &[("a", 100), ("b", 50)]),
        ];
        let rows: Vec<&Row> = rows.iter().collect();
        let study = losses(&["x", "b", "a", "c"], &rows).expect("three pools");
        let lines: Vec<Vec<&str>> = study.tables[0]
            .rows
            .iter()
            .map(|line| line.iter().map(String::as_str).collect())
            .collect();
        assert_eq!(
            lines,
            [
                ["b", "heat (a, c)", "1", "1", "0"],
                ["a", "dfs (b)", "1", "1", "0"],
                ["c", "heat (a)", "1", "0", "1"],
            ]
        );
        assert!(losses(&["a"], &rows).is_none(), "one alone");
    }
}
