import type { Collaboration, Graph } from '../api/log';
import { open, type RunView } from './run';

export type Activity =
  | { kind: 'idle' }
  | { kind: 'working'; keys: string[] }
  | { kind: 'tool'; tool: string }
  | { kind: 'person' }
  | { kind: 'waits'; for: string[] }
  | { kind: 'done'; faults: number }
  | { kind: 'failed' };

/** What each member is doing, and for whom it waits if it can still be asked. */
export function activities(view: RunView): Map<string, Activity> {
  const under = open(view);
  const busy = [...new Set(under.filter((it) => it.call.kind === 'agent').map((it) => it.agent))];
  const found = new Map<string, Activity>();
  for (const { id } of view.members) {
    const own = under.filter((it) => it.agent === id);
    const tool = own.find((it) => it.call.kind === 'tool');
    if (own.some((it) => it.call.kind === 'agent')) {
      found.set(id, { kind: 'working', keys: own.map((it) => it.key) });
    } else if (tool?.call.kind === 'tool') {
      found.set(id, { kind: 'tool', tool: tool.call.name });
    } else if (own.some((it) => it.call.kind === 'person')) {
      found.set(id, { kind: 'person' });
    } else if (own.length > 0) {
      found.set(id, { kind: 'working', keys: own.map((it) => it.key) });
    } else {
      found.set(id, atRest(view, id, busy));
    }
  }
  return found;
}

function atRest(view: RunView, id: string, busy: string[]): Activity {
  const calls = view.asked.filter((it) => it.agent === id);
  if (!view.ending && busy.length > 0) {
    const awaited = busy.filter((other) => other !== id && mayFollow(view, id, other));
    if (awaited.length > 0) return { kind: 'waits', for: awaited };
  }
  if (calls.length === 0) return { kind: 'idle' };
  if (calls.at(-1)?.state === 'failed') return { kind: 'failed' };
  return { kind: 'done', faults: calls.filter((it) => it.state === 'failed').length };
}

/** Whether the work of `other` may still come to `id`, by the form of the collaboration. */
function mayFollow(view: RunView, id: string, other: string): boolean {
  const form = view.spec?.collaboration ?? {};
  const graphs = graphsOf(form);
  if (graphs.length > 0) return graphs.some((graph) => reaches(graph, other, id));
  const [kind, it] = unwrapped(form);
  const list = (name: string): string[] => (it[name] as string[] | undefined) ?? [];
  const calls = view.asked.filter((call) => call.agent === id && call.call.kind !== 'tool').length;
  const rounds = (it.rounds as number | undefined) ?? 1;
  switch (kind) {
    case 'debate':
    case 'broadcast':
      return it.judge === id || (list('agents').includes(id) && calls < rounds);
    case 'consensus':
      return it.judge === id || calls < 2;
    case 'supervisor':
      return it.supervisor === id || calls === 0;
    case 'sequential':
    case 'relay': {
      const order = list('order');
      const places = order.flatMap((name, at) => (name === other ? [at] : []));
      return rounds > 1 || order.some((name, at) => name === id && places.some((place) => at > place));
    }
    case 'dispatch':
    case 'roundtable':
      return true;
    default:
      return calls === 0;
  }
}

/** The strategy's name and parameters; what an adaptive one began as. */
export function unwrapped(form: Collaboration): [string, Record<string, unknown>] {
  const [kind = ''] = Object.keys(form);
  const it = (form[kind] ?? {}) as Record<string, unknown>;
  if (kind !== 'adaptive') return [kind, it];
  const [began = ''] = Object.keys(it);
  return [began === 'supervise' ? 'supervisor' : began, (it[began] ?? {}) as Record<string, unknown>];
}

export function graphsOf(form: Collaboration): Graph[] {
  if (form.graph) return [form.graph as Graph];
  const stages = (form.stages as { stages?: { graph: Graph }[] } | undefined)?.stages ?? [];
  return stages.map((stage) => stage.graph);
}

function reaches(graph: Graph, from: string, to: string): boolean {
  const seen = new Set([from]);
  const left = [from];
  for (let at = left.pop(); at !== undefined; at = left.pop()) {
    for (const edge of graph.edges) {
      if (edge.from !== at || edge.exit || seen.has(edge.to)) continue;
      if (edge.to === to) return true;
      seen.add(edge.to);
      left.push(edge.to);
    }
  }
  return false;
}
