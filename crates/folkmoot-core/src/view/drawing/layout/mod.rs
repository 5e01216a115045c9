//! Where the nodes of a drawing stand, and how its links run: in layers from top to bottom.
//!
//! 1. [`rank`]: links that close circles are turned round; a node stands below all that lead to it.
//! 2. Each link passes every layer on its way through a slot of its own; one of them holds its label.
//!    So nothing is ever drawn over a node or a label.
//! 3. [`order`]: within the layers slots are put so that few links cross.
//! 4. [`place`]: each slot comes as near to its neighbours in the other layers as the order allows.
//!
//! All numbers are whole, so the same drawing has the same layout everywhere.

mod order;
mod place;
mod rank;

/// How many slots links may have on their way, all together; longer links than that allows run straight.
const SLOTS: usize = 100_000;

/// What is left free between layers, and beside a slot.
const BETWEEN: i64 = 18;
const BESIDE: i64 = 24;

/// How far a link that leads back to its own node stands out.
const SELF: i64 = 28;

/// How much room something takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) width: i64,
    pub(super) height: i64,
}

/// A link to be laid out: its nodes, and the room for its label.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) label: Size,
}

/// A place, by its middle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) x: i64,
    pub(super) y: i64,
}

/// How a link runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route {
    /// From its first node to its second.
    pub(super) points: Vec<Point>,
    /// The middle of its label.
    pub(super) label: Point,
    /// Whether it leads from a node to itself, beside it.
    pub(super) is_own: bool,
}

/// Where everything stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) size: Size,
    /// The middles of the nodes.
    pub(super) nodes: Vec<Point>,
    pub(super) routes: Vec<Route>,
}

/// What stands in a layer: a node, or a link on its way.
#[derive(Clone, Debug)]
struct Slot {
    layer: usize,
    /// How far it reaches from its middle.
    left: i64,
    right: i64,
    height: i64,
    is_node: bool,
    /// Its neighbours in the layer above and in the one below.
    above: Vec<usize>,
    below: Vec<usize>,
}

/// Lays nodes and links out.
pub(super) fn layout(nodes: &[Size], edges: &[Edge]) -> Layout {
    let mut board = Board::of(nodes, edges);
    order::order(&mut board.layers, &board.slots);
    let xs = place::place(&board.layers, &board.slots);
    let ys = board.heights();
    let points: Vec<Point> =
        board.slots.iter().zip(&xs).map(|(slot, x)| Point { x: *x, y: ys[slot.layer] }).collect();
    let routes = board.routes(nodes, edges, &points);
    let right = board.slots.iter().zip(&points).map(|(slot, at)| at.x + slot.right).max();
    let last = board.layers.len().saturating_sub(1);
    let bottom = ys.last().map(|y| y + board.height_of(last) / 2);
    Layout {
        size: Size { width: right.unwrap_or_default(), height: bottom.unwrap_or_default() },
        nodes: points[..nodes.len()].to_vec(),
        routes,
    }
}

/// All slots in their layers. The first are the nodes, by their numbers.
struct Board {
    slots: Vec<Slot>,
    layers: Vec<Vec<usize>>,
    /// By edge: its slots from top to bottom, its nodes included, and whether that is against its way.
    chains: Vec<(Vec<usize>, bool)>,
}

impl Board {
    fn of(nodes: &[Size], edges: &[Edge]) -> Board {
        let rank::Ranks { ranks, turned } = rank::rank(nodes.len(), edges);
        // Between two layers of nodes there is one for labels.
        let mut slots: Vec<Slot> =
            nodes.iter().zip(&ranks).map(|(size, rank)| Slot::new(*size, 2 * rank, true)).collect();
        for edge in edges.iter().filter(|edge| edge.from == edge.to) {
            let slot = &mut slots[edge.from];
            slot.right += SELF + edge.label.width;
            slot.height = slot.height.max(edge.label.height);
        }
        let longest = (SLOTS / edges.len().max(1)).max(4);
        let mut chains = Vec::with_capacity(edges.len());
        for (edge, is_turned) in edges.iter().zip(turned) {
            let (from, to) = if is_turned { (edge.to, edge.from) } else { (edge.from, edge.to) };
            let way = slots[from].layer + 1..slots[to].layer.max(slots[from].layer + 1);
            let mut chain = vec![from];
            if edge.from != edge.to {
                let most = if way.len() > longest { 1 } else { way.len() };
                for layer in way.take(most) {
                    let size = if chain.len() == 1 { edge.label } else { Size::default() };
                    slots.push(Slot::new(size, layer, false));
                    chain.push(slots.len() - 1);
                }
            }
            chain.push(to);
            for pair in chain.windows(2) {
                let (above, below) = (pair[0], pair[1]);
                if slots[above].layer + 1 == slots[below].layer {
                    slots[above].below.push(below);
                    slots[below].above.push(above);
                }
            }
            chains.push((chain, is_turned));
        }
        let count = slots.iter().map(|slot| slot.layer + 1).max().unwrap_or_default();
        let mut layers = vec![Vec::new(); count];
        slots.iter().enumerate().for_each(|(at, slot)| layers[slot.layer].push(at));
        Board { slots, layers, chains }
    }

