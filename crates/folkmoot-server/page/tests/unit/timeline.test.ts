import { expect, test } from 'vitest';
import { step, ticks, timeline, visible } from '../../src/fold/timeline';
import { neighbour } from '../../src/page/timeline';
import { Log, agent, spec } from './build';

const FORM = { broadcast: { agents: ['a', 'b'], rounds: 1 } };

test('calls of one agent at the same time stand below each other, others beside', () => {
  const log = new Log().started(spec(['a', 'b'], FORM));
  log.asked('1', agent('a')).asked('2', agent('a')).answered('1', 'x').asked('3', agent('a')).asked('4', agent('b'));
  const { lanes } = timeline(log.view());
  expect(lanes.map((lane) => [lane.agent, lane.rows, lane.bars.map((bar) => [bar.asked.key, bar.row])])).toEqual([
    ['a', 2, [['1', 0], ['2', 1], ['3', 0]]],
    ['b', 1, [['4', 0]]],
  ]);
});

test('steps of the axis are round for people', () => {
  expect(step(9_000, 10)).toBe(1_000);
  expect(step(3_000_000, 6)).toBe(500_000);
  expect(step(65_000_000, 6)).toBe(15_000_000);
  expect(step(7_200_000_000, 6)).toBe(1_800_000_000);
  expect(step(1, 10)).toBe(1);
  expect(step(0, 0)).toBe(1);
  expect(ticks(1_000_000, 5)).toEqual([0, 200_000, 400_000, 600_000, 800_000, 1_000_000]);
});

test('only what can be seen is drawn', () => {
  const log = new Log().started(spec(['a', 'b'], FORM));
  for (let n = 0; n < 1000; n += 1) log.asked(`${n}`, agent('a')).answered(`${n}`, 'x');
  const [lane] = timeline(log.view()).lanes;
  expect(visible(lane?.bars ?? [], 1_000_000, 1_100_000, 20_000_000).length).toBeLessThan(10);
});

test('arrow keys go along a lane and to the nearest call of the next', () => {
  const log = new Log().started(spec(['a', 'b'], FORM));
  log.asked('1', agent('a')).answered('1', 'x').asked('2', agent('a')).asked('3', agent('b'));
  const { lanes } = timeline(log.view());
  expect(neighbour(lanes, 2, 'ArrowRight')).toBe(4);
  expect(neighbour(lanes, 4, 'ArrowLeft')).toBe(2);
  expect(neighbour(lanes, 2, 'ArrowDown')).toBe(5);
  expect(neighbour(lanes, 5, 'ArrowUp')).toBe(4);
  expect(neighbour(lanes, 2, 'ArrowLeft')).toBeNull();
  expect(neighbour(lanes, 2, 'x')).toBeNull();
});
