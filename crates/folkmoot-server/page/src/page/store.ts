import { useEffect, useMemo, useSyncExternalStore } from 'react';
import type { Client, Problem } from '../api/client';
import { type Sink, follow } from '../api/follow';
import type { Delta, LogRecord } from '../api/log';
import type { Outcome } from '../api/views';
import { EMPTY, type RunView, fold } from '../fold/run';

/** What has come so far of a reply under way. */
export interface Flow {
  text: string;
  reasoning: string;
  /** Why it was tried again, if it was. */
  retry: string | null;
  /** Whether its beginning came before anyone listened here. */
  isCut: boolean;
}

export interface Followed {
  view: RunView;
  flows: ReadonlyMap<string, Flow>;
  connection: 'opening' | 'open' | 'lost' | 'closed';
  problem: Problem | null;
  outcome: Outcome | null;
}

const NOTHING: Followed = { view: EMPTY, flows: new Map(), connection: 'opening', problem: null, outcome: null };
/** A window that is not shown draws no frames, and is told so often all the same. */
const HIDDEN_MS = 500;

/** A run that is followed. What comes in is told once a frame, however much it is. */
class Following implements Sink {
  private now = NOTHING;
  private waiting: LogRecord[] = [];
  private deltas: Delta[] = [];
  private change: Partial<Followed> = {};
  private isDue = false;
  private openedAt = 0;
  private readonly listeners = new Set<() => void>();

  snapshot = (): Followed => this.now;

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  records(records: LogRecord[]): void {
    for (const record of records) this.waiting.push(record);
    this.schedule();
  }

  delta(delta: Delta): void {
    this.deltas.push(delta);
    this.schedule();
  }

  result(outcome: Outcome): void {
    this.change = { ...this.change, outcome };
    this.schedule();
  }

  connection(state: 'open' | 'lost' | 'closed', problem?: Problem): void {
    this.change = { ...this.change, connection: state, problem: problem ?? null };
    if (state === 'lost') this.change.flows = new Map();
    if (state === 'open') this.openedAt = this.now.view.seq + this.waiting.length;
    this.schedule();
  }

  private schedule(): void {
    if (this.isDue) return;
    this.isDue = true;
    if (document.hidden) setTimeout(this.flush, HIDDEN_MS);
    else requestAnimationFrame(this.flush);
  }

  private flush = (): void => {
    this.isDue = false;
    const { now, change } = this;
    const view = fold(now.view, this.waiting);
    const flows = this.flowing(change.flows ?? now.flows, view);
    this.now = { ...now, ...change, view, flows };
    this.waiting = [];
    this.deltas = [];
    this.change = {};
    for (const listener of this.listeners) listener();
  };

  /** Adds the pieces that came to what is flowing, and lets go of what was settled. */
  private flowing(before: ReadonlyMap<string, Flow>, view: RunView): ReadonlyMap<string, Flow> {
    const flows = new Map(before);
    for (const { key, text, reasoning, retry } of this.deltas) {
      const asked = view.asked[view.current.get(key) ?? -1];
      const flow = flows.get(key) ?? { text: '', reasoning: '', retry: null, isCut: (asked?.seq ?? 0) <= this.openedAt };
      if (retry !== undefined) flows.set(key, { text: '', reasoning: '', retry, isCut: false });
      else flows.set(key, { ...flow, text: flow.text + (text ?? ''), reasoning: flow.reasoning + (reasoning ?? '') });
    }
    for (const key of flows.keys()) {
      if (view.asked[view.current.get(key) ?? -1]?.state !== 'open') flows.delete(key);
    }
    return flows;
  }
}

/** Follows a run as long as it is looked at. */
export function useFollowed(client: Client, id: string): Followed {
  const following = useMemo(() => ({ sink: new Following(), client, id }), [client, id]);
  useEffect(() => {
    const end = new AbortController();
    void follow(following.client, following.id, following.sink, end.signal);
    return () => end.abort();
  }, [following]);
  return useSyncExternalStore(following.sink.subscribe, following.sink.snapshot);
}
