//! Dependencies between tasks, as places in a plan: `needs[t]` are the tasks that `t` depends on.

/// An edge: the first depends on the second.
type Edge = (usize, usize);

/// Drops the edges that close a cycle and returns them in plan order (strategies.md §5.2).
///
/// All edges to earlier tasks stay; of those to later tasks, in plan order, each that closes no cycle
/// with what is there so far. So the plan's own order is preferred, and only edges of cycles go.
pub(super) fn break_cycles(needs: &mut [Vec<usize>]) -> Vec<Edge> {
    if order(needs).len() == needs.len() {
        return Vec::new();
    }
    let mut kept = Kept::new(needs);
    let mut dropped = Vec::new();
    for (task, needed) in needs.iter_mut().enumerate() {
        needed.retain(|&other| {
            let keep = other < task || !kept.reaches(other, task);
            if !keep {
                dropped.push((task, other));
            } else if other > task {
                kept.add((task, other));
            }
            keep
        });
    }
    dropped
}

/// Whether each task depends on every one before it in some order, at least indirectly.
pub(super) fn is_chain(needs: &[Vec<usize>]) -> bool {
    order(needs).windows(2).all(|pair| needs[pair[1]].contains(&pair[0]))
}

/// The tasks in an order in which each follows what it needs; those in or behind cycles are missing.
fn order(needs: &[Vec<usize>]) -> Vec<usize> {
    let mut missing: Vec<usize> = needs.iter().map(Vec::len).collect();
    let needed_by = reversed(needs.iter().map(Vec::as_slice));
    let mut order: Vec<usize> = (0..needs.len()).filter(|&task| missing[task] == 0).collect();
    let mut next = 0;
    while let Some(&task) = order.get(next) {
        for &other in &needed_by[task] {
            missing[other] -= 1;
            if missing[other] == 0 {
                order.push(other);
            }
        }
        next += 1;
    }
    order
}

fn reversed<'a>(needs: impl ExactSizeIterator<Item = &'a [usize]>) -> Vec<Vec<usize>> {
    let mut needed_by = vec![Vec::new(); needs.len()];
    for (task, needed) in needs.enumerate() {
        for &other in needed {
            needed_by[other].push(task);
        }
    }
    needed_by
}

/// The edges kept so far, without a cycle.
struct Kept {
    needs: Vec<Vec<usize>>,
    needed_by: Vec<Vec<usize>>,
    down: Search,
    up: Search,
}

impl Kept {
    /// The edges to earlier tasks.
    fn new(needs: &[Vec<usize>]) -> Kept {
        let earlier = |(task, needed): (usize, &Vec<usize>)| {
            needed.iter().copied().filter(|&other| other < task).collect()
        };
        let needs: Vec<Vec<usize>> = needs.iter().enumerate().map(earlier).collect();
        let needed_by = reversed(needs.iter().map(Vec::as_slice));
        let (down, up) = (Search::new(needs.len()), Search::new(needs.len()));
        Kept { needs, needed_by, down, up }
    }

    fn add(&mut self, (task, other): Edge) {
        self.needs[task].push(other);
        self.needed_by[other].push(task);
    }

    /// Whether `from` depends on `to`. Searches from both ends and goes on where less was done, so that
    /// it costs no more than twice the cheaper side.
    fn reaches(&mut self, from: usize, to: usize) -> bool {
        self.down.start(from);
        self.up.start(to);
        loop {
            let (here, there, edges) = if self.down.work <= self.up.work {
                (&mut self.down, &self.up, &self.needs)
            } else {
                (&mut self.up, &self.down, &self.needed_by)
            };
            let Some(task) = here.open.pop() else {
                return false;
            };
            here.work += 1 + edges[task].len();
            for &next in &edges[task] {
                if there.has_seen(next) {
                    return true;
                }
                here.visit(next);
            }
        }
    }
}

/// One side of a search.
struct Search {
    /// In which search a task was seen last.
    seen: Vec<usize>,
    number: usize,
    open: Vec<usize>,
    work: usize,
}

impl Search {
    fn new(tasks: usize) -> Search {
        Search { seen: vec![0; tasks], number: 0, open: Vec::new(), work: 0 }
    }

    fn start(&mut self, task: usize) {
        self.number += 1;
        self.work = 0;
        self.open.clear();
        self.visit(task);
    }

    fn visit(&mut self, task: usize) {
        if !self.has_seen(task) {
            self.seen[task] = self.number;
            self.open.push(task);
        }
    }

