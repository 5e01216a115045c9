import type { Box, Direction } from '../fold/layout';

interface Point {
  x: number;
  y: number;
}

/** A line between two boxes: its path, an arrow head for either end, and where its label stands. */
export interface Line {
  path: string;
  head: string;
  tail: string;
  middle: Point;
}

type Side = 'left' | 'right' | 'top' | 'bottom';

const OUT: Record<Side, Point> = { left: { x: -1, y: 0 }, right: { x: 1, y: 0 }, top: { x: 0, y: -1 }, bottom: { x: 0, y: 1 } };
const HEAD = 6;

function at({ x, y, width, height }: Box, side: Side): Point {
  switch (side) {
    case 'left':
      return { x, y: y + height / 2 };
    case 'right':
      return { x: x + width, y: y + height / 2 };
    case 'top':
      return { x: x + width / 2, y };
    case 'bottom':
      return { x: x + width / 2, y: y + height };
  }
}

/** Runs straight from one box to another that stands with it around a table. */
export function straight(from: Box, to: Box): Line {
  const one = rim(from, to);
  const other = rim(to, from);
  const length = Math.hypot(other.x - one.x, other.y - one.y) || 1;
  const way = { x: (other.x - one.x) / length, y: (other.y - one.y) / length };
  const path = `M${one.x},${one.y} L${other.x},${other.y}`;
  // A third of the way: where lines cross in the middle, labels would lie on each other.
  const middle = { x: one.x + (other.x - one.x) * 0.36, y: one.y + (other.y - one.y) * 0.36 };
  return { path, head: head(other, { x: -way.x, y: -way.y }), tail: head(one, way), middle };
}

/** Where the line between the centres of two boxes leaves the first one. */
function rim(box: Box, other: Box): Point {
  const centre = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  const [dx, dy] = [other.x + other.width / 2 - centre.x, other.y + other.height / 2 - centre.y];
  const reach = Math.min(box.width / 2 / Math.abs(dx || 1e-9), box.height / 2 / Math.abs(dy || 1e-9));
  return { x: centre.x + dx * reach, y: centre.y + dy * reach };
}

/** Runs ahead from side to facing side; what leads back, or past others, runs around. */
export function lineOf(from: Box, to: Box, back: boolean, direction: Direction): Line {
  const [start, end, bend] = sides(from, to, back, direction);
  const one = at(from, start);
  const other = at(to, end);
  const distance = Math.hypot(other.x - one.x, other.y - one.y);
  const reach = bend ?? Math.max(24, distance * 0.4);
  const first = { x: one.x + OUT[start].x * reach, y: one.y + OUT[start].y * reach };
  const second = { x: other.x + OUT[end].x * reach, y: other.y + OUT[end].y * reach };
  const middle = {
    x: (one.x + 3 * first.x + 3 * second.x + other.x) / 8,
    y: (one.y + 3 * first.y + 3 * second.y + other.y) / 8,
  };
  const path = `M${one.x},${one.y} C${first.x},${first.y} ${second.x},${second.y} ${other.x},${other.y}`;
  return { path, head: head(other, OUT[end]), tail: head(one, OUT[start]), middle };
}

function sides(from: Box, to: Box, back: boolean, direction: Direction): [Side, Side, number | null] {
  const centre = (box: Box): Point => ({ x: box.x + box.width / 2, y: box.y + box.height / 2 });
  const [one, other] = [centre(from), centre(to)];
  const isAcross = direction === 'LR';
  const along = isAcross ? other.x - one.x : other.y - one.y;
  const across = isAcross ? other.y - one.y : other.x - one.x;
  const gap = isAcross ? (from.width + to.width) / 2 : (from.height + to.height) / 2;
  if (!back && along > gap) return isAcross ? ['right', 'left', null] : ['bottom', 'top', null];
  const around = Math.min(90, 34 + Math.abs(along) * 0.12);
  if (Math.abs(along) < gap) {
    const beside = isAcross ? (from.height + to.height) / 2 : (from.width + to.width) / 2;
    const isNext = Math.abs(across) - beside < 60;
    if (isNext && isAcross) return across > 0 ? ['bottom', 'top', 12] : ['top', 'bottom', 12];
    if (isNext) return across > 0 ? ['right', 'left', 12] : ['left', 'right', 12];
    return isAcross ? ['right', 'right', 28 + Math.abs(across) * 0.12] : ['bottom', 'bottom', 28 + Math.abs(across) * 0.12];
  }
  return isAcross ? ['bottom', 'bottom', around] : ['right', 'right', around];
}

/** A triangle whose point is at `tip`, coming in from `out`. */
function head(tip: Point, out: Point): string {
  const base = { x: tip.x + out.x * HEAD, y: tip.y + out.y * HEAD };
  const side = { x: -out.y * HEAD * 0.6, y: out.x * HEAD * 0.6 };
  return `M${tip.x},${tip.y} L${base.x + side.x},${base.y + side.y} L${base.x - side.x},${base.y - side.y} Z`;
}
