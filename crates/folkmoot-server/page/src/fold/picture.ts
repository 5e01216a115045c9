import type { Collaboration, Graph } from '../api/log';
import { loopsOf } from './loops';
import { type Asked, type RunView, waitsForPerson } from './run';
import { partsOf } from './sources';
import { graphsOf, unwrapped } from './waiting';

export const TASK = '\u0000task';
export const ANSWER = '\u0000answer';
export const PERSON = '\u0000person';
export const BOARD = '\u0000board';
const LEAD = 'parent';

export interface Link {
  from: string;
  to: string;
  label: string | null;
  /** Whether it leads back: it is drawn around, and says nothing about who comes first. */
  back: boolean;
  /** Whether the two talk to each other: one line with two ends. */
  mutual: boolean;
  /** How many messages have gone along it. */
  count: number;
  /** Whether a message on it is being worked on. */
  live: boolean;
}

export interface Loop {
  agents: string[];
  round: number;
  cap: number | null;
}

/** Agents that stand in one frame, since whoever tells or hears one of them tells or hears them all. */
export interface Group {
  id: string;
  agents: string[];
  /** Whether they hear each other. */
  isRound: boolean;
  /** Whether one of them is working on what another said. */
  live: boolean;
}

export interface Picture {
  nodes: string[];
  groups: Group[];
  links: Link[];
  loops: Loop[];
}

/** Among more than so many a line for each two is a tangle: the frame stands for them. */
const MOST_LINES = 6;
/** So many that are alike are drawn together. */
const MANY = 7;

/** The collaboration as a picture: who is to hand what to whom, and what has gone along each line so far. */
export function picture(view: RunView): Picture {
  const links = new Map<string, Link>();
  const isLed = view.members.some((member) => member.id === LEAD);
  const round = declare(view, links, isLed);
  for (const [from, to, asked] of [...messages(view, isLed), ...ends(view, links)]) {
    const link = find(links, from, to) ?? put(links, { from, to });
    link.count += 1;
    link.live ||= asked !== null && asked.state === 'open';
  }
  const all = [...links.values()];
  const used = new Set(all.flatMap((link) => [link.from, link.to]));
  const spoken = new Set(view.asked.map((asked) => asked.agent));
  // A team that is a member stands for its own members until these speak.
  const shown = view.members.filter((it) => used.has(it.id) || spoken.has(it.id) || (it.within === null && it.id !== LEAD));
  const nodes = [...[TASK, BOARD, PERSON].filter((end) => used.has(end)), ...shown.map((it) => it.id), ...(used.has(ANSWER) ? [ANSWER] : [])];
  const sets = round.length > 2 ? [round] : alike(all, shown.map((it) => it.id));
  const groups = sets.map((agents, at) => ({ id: `\u0000group-${at}`, agents, isRound: agents === round, live: false }));
  return { nodes, groups, links: groups.reduce(gathered, all), loops: loops(view) };
}

/** Agents with the very same neighbours, where they are many. */
function alike(links: Link[], agents: string[]): string[][] {
  const sets = new Map<string, string[]>();
  for (const agent of agents) {
    const own = links.filter((link) => link.from === agent || link.to === agent);
    const ends = own.map((link) => (link.from === agent ? `>${link.to}` : `<${link.from}`) + String(link.mutual)).sort();
    if (ends.length > 0) sets.set(ends.join('\n'), [...(sets.get(ends.join('\n')) ?? []), agent]);
  }
  return [...sets.values()].filter((set) => set.length >= MANY);
}

/** One line to the frame in place of one to each in it. */
function gathered(links: Link[], group: Group): Link[] {
  const isIn = (node: string): boolean => group.agents.includes(node);
  const kept: Link[] = [];
  const merged = new Map<string, Link[]>();
  for (const link of links) {
    if (isIn(link.from) && isIn(link.to)) {
      group.live ||= link.live;
      if (group.agents.length <= MOST_LINES) kept.push(link);
    } else if (isIn(link.from) || isIn(link.to)) {
      const end = isIn(link.from) ? `>${link.to}` : `<${link.from}`;
      merged.set(end, [...(merged.get(end) ?? []), link]);
    } else {
      kept.push(link);
    }
  }
  for (const many of merged.values()) {
    const [first] = many;
    if (!first || many.length === 1) {
      kept.push(...many);
      continue;
    }
    kept.push({
      ...first,
      from: isIn(first.from) ? group.id : first.from,
      to: isIn(first.to) ? group.id : first.to,
      mutual: many.some((link) => link.mutual),
      count: Math.max(...many.map((link) => link.count)),
      live: many.some((link) => link.live),
    });
  }
  return kept;
}

function name(from: string, to: string): string {
  return `${from}\u0001${to}`;
}

function find(links: Map<string, Link>, from: string, to: string): Link | undefined {
  const direct = links.get(name(from, to));
  if (direct) return direct;
  const other = links.get(name(to, from));
  return other?.mutual ? other : undefined;
}

