import type { Answer, Call, Event, Fault, Limits, LogRecord, Micros, Spec, ToolCall, Usage } from '../api/log';
import { faultOf } from '../api/log';
import type { Status } from '../api/views';
import { type Member, members } from './members';
import { partsOf, sourcesOf } from './sources';

export type CallState = 'open' | 'answered' | 'failed' | 'refused' | 'withdrawn';

/** One asking of a call; a call that is asked anew under its key is another one of these. */
export interface Asked {
  /** The event in which it was asked; unique in the run. */
  seq: number;
  key: string;
  agent: string;
  call: Call;
  state: CallState;
  askedAt: Micros;
  settledAt: Micros | null;
  /** The event that settled it. */
  settledSeq: number | null;
  attempt: number;
  answer: Answer | null;
  fault: Fault | null;
  usage: Usage;
  /** Taken over by a fork; it cost nothing again. */
  inherited: boolean;
  /** A person put this answer in place of the one given. */
  amended: boolean;
  /** The keys of the answers that it was made from. */
  sources: string[];
}

/** An event in a word. */
export interface Mark {
  seq: number;
  at: Micros;
  event: Event['event'];
  key: string | null;
  agent: string | null;
}

export interface Ending {
  done: boolean;
  bound: boolean;
  limit: string | null;
  reason: string;
  final: string[] | string | null;
  partial: string[];
}

/** A run as its log tells it. */
export interface RunView {
  seq: number;
  at: Micros;
  /** A moment of the run and the wall clock at it, in microseconds since 1970. */
  clock: { at: Micros; wall: Micros };
  spec: Spec | null;
  origin: { run: string; seq: number; retried: boolean } | null;
  members: Member[];
  limits: Limits;
  asked: Asked[];
  /** The latest asking of each key: its place in `asked`. */
  current: ReadonlyMap<string, number>;
  /** Every event, in order. */
  log: Mark[];
  total: Usage;
  /** By agent. */
  usage: ReadonlyMap<string, Usage>;
  /** Calls that count against limits. */
  started: number;
  stop: Fault | null;
  cancelRequested: boolean;
  ending: Ending | null;
}

export const NOTHING: Usage = { input: 0, output: 0 };

export const EMPTY: RunView = {
  seq: 0,
  at: 0,
  clock: { at: 0, wall: 0 },
  spec: null,
  origin: null,
  members: [],
  limits: {},
  asked: [],
  current: new Map(),
  log: [],
  total: NOTHING,
  usage: new Map(),
  started: 0,
  stop: null,
  cancelRequested: false,
  ending: null,
};

export function add(one: Usage, other: Usage): Usage {
  const cost = one.cost === undefined && other.cost === undefined ? {} : { cost: (one.cost ?? 0) + (other.cost ?? 0) };
  return {
    input: one.input + other.input,
    cached: (one.cached ?? 0) + (other.cached ?? 0),
    cache_write: (one.cache_write ?? 0) + (other.cache_write ?? 0),
    output: one.output + other.output,
    estimated: Boolean(one.estimated || other.estimated),
    ...cost,
  };
}

export function tokensOf(usage: Usage): number {
  return usage.input + (usage.cached ?? 0) + (usage.cache_write ?? 0) + usage.output;
}

/** Folds records into a view; the view given stays as it is. */
export function fold(view: RunView, records: readonly LogRecord[]): RunView {
  if (records.length === 0) return view;
  const draft = new Draft(view);
  for (const record of records) draft.apply(record);
  return draft.finished();
}

/** Copies of what changes, made once for many records. */
class Draft {
  private readonly view: RunView;
  private readonly asked: Asked[];
  private readonly current: Map<string, number>;
  private readonly usage: Map<string, Usage>;
  private readonly log: Mark[];

  constructor(from: RunView) {
    this.asked = [...from.asked];
    this.current = new Map(from.current);
    this.usage = new Map(from.usage);
    this.log = [...from.log];
    this.view = { ...from, asked: this.asked, current: this.current, usage: this.usage, log: this.log };
  }

  finished(): RunView {
    return this.view;
  }

