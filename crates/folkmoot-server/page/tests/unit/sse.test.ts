import { expect, test, vi } from 'vitest';
import { Client } from '../../src/api/client';
import { follow, type Sink } from '../../src/api/follow';
import type { LogRecord } from '../../src/api/log';
import { Reader } from '../../src/api/sse';

const STREAM = ':hello\n\nid: 1\nevent: record\ndata: {"a":\ndata: 1}\n\ndata:x\r\n\r\ndata: 研究\rid: 7\r\r: beat\n\nretry: 5\n\nid\ndata\n\n';

test('however a stream is cut, and whatever ends its lines, the events are the same', () => {
  const whole = new Reader().push(STREAM);
  expect(whole).toEqual([
    { id: '1', event: 'record', data: '{"a":\n1}' },
    { id: '1', event: 'message', data: 'x' },
    { id: '7', event: 'message', data: '研究' },
    { id: '', event: 'message', data: '' },
  ]);
  for (let cut = 0; cut <= STREAM.length; cut += 1) {
    const reader = new Reader();
    expect([...reader.push(STREAM.slice(0, cut)), ...reader.push(STREAM.slice(cut))]).toEqual(whole);
  }
  const bytewise = new Reader();
  expect([...STREAM].flatMap((character) => bytewise.push(character))).toEqual(whole);
});

/** A server that gives one body after another and notes what it was asked. */
class Bodies extends Client {
  readonly asked: (string | null)[] = [];

  constructor(private readonly bodies: (string | ReadableStream)[]) {
    super('t');
  }

  override fetch(_path: string, init: RequestInit = {}): Promise<Response> {
    this.asked.push(new Headers(init.headers).get('Last-Event-ID'));
    return Promise.resolve(new Response(this.bodies.shift() ?? ''));
  }
}

function record(seq: number): string {
  return `id: ${seq}\ndata: ${JSON.stringify({ type: 'record', seq, at: 0, event: 'ticked' })}\n\n`;
}

test('a run is followed over a lost connection without gap or repeat, until its result', async () => {
  const client = new Bodies([record(1) + record(2), record(2) + record(3), `data: {"type":"result","status":"done"}\n\n`]);
  const seen: number[] = [];
  const states: string[] = [];
  const sink: Sink = {
    records: (records: LogRecord[]) => seen.push(...records.map((it) => it.seq)),
    delta: () => undefined,
    result: (outcome) => states.push(outcome.status),
    connection: (state) => states.push(state),
  };
  await follow(client, 'r', sink, new AbortController().signal);
  expect(seen).toEqual([1, 2, 3]);
  expect(client.asked).toEqual([null, '2', '3']);
  expect(states).toEqual(['open', 'lost', 'open', 'lost', 'open', 'done', 'closed']);
});

test('records that leave a gap are asked for again', async () => {
  const client = new Bodies([record(1) + record(3), record(2) + record(3) + 'data: {"type":"result"}\n\n']);
  const seen: number[] = [];
  const sink: Sink = { records: (records) => seen.push(...records.map((it) => it.seq)), delta: () => undefined, result: () => undefined, connection: () => undefined };
  await follow(client, 'r', sink, new AbortController().signal);
  expect(seen).toEqual([1, 2, 3]);
});

test('a connection that says nothing any more counts as lost', async () => {
  vi.useFakeTimers();
  try {
    const silent = new ReadableStream({ start: (stream) => stream.enqueue(new TextEncoder().encode(record(1))) });
    const client = new Bodies([silent, record(2) + 'data: {"type":"result"}\n\n']);
    const seen: number[] = [];
    const sink: Sink = { records: (records) => seen.push(...records.map((it) => it.seq)), delta: () => undefined, result: () => undefined, connection: () => undefined };
    const followed = follow(client, 'r', sink, new AbortController().signal);
    await vi.advanceTimersByTimeAsync(46_000);
    await followed;
    expect(seen).toEqual([1, 2]);
    expect(client.asked).toEqual([null, '1']);
  } finally {
    vi.useRealTimers();
  }
});
