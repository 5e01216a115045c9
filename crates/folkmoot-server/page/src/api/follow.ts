import { Problem, type Client } from './client';
import type { Delta, LogRecord } from './log';
import { Reader } from './sse';
import type { Outcome } from './views';

/** What a run's stream brings. */
export interface Sink {
  records(records: LogRecord[]): void;
  delta(delta: Delta): void;
  result(outcome: Outcome): void;
  /** Whether the stream is open; `lost` once more after it broke off, before it is opened again. */
  connection(state: 'open' | 'lost' | 'closed', problem?: Problem): void;
}

const PAUSES_MS = [500, 1000, 2000, 4000, 8000];
/** The server says something every 15 s; one that is silent for so long is not there any more. */
const SILENCE_MS = 45_000;

/**
 * Follows a run to its end, over lost connections: records come each once, in order, without a gap. Ends when the run
 * has ended, when `signal` says so, or when the server refuses for good.
 */
export async function follow(client: Client, id: string, sink: Sink, signal: AbortSignal): Promise<void> {
  let last = 0;
  let failures = 0;
  while (!signal.aborted) {
    let ended = false;
    try {
      const headers: Record<string, string> = { Accept: 'text/event-stream' };
      if (last > 0) headers['Last-Event-ID'] = String(last);
      const response = await client.fetch(`/v1/runs/${encodeURIComponent(id)}/events`, { headers, signal });
      sink.connection('open');
      for await (const lines of messages(response)) {
        failures = 0;
        const records: LogRecord[] = [];
        for (const line of lines) {
          if (line.type === 'record') {
            const record = line as unknown as LogRecord;
            if (record.seq <= last) continue;
            if (record.seq !== last + 1) {
              sink.records(records);
              throw new Problem(0, 'gap', `event ${last + 1} did not come`);
            }
            last = record.seq;
            records.push(record);
            continue;
          }
          if (records.length > 0) sink.records(records.splice(0));
          if (line.type === 'delta') sink.delta(line as unknown as Delta);
          if (line.type === 'result') {
            ended = true;
            sink.result(line as unknown as Outcome);
          }
        }
        if (records.length > 0) sink.records(records);
      }
      if (ended) return sink.connection('closed');
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && error.status >= 400 && error.status < 500 && error.status !== 429) {
        return sink.connection('closed', error);
      }
    }
    sink.connection('lost');
    await pause(PAUSES_MS[Math.min(failures++, PAUSES_MS.length - 1)] ?? 8000, signal);
  }
}

/** The lines of a stream, in the batches in which they arrive. */
async function* messages(response: Response): AsyncGenerator<{ type?: string }[]> {
  if (!response.body) return;
  const bytes = response.body.getReader();
  const text = new TextDecoder();
  const reader = new Reader();
  try {
    for (;;) {
      const { value, done } = await withoutSilence(bytes.read());
      if (done) return;
      const batch = reader.push(text.decode(value, { stream: true }));
      if (batch.length > 0) yield batch.map(parsed);
    }
  } finally {
    await bytes.cancel().catch(() => undefined);
  }
}

/** What comes, unless nothing comes for too long. */
async function withoutSilence<T>(coming: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Problem(0, 'silent', 'the server is silent')), SILENCE_MS);
  });
  return Promise.race([coming, silence]).finally(() => clearTimeout(timer));
}

function parsed({ data }: { data: string }): { type?: string } {
  return JSON.parse(data) as { type?: string };
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
  });
}