    fn height_of(&self, layer: usize) -> i64 {
        self.layers[layer].iter().map(|slot| self.slots[*slot].height).max().unwrap_or_default()
    }

    /// The middles of the layers.
    fn heights(&self) -> Vec<i64> {
        let mut top = 0;
        let middle = |layer| {
            let height = self.height_of(layer);
            let middle = top + height / 2;
            top += height + BETWEEN;
            middle
        };
        (0..self.layers.len()).map(middle).collect()
    }

    /// How the links run: from the lower side of a node to the upper side of another, spread over them in
    /// the order in which they go on.
    fn routes(&self, nodes: &[Size], edges: &[Edge], points: &[Point]) -> Vec<Route> {
        let mut ends = vec![(Point::default(), Point::default()); edges.len()];
        let mut lower: Vec<Vec<(i64, usize)>> = vec![Vec::new(); nodes.len()];
        let mut upper = lower.clone();
        for (at, (chain, _)) in self.chains.iter().enumerate() {
            let (first, last) = (chain[0], chain[chain.len() - 1]);
            if first != last {
                lower[first].push((points[chain[1]].x, at));
                upper[last].push((points[chain[chain.len() - 2]].x, at));
            }
        }
        for node in 0..nodes.len() {
            let (at, half) = (points[node], nodes[node].height / 2);
            for (edge, x) in ports(at.x, nodes[node].width, &mut lower[node]) {
                ends[edge].0 = Point { x, y: at.y + half };
            }
            for (edge, x) in ports(at.x, nodes[node].width, &mut upper[node]) {
                ends[edge].1 = Point { x, y: at.y - half };
            }
        }
        let route = |(at, (chain, is_turned)): (usize, &(Vec<usize>, bool))| {
            if edges[at].from == edges[at].to {
                return own(points[chain[0]], nodes[chain[0]], edges[at].label);
            }
            let inner = &chain[1..chain.len() - 1];
            let label = points[inner[0]];
            // A short link without a label needs no detour.
            let is_short = inner.len() == 1 && edges[at].label == Size::default();
            let inner = inner.iter().filter(|_| !is_short).map(|slot| points[*slot]);
            let mut way: Vec<Point> =
                [ends[at].0].into_iter().chain(inner).chain([ends[at].1]).collect();
            if *is_turned {
                way.reverse();
            }
            Route { points: way, label, is_own: false }
        };
        self.chains.iter().enumerate().map(route).collect()
    }
}

impl Slot {
    fn new(size: Size, layer: usize, is_node: bool) -> Slot {
        let half = size.width / 2;
        Slot {
            layer,
            left: half,
            right: size.width - half,
            height: size.height,
            is_node,
            above: Vec::new(),
            below: Vec::new(),
        }
    }
}

/// A count as the coordinates are written.
pub(super) fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::from(i32::MAX))
}

/// Where links leave one side of a node that is `width` wide.
fn ports(
    middle: i64,
    width: i64,
    links: &mut [(i64, usize)],
) -> impl Iterator<Item = (usize, i64)> {
    links.sort_unstable();
    let parts = whole(links.len()) + 1;
    (1..).zip(links).map(move |(nth, (_, edge))| (*edge, middle - width / 2 + width * nth / parts))
}

/// A link from a node to itself, on its right.
fn own(at: Point, size: Size, label: Size) -> Route {
    let (x, quarter) = (at.x + size.width / 2, size.height / 4);
    let points = vec![
        Point { x, y: at.y - quarter },
        Point { x: x + SELF, y: at.y },
        Point { x, y: at.y + quarter },
    ];
    let label = Point { x: x + SELF + label.width / 2, y: at.y };
    Route { points, label, is_own: true }
}
