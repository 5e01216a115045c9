import { expect, test } from 'vitest';
import { EMPTY, finalText, fold, questions, statusOf, tokensOf, waitsForPerson } from '../../src/fold/run';
import { Log, agent, spec } from './build';

const DEBATE = { debate: { agents: ['a', 'b'], rounds: 1, judge: 'b' } };

function debate(): Log {
  return new Log().started(spec(['a', 'b'], DEBATE)).asked('round-1/a', agent('a')).asked('round-1/b', agent('b'));
}

test('a call is open until it is answered, and its usage is its agent’s and the run’s', () => {
  const log = debate();
  expect(log.view().asked.map((it) => it.state)).toEqual(['open', 'open']);
  const view = log.answered('round-1/a', 'yes').view();
  expect(view.asked[0]).toMatchObject({ state: 'answered', answer: { text: 'yes' }, settledAt: 30_000 });
  expect(tokensOf(view.total)).toBe(15);
  expect(tokensOf(view.usage.get('a') ?? { input: 0, output: 0 })).toBe(15);
  expect(view.started).toBe(2);
});

test('folding in pieces gives what folding at once gives, and leaves the view before as it was', () => {
  const { records } = debate().answered('round-1/a', 'yes').failed('round-1/b', 'boom').ended();
  const whole = fold(EMPTY, records);
  for (let cut = 0; cut <= records.length; cut += 1) {
    const first = fold(EMPTY, records.slice(0, cut));
    const copy = structuredClone(first);
    expect(fold(first, records.slice(cut))).toEqual(whole);
    expect(first).toEqual(copy);
  }
});

test('an answer to a closed attempt changes the bill and nothing else', () => {
  const view = debate().add({ event: 'resumed', wall: 2_000_000 }).answered('round-1/a', 'late', { input: 3, output: 1 }, 1).view();
  expect(view.asked[0]).toMatchObject({ state: 'open', attempt: 2 });
  expect(tokensOf(view.total)).toBe(4);
});

test('an amended answer stands in place of the one given, and the run goes on', () => {
  const view = debate().answered('round-1/a', 'yes').ended().add({ event: 'amended', key: 'round-1/a', text: 'no' }).view();
  expect(view.asked[0]).toMatchObject({ state: 'answered', amended: true, answer: { text: 'no' } });
  expect(view.ending).toBeNull();
});

test('a call that is asked anew under its key is another one, and the first stays', () => {
  const view = debate()
    .add({ event: 'withdrawn', key: 'round-1/a', fault: 'unwanted' })
    .asked('round-1/a', agent('a'))
    .answered('round-1/a', 'second')
    .view();
  expect(view.asked.filter((it) => it.key === 'round-1/a').map((it) => it.state)).toEqual(['withdrawn', 'answered']);
});

test('a reply with the key error counts as failed', () => {
  const view = debate().add({ event: 'answered', key: 'round-1/a', attempt: 1, answer: { text: '{}', json: { error: 'no' } }, usage: { input: 0, output: 0 } }).view();
  expect(view.asked[0]).toMatchObject({ state: 'failed', fault: { text: 'no' } });
});

test('a run waits for a person when it waits for nothing else', () => {
  const log = new Log().started(spec(['a'], {})).asked('person/1', { kind: 'person', agent: 'a', parts: [{ say: 'Which?' }] });
  expect(waitsForPerson(log.view())).toBe(true);
  expect(statusOf(log.view(), true)).toBe('needs_input');
  expect(questions(log.view()).map((it) => it.key)).toEqual(['person/1']);
  expect(waitsForPerson(log.asked('b', agent('a')).view())).toBe(false);
});

test('the status is what the command line says', () => {
  expect(statusOf(debate().view(), true)).toBe('running');
  expect(statusOf(debate().view(), false)).toBe('interrupted');
  expect(statusOf(debate().ended().view(), true)).toBe('done');
  expect(statusOf(debate().ended('x', { done: false }).view(), true)).toBe('failed');
  expect(statusOf(debate().ended('x', { done: false, bound: true }).view(), true)).toBe('bound_reached');
  expect(statusOf(debate().ended('x', { done: false, limit: 'time' }).view(), true)).toBe('deadline');
  expect(statusOf(debate().add({ event: 'cancel_requested' }).ended('x', { done: false }).view(), true)).toBe('cancelled');
  const over = { event: 'refused', key: 'c', call: agent('a'), fault: 'over_budget', limit: 'calls', of: 'run' };
  expect(statusOf(debate().add(over).ended('x', { done: false }).view(), true)).toBe('budget_exhausted');
});

test('the answer is the replies that the end names', () => {
  const log = debate().answered('round-1/a', 'one').answered('round-1/b', 'two');
  expect(finalText(log.ended('answered', { done: true, final: { replies: ['round-1/a', 'round-1/b'] } }).view())).toBe('one\n\ntwo');
});

test('an event of a later version is noted and changes nothing else', () => {
  const view = debate().add({ event: 'promoted', key: 'round-1/a' }).view();
  expect(view.log.at(-1)?.event).toBe('promoted');
  expect(view.asked).toHaveLength(2);
});

test('a thousand calls that come in pieces are all there', () => {
  const log = new Log().started(spec(['a'], DEBATE));
  for (let n = 0; n < 1000; n += 1) log.asked(`round-${n}/a`, agent('a')).answered(`round-${n}/a`, 'x'.repeat(200));
  let view = EMPTY;
  for (let at = 0; at < log.records.length; at += 20) view = fold(view, log.records.slice(at, at + 20));
  expect(view.asked).toHaveLength(1000);
  expect(view.asked.every((it) => it.state === 'answered')).toBe(true);
});