  apply(record: LogRecord): void {
    const { view } = this;
    view.seq = record.seq;
    view.at = Math.max(view.at, record.at);
    switch (record.event) {
      case 'started':
        view.clock = { at: record.at, wall: record.wall };
        view.spec = record.spec;
        view.limits = record.spec.limits ?? {};
        view.members = members(record.spec);
        if (record.origin) {
          const { run, seq, sent } = record.origin;
          view.origin = { run, seq, retried: sent !== undefined };
        }
        break;
      case 'asked':
        this.ask(record, record.key, record.call);
        if (isPerformed(record.call)) view.started += 1;
        break;
      case 'inherited':
        this.ask(record, record.key, record.call, { inherited: true });
        this.settle(record, record.key, record.answer, faultOf(record), { settledAt: view.at });
        break;
      case 'refused': {
        const fault = faultOf(record);
        if (fault && stopsRun(fault)) view.stop ??= fault;
        this.ask(record, record.key, record.call);
        this.change(record.key, { ...this.end(record), state: 'refused', fault: fault ?? null });
        break;
      }
      case 'answered':
        this.bill(record.key, record.usage);
        if (this.latest(record.key)?.attempt === record.attempt) {
          this.settle(record, record.key, record.answer, faultOf(record));
        }
        break;
      case 'withdrawn':
        this.change(record.key, { ...this.end(record), state: 'withdrawn', fault: faultOf(record) ?? null });
        if (record.usage) this.bill(record.key, record.usage);
        break;
      case 'concluded':
        this.settle(record, record.key, record.answer, faultOf(record));
        break;
      case 'amended':
        this.amend(record, record.key, record.text);
        break;
      case 'resumed':
        view.clock = { at: record.at, wall: record.wall };
        this.retryOpen();
        break;
      case 'cancel_requested':
        view.cancelRequested = true;
        if (!view.ending) view.stop = { fault: 'cancelled' };
        break;
      case 'ticked':
        if (view.limits.time !== undefined && view.limits.time <= record.at && !view.ending) {
          view.stop ??= { fault: 'deadline' };
        }
        break;
      case 'woken':
        view.clock = { at: record.at, wall: record.wall };
        break;
      case 'prompted':
      case 'saved':
        break;
      case 'ended':
        view.ending = {
          done: record.done,
          bound: record.bound ?? false,
          limit: record.limit ?? null,
          reason: record.reason,
          final: finalOf(record.final),
          partial: record.partial ?? [],
        };
        break;
      default:
        // An event of a later version: nothing the page draws depends on it.
        break;
    }
    this.note(record);
  }

  private note(record: LogRecord): void {
    const key = 'key' in record ? record.key : null;
    const agent = key === null ? null : (this.latest(key)?.agent ?? null);
    this.log.push({ seq: record.seq, at: record.at, event: record.event, key, agent });
  }

  private latest(key: string): Asked | undefined {
    const at = this.current.get(key);
    return at === undefined ? undefined : this.asked[at];
  }

  private ask({ seq }: LogRecord, key: string, call: Call, more: Partial<Asked> = {}): void {
    this.current.set(key, this.asked.length);
    this.asked.push({
      seq,
      key,
      agent: call.agent,
      call,
      state: 'open',
      askedAt: this.view.at,
      settledAt: null,
      settledSeq: null,
      attempt: 1,
      answer: null,
      fault: null,
      usage: NOTHING,
      inherited: false,
      amended: false,
      sources: sourcesOf(call),
      ...more,
    });
    if (!this.view.members.some((member) => member.id === call.agent)) {
      this.view.members = [...this.view.members, { id: call.agent, name: call.agent, model: null, within: null, isTeam: false }];
    }
  }

  private change(key: string, change: Partial<Asked>): void {
    const at = this.current.get(key);
    const asked = at === undefined ? undefined : this.asked[at];
    if (at !== undefined && asked) this.asked[at] = { ...asked, ...change };
  }

  private end({ seq }: LogRecord): Partial<Asked> {
    return { settledAt: this.view.at, settledSeq: seq };
  }

  private settle(record: LogRecord, key: string, answer?: Answer, fault?: Fault, more: Partial<Asked> = {}): void {
    const failed = fault ?? errorIn(answer);
    const state = failed ? 'failed' : 'answered';
    this.change(key, { ...this.end(record), state, answer: answer ?? null, fault: failed, amended: false, ...more });
  }

  private amend(record: LogRecord, key: string, text: string): void {
    const answer = { text };
    this.change(key, { ...this.end(record), state: 'answered', answer, fault: null, amended: true });
    for (const around of this.current.keys()) {
      const isTeam = this.latest(around)?.call.kind === 'team';
      if (isTeam && key.startsWith(`${around}/`)) {
        this.change(around, { state: 'open', answer: null, fault: null, settledAt: null, settledSeq: null });
      }
    }
    this.view.ending = null;
  }

  private retryOpen(): void {
    this.asked.forEach((asked, at) => {
      const isAgain = asked.state === 'open' && isPerformed(asked.call);
      if (isAgain) this.asked[at] = { ...asked, attempt: asked.attempt + 1 };
    });
  }

