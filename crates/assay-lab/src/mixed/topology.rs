//! Draws links and partitions.

use assay_report::stats::random::SplitMix64;

/// Links as pairs of distinct nodes; the first one connects.
///
/// A ring in random order makes the network connected; chords are added until nodes have `degree` links on average.
pub(super) fn draw(nodes: usize, degree: usize, random: &mut SplitMix64) -> Vec<(usize, usize)> {
    // Random chords can leave two neighbours on the ring a link short: then all are drawn again.
    let mut graph = draw_once(nodes, degree, random);
    for _ in 1..TRIES {
        if graph.is_even() {
            break;
        }
        graph = draw_once(nodes, degree, random);
    }
    graph.links
}

fn draw_once(nodes: usize, degree: usize, random: &mut SplitMix64) -> Graph {
    let mut order: Vec<usize> = (0..nodes).collect();
    random.shuffle(&mut order);
    let mut graph = Graph { links: Vec::new(), degrees: vec![0; nodes] };
    for at in 0..nodes {
        graph.add(order[at], order[(at + 1) % nodes], random);
    }
    while graph.links.len() < nodes * degree / 2 {
        // Starts with the fewest links, so that degrees are nearly equal.
        let mut by_degree: Vec<usize> = (0..nodes).collect();
        random.shuffle(&mut by_degree);
        by_degree.sort_by_key(|node| graph.degrees[*node]);
        let mut pairs = (0..nodes).flat_map(|to| (0..to).map(move |from| (from, to)));
        if !pairs.any(|(from, to)| graph.add(by_degree[from], by_degree[to], random)) {
            // The graph is complete.
            break;
        }
    }
    graph
}

struct Graph {
    links: Vec<(usize, usize)>,
    degrees: Vec<usize>,
}

impl Graph {
    /// True if degrees differ by at most one.
    fn is_even(&self) -> bool {
        let (least, most) = (self.degrees.iter().min(), self.degrees.iter().max());
        least.zip(most).is_none_or(|(least, most)| most - least <= 1)
    }

    /// Links two nodes in a random direction, unless they are already linked or equal.
    fn add(&mut self, a: usize, b: usize, random: &mut SplitMix64) -> bool {
        let is_new = a != b && !self.links.iter().any(|link| *link == (a, b) || *link == (b, a));
        if is_new {
            self.links.push(if random.below(2) == 0 { (a, b) } else { (b, a) });
            self.degrees[a] += 1;
            self.degrees[b] += 1;
        }
        is_new
    }
}

/// Side of each node. Both sides have a node.
pub(super) fn part(nodes: usize, random: &mut SplitMix64) -> Vec<bool> {
    let mut order: Vec<usize> = (0..nodes).collect();
    random.shuffle(&mut order);
    let count = 1 + random.below(nodes as u64 / 2) as usize;
    let mut sides = vec![false; nodes];
    order[..count].iter().for_each(|node| sides[*node] = true);
    sides
}

/// Maximum number of draws until degrees are even.
const TRIES: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(nodes: usize, links: &[(usize, usize)]) -> usize {
        let mut seen = vec![false; nodes];
        let mut open = vec![0];
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut seen[node], true) {
                let next = |(a, b): &(usize, usize)| match (*a == node, *b == node) {
                    (true, _) => Some(*b),
                    (_, true) => Some(*a),
                    _ => None,
                };
                open.extend(links.iter().filter_map(next));
            }
        }
        seen.iter().filter(|seen| **seen).count()
    }

    #[test]
    fn graphs_are_connected_and_balanced() {
        for seed in 0..200 {
            let random = &mut SplitMix64::new(seed);
            for nodes in 2..9 {
                let links = draw(nodes, 3, random);
                assert_eq!(reached(nodes, &links), nodes, "seed {seed}: {links:?}");
                let degree =
                    |node: usize| links.iter().filter(|(a, b)| *a == node || *b == node).count();
                let degrees: Vec<usize> = (0..nodes).map(degree).collect();
                let (least, most) = (degrees.iter().min(), degrees.iter().max());
                assert!(most.unwrap() - least.unwrap() <= 1, "seed {seed}: {degrees:?}");
            }
        }
    }

    #[test]
    fn both_sides_have_nodes() {
        let random = &mut SplitMix64::new(3);
        for nodes in 2..9 {
            for _ in 0..100 {
                let sides = part(nodes, random);
                assert!(sides.contains(&true) && sides.contains(&false));
            }
        }
    }
}
