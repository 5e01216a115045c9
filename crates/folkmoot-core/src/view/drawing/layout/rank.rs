//! Which node stands in which layer.

use super::Edge;

/// The layers of the nodes, and which edges lead upwards.
pub(super) struct Ranks {
    pub(super) ranks: Vec<usize>,
    pub(super) turned: Vec<bool>,
}

/// Puts each node as high as it can stand below all that lead to it.
pub(super) fn rank(nodes: usize, edges: &[Edge]) -> Ranks {
    let mut out = vec![Vec::new(); nodes];
    for (at, edge) in edges.iter().enumerate().filter(|(_, edge)| edge.from != edge.to) {
        out[edge.from].push(at);
    }
    let turned = turned(edges, &out);
    let ends = |at: usize| {
        let Edge { from, to, .. } = edges[at];
        if turned[at] { (to, from) } else { (from, to) }
    };
    let mut down = vec![Vec::new(); nodes];
    let mut above = vec![0_usize; nodes];
    for at in out.into_iter().flatten() {
        let (from, to) = ends(at);
        down[from].push(to);
        above[to] += 1;
    }
    let mut ranks = vec![0; nodes];
    let mut free: Vec<usize> = (0..nodes).filter(|node| above[*node] == 0).collect();
    while let Some(node) = free.pop() {
        for to in &down[node] {
            ranks[*to] = ranks[*to].max(ranks[node] + 1);
            above[*to] -= 1;
            if above[*to] == 0 {
                free.push(*to);
            }
        }
    }
    Ranks { ranks, turned }
}

/// The edges that close circles: walking depth first in the order of the nodes, those that lead to a node
/// on the way. Iterative, as a graph may be a chain of thousands.
fn turned(edges: &[Edge], out: &[Vec<usize>]) -> Vec<bool> {
    let mut turned = vec![false; edges.len()];
    let (mut seen, mut on_way) = (vec![false; out.len()], vec![false; out.len()]);
    for root in 0..out.len() {
        if seen[root] {
            continue;
        }
        let mut way = vec![(root, 0)];
        (seen[root], on_way[root]) = (true, true);
        while let Some((node, next)) = way.last_mut() {
            let Some(&at) = out[*node].get(*next) else {
                on_way[*node] = false;
                way.pop();
                continue;
            };
            *next += 1;
            let to = edges[at].to;
            if on_way[to] {
                turned[at] = true;
            } else if !seen[to] {
                (seen[to], on_way[to]) = (true, true);
                way.push((to, 0));
            }
        }
    }
    turned
}