function put(links: Map<string, Link>, given: { from: string; to: string } & Partial<Link>): Link {
  const link = { label: null, back: false, mutual: false, count: 0, live: false, ...given };
  const other = links.get(name(link.to, link.from));
  if (other && !other.back && !link.back && link.label === null) {
    other.mutual = true;
    return other;
  }
  const present = links.get(name(link.from, link.to));
  if (present) return present;
  links.set(name(link.from, link.to), link);
  return link;
}

/** The lines that the form of the collaboration has, before anything happened; and who hear each other. */
function declare({ spec, members }: RunView, links: Map<string, Link>, isLed: boolean): string[] {
  let round: string[] = [];
  const form: Collaboration = spec?.collaboration ?? {};
  const line = (from: string, to: string, more: Partial<Link> = {}): void => void put(links, { from, to, ...more });
  for (const graph of graphsOf(form)) {
    const back = backEdges(graph);
    for (const [at, edge] of graph.edges.entries()) {
      const from = edge.from === LEAD ? (isLed ? LEAD : TASK) : edge.from;
      const to = edge.to === LEAD ? (isLed ? LEAD : ANSWER) : edge.to;
      const isReturn = isLed && to === LEAD;
      line(from, to, { label: isReturn ? null : (edge.label ?? null), back: back.has(at) || isReturn });
    }
    if (isLed) {
      line(TASK, LEAD);
      line(LEAD, ANSWER);
    }
    if (graph.judge) line(graph.edges.find((edge) => edge.exit)?.from ?? TASK, graph.judge);
  }
  const [kind, it] = unwrapped(form);
  const list = (field: string): string[] => (it[field] as string[] | undefined) ?? [];
  const among = (agents: string[]): void => {
    round = agents;
    agents.forEach((one, at) => agents.slice(at + 1).forEach((other) => line(one, other, { mutual: true })));
  };
  const rounds = (it.rounds as number | undefined) ?? 1;
  const judge = it.judge as string;
  switch (kind) {
    case 'broadcast':
      list('agents').forEach((agent) => (line(TASK, agent), line(agent, ANSWER)));
      if (rounds > 1) among(list('agents'));
      break;
    case 'debate':
    case 'consensus': {
      const speakers = list('agents');
      speakers.forEach((agent) => line(TASK, agent));
      if (rounds > 1 || kind === 'consensus') among(speakers);
      speakers.filter((agent) => agent !== judge).forEach((agent) => line(agent, judge, speakers.includes(judge) ? { mutual: true } : {}));
      line(judge, ANSWER);
      break;
    }
    case 'supervisor': {
      const supervisor = it.supervisor as string;
      line(TASK, supervisor);
      list('workers').filter((worker) => worker !== supervisor).forEach((worker) => line(supervisor, worker, { mutual: true }));
      line(supervisor, ANSWER);
      break;
    }
    case 'sequential':
    case 'relay': {
      const order = list('order');
      const first = order[0];
      const last = order.at(-1);
      if (first === undefined || last === undefined) break;
      line(TASK, first);
      order.slice(1).forEach((agent, at) => line(order[at] ?? TASK, agent));
      if (rounds > 1 && first !== last) line(last, first, { back: true });
      line(last, ANSWER);
      break;
    }
    case 'dispatch':
      line(TASK, LEAD);
      list('agents').forEach((agent) => line(LEAD, agent, { mutual: true }));
      line(LEAD, ANSWER);
      break;
    case 'roundtable':
      line(TASK, BOARD);
      list('agents').forEach((agent) => line(BOARD, agent, { mutual: true }));
      line(BOARD, ANSWER);
      break;
    case 'roles': {
      const roles = ['explorer', 'planner', 'coder', 'reviewer'].filter((id) => members.some((member) => member.id === id));
      roles.forEach((role, at) => line(roles[at - 1] ?? TASK, role));
      const last = roles.at(-1);
      if (roles.length > 1 && last) line(last, ANSWER);
      if (roles.includes('reviewer') && roles.includes('coder')) line('reviewer', 'coder', { back: true });
      break;
    }
    case 'pattern': {
      const cast = (it.cast as { agent: string }[] | undefined) ?? [];
      if (cast[0]) line(TASK, cast[0].agent);
      break;
    }
    default:
      break;
  }
  return round;
}

type Message = [from: string, to: string, asked: Asked | null];