  private bill(key: string, usage: Usage): void {
    const asked = this.latest(key);
    if (!asked) return;
    this.change(key, { usage: add(asked.usage, usage) });
    this.usage.set(asked.agent, add(this.usage.get(asked.agent) ?? NOTHING, usage));
    this.view.total = add(this.view.total, usage);
  }
}

function finalOf(final: { replies: string[] } | { literal: string } | undefined): string[] | string | null {
  if (!final) return null;
  return 'replies' in final ? final.replies : final.literal;
}

/** A structured reply with the key `error` counts as failed. */
function errorIn(answer: Answer | undefined): Fault | null {
  const { json } = answer ?? {};
  if (typeof json !== 'object' || json === null || Array.isArray(json) || !('error' in json)) return null;
  const text = typeof json.error === 'string' ? json.error : JSON.stringify(json.error);
  return { fault: 'failed', kind: 'harness', text };
}

/** Whether a back-end, a tool or the like carries it out; only that counts against limits. */
export function isPerformed(call: Call): boolean {
  return call.kind !== 'person' && call.kind !== 'team';
}

function stopsRun(fault: Fault): boolean {
  if (fault.fault === 'over_budget') return fault.of === 'run';
  return fault.fault === 'deadline' || fault.fault === 'cancelled';
}

export function open(view: RunView): Asked[] {
  return view.asked.filter((asked) => asked.state === 'open' && view.asked[view.current.get(asked.key) ?? -1] === asked);
}

/** The open questions to a person. */
export function questions(view: RunView): Asked[] {
  return open(view).filter((asked) => asked.call.kind === 'person');
}

/** Whether nothing goes on until a person has answered. */
export function waitsForPerson(view: RunView): boolean {
  const under = open(view);
  return under.some((asked) => asked.call.kind === 'person') && !under.some((asked) => isPerformed(asked.call));
}

/** How the run stands; the log alone cannot tell whether somebody drives it. */
export function statusOf(view: RunView, isDriven: boolean): Status {
  const { ending, stop } = view;
  if (!ending) {
    if (waitsForPerson(view)) return 'needs_input';
    return isDriven ? 'running' : 'interrupted';
  }
  if (stop?.fault === 'cancelled') return 'cancelled';
  if (stop?.fault === 'deadline' && ending.limit === null) return 'deadline';
  if (stop?.fault === 'over_budget' && ending.limit === null) return 'budget_exhausted';
  if (ending.done) return 'done';
  if (ending.limit !== null) return ending.limit === 'time' ? 'deadline' : 'budget_exhausted';
  return ending.bound ? 'bound_reached' : 'failed';
}

/** The text of a fault: the agent's own words, else its kind. */
export function faultText(fault: Fault): string {
  switch (fault.fault) {
    case 'failed':
      return fault.text.trim() === '' ? 'failed' : fault.text;
    case 'over_budget':
      return `budget exhausted: ${fault.limit} of ${fault.of}`;
    case 'timed_out':
      return 'timeout';
    case 'unwanted':
      return 'withdrawn';
    case 'deadline':
    case 'cancelled':
    case 'lost':
      return fault.fault;
  }
}

/** The answer of the run: replies joined by a blank line, or the literal text. */
export function finalText(view: RunView): string | null {
  const { ending } = view;
  if (!ending) return null;
  if (typeof ending.final === 'string') return ending.final;
  const keys = ending.final ?? ending.partial;
  const texts = keys.map((key) => view.asked[view.current.get(key) ?? -1]?.answer?.text ?? '');
  return keys.length === 0 ? null : texts.join('\n\n');
}

/** What a call is asked, as far as it is not quoted from others. */
export function questionText(view: RunView, call: Call): string {
  const told = partsOf(call).map((part) => {
    if (part === 'task') return view.spec?.task ?? '';
    if ('say' in part) return part.say;
    if ('quote' in part) return view.asked[view.current.get(part.quote) ?? -1]?.answer?.text ?? '';
    return '';
  });
  return told.filter((text) => text !== '').join('\n\n');
}

export function toolCallsOf(asked: Asked): ToolCall[] {
  return asked.answer?.tool_calls ?? [];
}

/** Events that are about the run and not about one call, and those by which a person changed it. */
export function marks(view: RunView): Mark[] {
  const told = new Set(['resumed', 'woken', 'cancel_requested', 'amended', 'prompted']);
  return view.log.filter((mark) => told.has(mark.event));
}
