import type { Call, LogRecord, Spec } from '../../src/api/log';
import { EMPTY, type RunView, fold } from '../../src/fold/run';

/** A spec of agents of which no more is known than their names. */
export function spec(names: string[], collaboration: Spec['collaboration'], more: Partial<Spec> = {}): Spec {
  const agents = names.map((name) => ({ id: name, name, target: 'demo' }));
  return { team: { name: 'Team', agents }, task: 'The task', collaboration, ...more };
}

export function agent(name: string, parts: Extract<Call, { kind: 'agent' }>['parts'] = ['task'], continues?: string): Call {
  return { kind: 'agent', agent: name, parts, ...(continues === undefined ? {} : { continues }) };
}

/** A log that is written down as it happens: each line is an event, ten milliseconds after the one before. */
export class Log {
  readonly records: LogRecord[] = [];

  add(event: object): this {
    const seq = this.records.length + 1;
    this.records.push({ seq, at: (seq - 1) * 10_000, ...event } as LogRecord);
    return this;
  }

  started(of: Spec): this {
    return this.add({ event: 'started', spec: of, wall: 1_000_000 });
  }

  asked(key: string, call: Call): this {
    return this.add({ event: 'asked', key, call, nth: 1 });
  }

  answered(key: string, text: string, usage = { input: 10, output: 5 }, attempt = 1): this {
    return this.add({ event: 'answered', key, attempt, answer: { text }, usage });
  }

  failed(key: string, text: string): this {
    return this.add({ event: 'answered', key, attempt: 1, fault: { fault: 'failed', kind: 'harness', text }, usage: { input: 0, output: 0 } });
  }

  ended(reason = 'answered', more: object = { done: true }): this {
    return this.add({ event: 'ended', reason, ...more });
  }

  view(): RunView {
    return fold(EMPTY, this.records);
  }
}