/** Every message so far: from whom, to whom, and in which call it is read. */
function* messages(view: RunView, isLed: boolean): Generator<Message> {
  const byKey = (key: string): Asked | undefined => view.asked[view.current.get(key) ?? -1];
  const [kind, it] = unwrapped(view.spec?.collaboration ?? {});
  const supervisor = kind === 'supervisor' ? (it.supervisor as string) : null;
  const speaker = (asked: Asked): string => (asked.call.kind === 'person' ? PERSON : asked.agent);
  for (const asked of view.asked) {
    if (asked.state === 'refused' || asked.call.kind === 'gate' || asked.call.kind === 'tool' || asked.call.kind === 'listing') continue;
    const to = speaker(asked);
    if (asked.call.kind === 'person') yield [asked.agent, PERSON, asked];
    const parts = partsOf(asked.call);
    const board = parts.some((part) => typeof part === 'object' && 'board' in part);
    const senders = new Set<string>();
    for (const key of asked.sources) {
      const source = byKey(key);
      const from = source && speaker(source);
      if (from && from !== to && asked.call.kind !== 'person') senders.add(from);
    }
    if (board) {
      yield [BOARD, to, asked];
      if (asked.answer && !/^\s*pass\s*$/i.test(asked.answer.text)) yield [to, BOARD, null];
      continue;
    }
    for (const from of senders) yield [from, to, asked];
    const isFirst = parts.includes('task') && senders.size === 0 && asked.call.kind !== 'person';
    const isOpening = isFirst && !parts.some((part) => typeof part === 'object' && 'own' in part);
    const giver = isLed ? LEAD : supervisor;
    if (isOpening) yield [giver !== null && to !== giver ? giver : (withinTeam(view, to) ?? TASK), to, asked];
  }
}

/** How the answer came about: over the declared way out of whoever spoke last, else from whoever wrote it. */
function ends(view: RunView, links: Map<string, Link>): Message[] {
  const { ending } = view;
  if (!ending?.done && !ending?.bound) return [];
  const out = new Set([...links.values()].filter((link) => link.to === ANSWER).map((link) => link.from));
  const last = view.asked.findLast((asked) => asked.state === 'answered' && out.has(asked.agent));
  const keys = Array.isArray(ending.final) ? ending.final : [];
  const authors = [...new Set(keys.flatMap((key) => view.asked[view.current.get(key) ?? -1]?.agent ?? []))];
  const declared = authors.filter((author) => out.has(author));
  if (declared.length > 0) return declared.map((author) => [author, ANSWER, null]);
  if (out.size > 0) return last ? [[last.agent, ANSWER, null]] : [...out].map((from) => [from, ANSWER, null]);
  return authors.map((author) => [author, ANSWER, null]);
}

/** A member of a nested team gets its task from the member that its team is. */
function withinTeam(view: RunView, id: string): string | null {
  return view.members.find((member) => member.id === id)?.within ?? null;
}

/** The edges that lead back to where a walk from the lead came from, by their place. */
function backEdges(graph: Graph): Set<number> {
  const back = new Set<number>();
  const seen = new Set<string>();
  const onWay = new Set<string>();
  const out = (agent: string): number[] => graph.edges.flatMap((edge, at) => (edge.from === agent && !edge.exit ? [at] : []));
  for (const entry of graph.edges.filter((edge) => edge.from === LEAD && !edge.exit)) {
    if (seen.has(entry.to)) continue;
    const way: { agent: string; left: number[] }[] = [{ agent: entry.to, left: out(entry.to) }];
    seen.add(entry.to);
    onWay.add(entry.to);
    for (let top = way.at(-1); top; top = way.at(-1)) {
      const at = top.left.shift();
      const to = at === undefined ? undefined : graph.edges[at]?.to;
      if (at === undefined || to === undefined) {
        onWay.delete(top.agent);
        way.pop();
      } else if (onWay.has(to)) {
        back.add(at);
      } else if (!seen.has(to) && to !== LEAD) {
        seen.add(to);
        onWay.add(to);
        way.push({ agent: to, left: out(to) });
      }
    }
  }
  return back;
}

/** The loops and in which round they are. */
function loops(view: RunView): Loop[] {
  const form = view.spec?.collaboration ?? {};
  const turns = new Map<string, number>();
  for (const { key, agent } of view.asked) {
    const [, visit] = /\/(\d+)$/.exec(key) ?? [];
    if (visit !== undefined) turns.set(agent, Math.max(turns.get(agent) ?? 0, Number(visit)));
  }
  const graphs = graphsOf(form).flatMap((graph) =>
    loopsOf(graph.edges.filter((edge) => !edge.exit && edge.from !== LEAD && edge.to !== LEAD)).map((agents) => ({
      agents,
      round: Math.max(0, ...agents.map((agent) => turns.get(agent) ?? 0)),
      cap: graph.cap ?? null,
    })),
  );
  const [kind, it] = unwrapped(form);
  const rounds = it.rounds as number | undefined;
  const agents = ((it.agents ?? it.order) as string[] | undefined) ?? [];
  if (rounds === undefined || rounds < 2 || !['debate', 'broadcast', 'relay'].includes(kind)) return graphs;
  const round = Math.max(0, ...view.asked.map(({ key }) => Number(/^round-(\d+)/.exec(key)?.[1] ?? 0)));
  return [...graphs, { agents: [...new Set(agents)], round, cap: rounds }];
}

/** Whether the run waits for whoever looks at it. */
export function asksYou(view: RunView): boolean {
  return !view.ending && waitsForPerson(view);
}
