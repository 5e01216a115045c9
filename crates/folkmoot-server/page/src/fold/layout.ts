import dagre from '@dagrejs/dagre';
import { ANSWER, BOARD, type Group, PERSON, type Picture, TASK } from './picture';

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export type Direction = 'LR' | 'TB';

export interface Layout {
  direction: Direction;
  places: Map<string, Box>;
}

const AGENT = { width: 176, height: 66 };
const END = { width: 84, height: 34 };
const GAP = { LR: 62, TB: 46, node: 26 };
const FRAME = { margin: 18, head: 20 };

export function isEnd(node: string): boolean {
  return [TASK, ANSWER, PERSON, BOARD].includes(node);
}

/** The layout of the two directions that is larger where there is so much room. */
export function layout(picture: Picture, room: { width: number; height: number }): Layout {
  const scale = ({ places }: Layout): number => {
    const box = around(places, [...places.keys()], 0);
    return box ? Math.min(room.width / box.width, room.height / box.height) : 1;
  };
  const [one, other] = [directed(picture, 'LR'), directed(picture, 'TB')];
  // Where it makes no difference, it is read like a line.
  return Math.min(1, scale(one)) * 1.12 >= Math.min(1, scale(other)) ? one : other;
}

/** Where each node stands: whoever is told something stands behind whoever tells it. */
export function directed({ nodes, groups, links }: Picture, direction: Direction): Layout {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: direction, ranksep: GAP[direction], nodesep: GAP.node, marginx: 0, marginy: 0 });
  graph.setDefaultEdgeLabel(() => ({}));
  const groupOf = new Map(groups.flatMap((group) => group.agents.map((agent) => [agent, group.id] as const)));
  const inner = new Map(groups.map((group) => [group.id, arranged(group, links.find((link) => link.to === ANSWER)?.from, direction)]));
  for (const node of nodes) if (!groupOf.has(node)) graph.setNode(node, isEnd(node) ? { ...END } : { ...AGENT });
  for (const [id, { width, height }] of inner) graph.setNode(id, { width, height });
  const outer = (node: string): string => groupOf.get(node) ?? node;
  const ranked = links
    .filter((link) => !link.back)
    .map((link) => ({ from: outer(link.from), to: outer(link.to), mutual: link.mutual }))
    .filter(({ from, to }) => from !== to && graph.hasNode(from) && graph.hasNode(to));
  // Those who talk to each other stand side by side, unless that alone says where one of them stands.
  const hasPlace = new Set(ranked.filter((link) => !link.mutual).map((link) => link.to));
  for (const { from, to, mutual } of ranked) {
    if (!mutual || !hasPlace.has(from) || !hasPlace.has(to)) graph.setEdge(from, to);
  }
  dagre.layout(graph);
  const places = new Map<string, Box>();
  for (const node of graph.nodes()) {
    const { x, y, width, height } = graph.node(node) as Box;
    const box = { x: x - width / 2, y: y - height / 2, width, height };
    places.set(node, box);
    for (const [agent, within] of inner.get(node)?.places ?? []) {
      places.set(agent, { ...within, x: box.x + within.x, y: box.y + within.y });
    }
  }
  return { direction, places };
}

/** The agents of a group in their frame: around a table if they hear each other, else in rows. */
function arranged({ agents, isRound }: Group, last: string | undefined, direction: Direction): { width: number; height: number; places: Map<string, Box> } {
  const centres = isRound && agents.length <= 6 ? seats(agents, last, direction) : rows(agents);
  const loose = new Map(centres.map(([agent, x, y]) => [agent, { x: x - AGENT.width / 2, y: y - AGENT.height / 2, ...AGENT }]));
  const box = around(loose, agents, FRAME.margin) ?? { x: 0, y: 0, ...AGENT };
  const places = new Map([...loose].map(([agent, own]) => [agent, { ...own, x: own.x - box.x, y: own.y - box.y + FRAME.head }]));
  return { width: box.width, height: box.height + FRAME.head, places };
}

type Centre = [agent: string, x: number, y: number];

/** Seats around a table; whoever speaks last sits next to the answer. */
function seats(agents: string[], last: string | undefined, direction: Direction): Centre[] {
  const radius = agents.length > 4 ? { x: 222, y: 150 } : agents.length === 4 ? { x: 172, y: 110 } : { x: 150, y: 74 };
  const turn = Math.max(0, agents.indexOf(last ?? ''));
  const begin = direction === 'LR' ? 0 : Math.PI / 2;
  return agents.map((agent, at) => {
    const angle = begin + ((at - turn) * 2 * Math.PI) / agents.length;
    return [agent, Math.cos(angle) * radius.x, Math.sin(angle) * radius.y];
  });
}

function rows(agents: string[]): Centre[] {
  const columns = Math.max(1, Math.round(Math.sqrt((agents.length * AGENT.height * 1.5) / AGENT.width)));
  return agents.map((agent, at) => [
    agent,
    (at % columns) * (AGENT.width + GAP.node / 2),
    Math.floor(at / columns) * (AGENT.height + GAP.node / 2),
  ]);
}

/** The smallest box around some nodes. */
export function around(places: Map<string, Box>, nodes: string[], margin: number): Box | null {
  const boxes = nodes.flatMap((node) => places.get(node) ?? []);
  if (boxes.length === 0) return null;
  const left = Math.min(...boxes.map((box) => box.x)) - margin;
  const top = Math.min(...boxes.map((box) => box.y)) - margin;
  const right = Math.max(...boxes.map((box) => box.x + box.width)) + margin;
  const bottom = Math.max(...boxes.map((box) => box.y + box.height)) + margin;
  return { x: left, y: top, width: right - left, height: bottom - top };
}