    fn has_seen(&self, task: usize) -> bool {
        self.seen[task] == self.number
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    #[test]
    fn only_edges_to_later_tasks_go_and_only_if_they_close_a_cycle() {
        let mut needs = vec![vec![2], vec![0], vec![1], vec![4], vec![]];
        assert_eq!(break_cycles(&mut needs), [(0, 2)]);
        assert_eq!(needs, [vec![], vec![0], vec![1], vec![4], vec![]]);
    }

    #[test]
    fn an_earlier_edge_ahead_is_kept_and_a_later_one_goes() {
        let mut needs = vec![vec![1], vec![2], vec![0]];
        assert_eq!(break_cycles(&mut needs), [(1, 2)]);
    }

    #[test]
    fn diamonds_are_no_cycles_in_any_order() {
        let mut needs = vec![vec![1, 2], vec![3], vec![3], vec![]];
        assert_eq!(break_cycles(&mut needs), []);
        assert_eq!(order(&needs), [3, 1, 2, 0]);
    }

    #[test]
    fn a_chain_leaves_no_choice_of_order() {
        assert!(is_chain(&[vec![2], vec![0, 2], vec![]]));
        assert!(is_chain(&[vec![]]) && is_chain(&[]));
        assert!(!is_chain(&[vec![], vec![]]));
        assert!(!is_chain(&[vec![], vec![0], vec![0], vec![1, 2]]));
    }

    #[test]
    fn great_rings_and_dense_plans_are_mended_at_once() {
        let ring = 50_000;
        let mut needs: Vec<Vec<usize>> = (0..ring).map(|task| vec![(task + 1) % ring]).collect();
        assert_eq!(break_cycles(&mut needs), [(ring - 2, ring - 1)]);

        let mut needs: Vec<Vec<usize>> = (0..20_000)
            .map(|t: usize| {
                [t.wrapping_sub(1), t + 1].into_iter().filter(|&n| n < 20_000).collect()
            })
            .collect();
        assert_eq!(break_cycles(&mut needs).len(), 19_999);

        let dense = 1_000;
        let some = |task: usize| {
            (1..=100).map(|n| (task * 31 + n * n * 17) % dense).filter(|&n| n != task).collect()
        };
        let mut needs: Vec<Vec<usize>> = (0..dense).map(some).collect();
        assert!(!break_cycles(&mut needs).is_empty());
        assert_eq!(order(&needs).len(), dense);
    }

    /// Whether `from` depends on `to`, the simple way.
    fn depends(needs: &[Vec<usize>], from: usize, to: usize) -> bool {
        let (mut open, mut seen) = (vec![from], vec![false; needs.len()]);
        while let Some(task) = open.pop() {
            if task == to {
                return true;
            }
            if !std::mem::replace(&mut seen[task], true) {
                open.extend(&needs[task]);
            }
        }
        false
    }

    proptest! {
        #[test]
        fn the_rule_is_kept_to_the_letter(edges in vec((0usize..9, 0usize..9), 0..40)) {
            let mut needs = vec![Vec::new(); 9];
            for (task, other) in edges {
                if task != other && !needs[task].contains(&other) {
                    needs[task].push(other);
                }
            }
            let mut kept: Vec<Vec<usize>> = needs.iter().enumerate()
                .map(|(task, needed)| needed.iter().copied().filter(|&n| n < task).collect())
                .collect();
            let mut wanted = Vec::new();
            for (task, needed) in needs.iter().enumerate() {
                for &other in needed.iter().filter(|&&other| other > task) {
                    if depends(&kept, other, task) {
                        wanted.push((task, other));
                    } else {
                        kept[task].push(other);
                    }
                }
            }
            prop_assert_eq!(break_cycles(&mut needs), wanted);
            prop_assert_eq!(order(&needs).len(), 9);
        }

        #[test]
        fn a_plan_is_a_chain_if_every_two_tasks_depend(edges in vec((0usize..5, 0usize..5), 0..14)) {
            let mut needs = vec![Vec::new(); 5];
            for (task, other) in edges.into_iter().filter(|(task, other)| other < task) {
                needs[task].push(other);
            }
            let mut pairs = (0..5).flat_map(|a| (0..a).map(move |b| (a, b)));
            let all = pairs.all(|(a, b)| depends(&needs, a, b) || depends(&needs, b, a));
            prop_assert_eq!(is_chain(&needs), all);
        }
    }
}
