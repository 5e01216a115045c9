import type { Status } from '../api/views';
import type { CallState } from '../fold/run';

/** Shapes on a grid of 12; each state has a shape of its own, so that colour is never needed to tell it. */
const SHAPES = {
  check: 'M2 6.5 4.8 9.3 10 3',
  cross: 'M3 3l6 6M9 3l-6 6',
  play: 'M3.5 2.5 9.5 6l-6 3.5z',
  pause: 'M4 2.5v7M8 2.5v7',
  question: 'M3.8 4.3a2.2 2.2 0 1 1 3.2 2c-.7.4-1 .8-1 1.5M6 9.9v.2',
  stop: 'M6 1.8a4.2 4.2 0 1 1 0 8.4 4.2 4.2 0 0 1 0-8.4M3.2 8.8l5.6-5.6',
  bound: 'M2 6h6M6 3.8 8.2 6 6 8.2M10 2v8',
  clock: 'M6 1.8a4.2 4.2 0 1 1 0 8.4 4.2 4.2 0 0 1 0-8.4M6 3.6V6l1.8 1.3',
  dots: 'M2.2 6h.2M5.9 6h.2M9.6 6h.2',
  plus: 'M6 2v8M2 6h8',
  minus: 'M2 6h8',
  fit: 'M2 4.5V2h2.5M7.5 2H10v2.5M10 7.5V10H7.5M4.5 10H2V7.5',
  fork: 'M3 2v8M3 6.5c3.5 0 5.5-1 5.5-4M6.8 3.6 8.5 2l1.6 1.6',
  tool: 'M7.8 2.2a2.6 2.6 0 0 0-3 3.6L2 8.6 3.4 10l2.8-2.8a2.6 2.6 0 0 0 3.6-3L8.2 5.6 6.4 3.8z',
  theme: 'M6 1.4a4.6 4.6 0 1 1 0 9.2 4.6 4.6 0 0 1 0-9.2M6 1.6v8.8M7.4 2.4v7.2M8.8 3.6v4.8',
  pencil: 'M2 10l.6-2.4L8 2.2l1.8 1.8-5.4 5.4z',
} as const;

export type Shape = keyof typeof SHAPES;

export function Icon({ shape }: { shape: Shape }) {
  return (
    <svg className="icon" viewBox="0 0 12 12" aria-hidden="true" focusable="false">
      <path d={SHAPES[shape]} />
    </svg>
  );
}

export const STATUS_SHAPE: Record<Status, Shape> = {
  queued: 'dots',
  running: 'play',
  interrupted: 'pause',
  needs_input: 'question',
  done: 'check',
  failed: 'cross',
  cancelled: 'stop',
  budget_exhausted: 'bound',
  bound_reached: 'bound',
  deadline: 'clock',
};

export const CALL_SHAPE: Record<CallState, Shape> = {
  open: 'play',
  answered: 'check',
  failed: 'cross',
  refused: 'stop',
  withdrawn: 'minus',
};

/** Which of the few colours a status has. */
export function toneOf(status: Status): string {
  switch (status) {
    case 'running':
    case 'done':
      return 'good';
    case 'failed':
    case 'budget_exhausted':
    case 'deadline':
      return 'bad';
    case 'needs_input':
    case 'bound_reached':
    case 'interrupted':
      return 'wait';
    case 'queued':
    case 'cancelled':
      return 'calm';
  }
}
