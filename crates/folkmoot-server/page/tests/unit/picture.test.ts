import { expect, test } from 'vitest';
import { directed, layout } from '../../src/fold/layout';
import { loopsOf } from '../../src/fold/loops';
import { ANSWER, TASK, type Picture, picture } from '../../src/fold/picture';
import { activities } from '../../src/fold/waiting';
import { Log, agent, spec } from './build';

const REVIEW = {
  graph: {
    cap: 3,
    edges: [
      { from: 'parent', to: 'coder' },
      { from: 'coder', to: 'reviewer' },
      { from: 'reviewer', to: 'coder', label: 'findings' },
      { from: 'reviewer', to: 'parent', exit: true },
    ],
  },
};

function lines({ links }: Picture): string[] {
  const name = (node: string): string => (node === TASK ? 'task' : node === ANSWER ? 'answer' : node.replace('\u0000', ''));
  return links.map((link) => `${name(link.from)}${link.mutual ? '<' : ''}->${name(link.to)}${link.back ? ' back' : ''} ${link.count}${link.live ? ' live' : ''}`);
}

test('a graph is drawn from its edges, and lights up where a message is being worked on', () => {
  const log = new Log().started(spec(['coder', 'reviewer'], REVIEW)).asked('coder/1', agent('coder'));
  expect(lines(picture(log.view()))).toEqual(['task->coder 1 live', 'coder->reviewer 0', 'reviewer->coder back 0', 'reviewer->answer 0']);
  log.answered('coder/1', 'draft').asked('reviewer/1', agent('reviewer', ['task', { quote: 'coder/1' }]));
  expect(lines(picture(log.view()))).toEqual(['task->coder 1', 'coder->reviewer 1 live', 'reviewer->coder back 0', 'reviewer->answer 0']);
  log.answered('reviewer/1', 'no').asked('coder/2', agent('coder', ['task', { own: 'coder/1' }, { handed: { key: 'reviewer/1', label: 'findings' } }]));
  expect(lines(picture(log.view()))[2]).toBe('reviewer->coder back 1 live');
  expect(picture(log.view()).loops).toEqual([{ agents: ['coder', 'reviewer'], round: 2, cap: 3 }]);
});

test('the way out is taken by whoever chose it, though another wrote the answer', () => {
  const log = new Log().started(spec(['coder', 'reviewer'], REVIEW)).asked('coder/1', agent('coder')).answered('coder/1', 'draft');
  log.asked('reviewer/1', agent('reviewer', [{ quote: 'coder/1' }])).answered('reviewer/1', 'fine');
  const view = log.ended('completed', { done: true, final: { replies: ['coder/1'] } }).view();
  expect(lines(picture(view))).toContain('reviewer->answer 1');
  expect(picture(view).links).toHaveLength(4);
});

test('those who hear each other sit around a table, and are told the task as one', () => {
  const form = { debate: { agents: ['a', 'b', 'c'], rounds: 2, judge: 'c' } };
  const log = new Log().started(spec(['a', 'b', 'c'], form));
  for (const name of ['a', 'b', 'c']) log.asked(`round-1/${name}`, agent(name));
  const drawn = picture(log.view());
  expect(drawn.groups.map((group) => group.agents)).toEqual([['a', 'b', 'c']]);
  expect(lines(drawn)).toContain('task->group-0 1 live');
  expect(lines(drawn)).toContain('c->answer 0');
  const { places } = directed(drawn, 'LR');
  const x = (node: string): number => places.get(node)?.x ?? NaN;
  expect(x('c')).toBeGreaterThan(Math.max(x('a'), x('b')));
});

test('many that are alike stand in one frame', () => {
  const names = Array.from({ length: 100 }, (_, n) => `agent-${n}`);
  const drawn = picture(new Log().started(spec(names, { broadcast: { agents: names, rounds: 1 } })).view());
  expect(drawn.links).toHaveLength(2);
  const { places } = layout(drawn, { width: 800, height: 500 });
  const boxes = names.map((name) => places.get(name));
  expect(new Set(boxes.map((box) => `${box?.x},${box?.y}`)).size).toBe(100);
});

test('whoever can still be asked waits for whoever is working', () => {
  const log = new Log().started(spec(['coder', 'reviewer'], REVIEW)).asked('coder/1', agent('coder'));
  expect(activities(log.view()).get('coder')).toEqual({ kind: 'working', keys: ['coder/1'] });
  expect(activities(log.view()).get('reviewer')).toEqual({ kind: 'waits', for: ['coder'] });
  log.failed('coder/1', 'boom').ended('x', { done: false });
  expect(activities(log.view()).get('coder')).toEqual({ kind: 'failed' });
  expect(activities(log.view()).get('reviewer')).toEqual({ kind: 'idle' });
});

test('loops are found whatever leads into them, and long chains are no matter', () => {
  const edges = (...pairs: string[]): { from: string; to: string }[] => pairs.map((pair) => ({ from: pair[0] ?? '', to: pair[1] ?? '' }));
  expect(loopsOf(edges('ab', 'bc', 'cb', 'cd'))).toEqual([['b', 'c']]);
  expect(loopsOf(edges('aa', 'ab'))).toEqual([['a']]);
  expect(loopsOf(edges('ab', 'ba', 'bc', 'ca'))).toEqual([['a', 'b', 'c']]);
  expect(loopsOf(Array.from({ length: 20_000 }, (_, n) => ({ from: `${n}`, to: `${n + 1}` })))).toEqual([]);
});

test('a name is never taken for another that begins like it', () => {
  const log = new Log().started(spec(['__proto__', 'constructor', 'a', 'a/b'], { broadcast: { agents: ['__proto__', 'constructor'], rounds: 1 } }));
  log.asked('round-1/__proto__', agent('__proto__')).answered('round-1/__proto__', 'x');
  expect(lines(picture(log.view()))).toContain('task->__proto__ 1');
});

test('workers are told their parts by their supervisor', () => {
  const form = { supervisor: { supervisor: 's', workers: ['a', 'b'] } };
  const log = new Log().started(spec(['s', 'a', 'b'], form)).asked('plan', agent('s')).answered('plan', '{}');
  log.asked('work/t1', agent('a', ['task', { say: 'Your part' }])).answered('work/t1', 'x').asked('work/t2', agent('b', ['task', { quote: 'work/t1' }]));
  expect(lines(picture(log.view()))).toEqual(['task->s 1', 's<->a 1', 's<->b 0', 's->answer 0', 'a->b 1 live']);
});
