import type { Micros } from '../api/log';
import { type Asked, type Mark, type RunView, marks } from './run';

export interface Bar {
  asked: Asked;
  /** The line of the lane on which it is drawn: calls at the same time stand below each other. */
  row: number;
  from: Micros;
  /** Null while it is open. */
  to: Micros | null;
}

export interface Lane {
  agent: string;
  rows: number;
  bars: Bar[];
}

export interface Timeline {
  lanes: Lane[];
  marks: Mark[];
}

/** One lane for each member that was asked something, in the order of the team. */
export function timeline(view: RunView): Timeline {
  const byAgent = new Map<string, Asked[]>();
  for (const asked of view.asked) {
    if (asked.inherited) continue;
    const own = byAgent.get(asked.agent);
    if (own) own.push(asked);
    else byAgent.set(asked.agent, [asked]);
  }
  const lanes = view.members.flatMap(({ id }) => {
    const asked = byAgent.get(id);
    return asked ? [lane(id, asked)] : [];
  });
  return { lanes, marks: marks(view).filter((mark) => mark.event !== 'prompted') };
}

function lane(agent: string, asked: Asked[]): Lane {
  const ends: Micros[] = [];
  const bars = asked.map((it) => {
    const to = it.state === 'open' ? null : (it.settledAt ?? it.askedAt);
    const free = ends.findIndex((end) => end <= it.askedAt);
    const row = free < 0 ? ends.length : free;
    ends[row] = to ?? Infinity;
    return { asked: it, row, from: it.askedAt, to };
  });
  return { agent, rows: Math.max(1, ends.length), bars };
}

const STEPS = [1, 2, 5];
const SECOND = 1_000_000;
const LONG_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 43_200, 86_400];

/** The least step, round for people, with which at most `most` fit into `span`. */
export function step(span: Micros, most: number): Micros {
  const least = span / Math.max(1, most);
  if (least > SECOND) {
    const long = LONG_STEPS.find((seconds) => seconds * SECOND >= least);
    return (long ?? Math.ceil(least / SECOND / 86_400) * 86_400) * SECOND;
  }
  for (let power = 1; ; power *= 10) {
    const found = STEPS.find((it) => it * power >= least);
    if (found !== undefined) return found * power;
  }
}

/** The moments at which an axis of that length is labelled. */
export function ticks(span: Micros, most: number): Micros[] {
  if (span <= 0) return [0];
  const by = step(span, most);
  return Array.from({ length: Math.floor(span / by) + 1 }, (_, at) => at * by);
}

/** The bars that can be seen between two moments. */
export function visible(bars: Bar[], from: Micros, to: Micros, now: Micros): Bar[] {
  return bars.filter((bar) => bar.from <= to && (bar.to ?? now) >= from);
}
