//! Loops in directed graphs, found in time linear in their edges.

/// The loops of the graph in which `next[node]` are the nodes that follow a node: sets of nodes that all
/// lead to one another, in order, each in order (Tarjan's algorithm, iterative).
pub(crate) fn in_graph(next: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let count = next.len();
    let (mut index, mut low) = (vec![usize::MAX; count], vec![0; count]);
    let (mut stack, mut on_stack, mut next_index) = (Vec::new(), vec![false; count], 0);
    let mut found: Vec<Vec<usize>> = Vec::new();
    for root in 0..count {
        if index[root] != usize::MAX {
            continue;
        }
        let mut way = vec![(root, 0)];
        while let Some(&mut (node, ref mut edge)) = way.last_mut() {
            if *edge == 0 {
                (index[node], low[node]) = (next_index, next_index);
                next_index += 1;
                stack.push(node);
                on_stack[node] = true;
            }
            if let Some(&to) = next[node].get(*edge) {
                *edge += 1;
                if index[to] == usize::MAX {
                    way.push((to, 0));
                } else if on_stack[to] {
                    low[node] = low[node].min(index[to]);
                }
                continue;
            }
            way.pop();
            if let Some(&(above, _)) = way.last() {
                low[above] = low[above].min(low[node]);
            }
            if low[node] == index[node] {
                let begin = stack.iter().rposition(|it| *it == node).unwrap_or_default();
                let members = stack.split_off(begin);
                for member in &members {
                    on_stack[*member] = false;
                }
                if members.len() > 1 || next[node].contains(&node) {
                    found.push(members);
                }
            }
        }
    }
    for members in &mut found {
        members.sort_unstable();
    }
    found.sort();
    found
}

/// A shortest way from `node`, which stands in a loop, back to itself: the nodes on it, it first.
pub(crate) fn way_back(next: &[Vec<usize>], node: usize) -> Vec<usize> {
    let mut came_from = vec![None; next.len()];
    let mut reached = vec![node];
    let mut at = 0;
    while let Some(&from) = reached.get(at) {
        at += 1;
        for &to in &next[from] {
            if to == node {
                let mut way = vec![from];
                while let Some(before) = came_from[way[way.len() - 1]] {
                    way.push(before);
                }
                way.reverse();
                return way;
            }
            if came_from[to].is_none() {
                came_from[to] = Some(from);
                reached.push(to);
            }
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_back_to_itself_is_a_loop_and_what_only_leads_to_one_is_none() {
        let next = [vec![1], vec![2, 2], vec![1, 3], vec![3], vec![0], vec![]];
        assert_eq!(in_graph(&next), [vec![1, 2], vec![3]]);
        assert_eq!(way_back(&next, 2), [2, 1]);
        assert_eq!(way_back(&next, 3), [3]);
        assert_eq!(way_back(&next, 0), [0; 0]);
    }
}
