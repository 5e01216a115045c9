/** The log of a run as the server streams it: only what the page reads of it. */

export type Micros = number;

export interface Tokens {
  input: number;
  cached?: number;
  cache_write?: number;
  output: number;
}

/** `cost` is in millionths of a millionth of a US dollar. */
export interface Usage extends Tokens {
  cost?: number;
  estimated?: boolean;
}

export interface Limits {
  calls?: number;
  tokens?: number;
  soft_tokens?: number;
  cost?: number;
  time?: Micros;
  concurrency?: number;
}

export type Part =
  | 'task'
  | { say: string }
  | { quote: string }
  | { own: string }
  | { handed: { key: string; label: string } }
  | { result: string }
  | { returned: { to: string; key: string } }
  | { told: { to: string; text: string } }
  | { memory: string[] }
  | { findings: string }
  | { board: { since?: string; replies: string[]; of: string } };

interface Prompt {
  continues?: string;
  parts: Part[];
}

export interface ToolCall {
  id: string;
  name: string;
  arguments: unknown;
}

export type Call =
  | ({ kind: 'agent'; agent: string; target?: number } & Prompt)
  | ({ kind: 'team'; agent: string } & Prompt)
  | ({ kind: 'person'; agent: string } & Prompt)
  | ({ kind: 'tool'; agent: string; repeatable: boolean } & ToolCall)
  | { kind: 'gate'; agent: string; gate: unknown; of: string }
  | { kind: 'exchange'; agent: string; after?: string; told: { key: string; reply?: string }[] }
  | { kind: 'listing'; agent: string; server: string };

export interface Answer {
  text: string;
  json?: unknown;
  reasoning?: string;
  tool_calls?: ToolCall[];
  asks?: boolean;
  warnings?: string[];
}

export type Fault =
  | { fault: 'failed'; kind: string; text: string }
  | { fault: 'over_budget'; limit: string; of: string }
  | { fault: 'timed_out' | 'deadline' | 'cancelled' | 'lost' | 'unwanted' };

export interface Edge {
  from: string;
  to: string;
  label?: string;
  exit?: boolean;
}

export interface Graph {
  edges: Edge[];
  topology?: string;
  cap?: number;
  judge?: string;
  routing?: 'engine' | 'lead';
}

/** How a team works: `{debate: {…}}`, `{graph: {…}}`, `{adaptive: {debate: {…}}}`, … */
export type Collaboration = Record<string, unknown>;

export type Target = string | Record<string, unknown>;

export interface Agent {
  id: string;
  name: string;
  description?: string;
  limits?: Limits;
  target: Target;
}

export interface Spec {
  team: { name: string; agents: Agent[]; staff?: Agent[] };
  task: string;
  collaboration: Collaboration;
  auto?: { rule: string; chose: string; because: string };
  limits?: Limits;
  warnings?: { code: string; message: string }[];
}

interface Settled {
  answer?: Answer;
  fault?: Fault;
}

export type Event =
  | { event: 'started'; spec: Spec; wall: Micros; origin?: { run: string; seq: number; sent?: unknown } }
  | ({ event: 'inherited'; key: string; call: Call; nth: number } & Settled)
  | { event: 'prompted'; key: string; text: string }
  | { event: 'resumed'; wall: Micros }
  | ({ event: 'answered'; key: string; attempt: number; usage: Usage } & Settled)
  | { event: 'amended'; key: string; text: string }
  | { event: 'cancel_requested' }
  | { event: 'ticked' }
  | { event: 'woken'; wall: Micros }
  | { event: 'saved'; key: string }
  | { event: 'asked'; key: string; call: Call; nth: number; expires?: Micros }
  | { event: 'refused'; key: string; call: Call }
  | { event: 'withdrawn'; key: string; usage?: Usage }
  | ({ event: 'concluded'; key: string } & Settled)
  | {
      event: 'ended';
      done: boolean;
      bound?: boolean;
      limit?: string;
      reason: string;
      final?: { replies: string[] } | { literal: string };
      partial?: string[];
    };

export type LogRecord = { seq: number; at: Micros } & Event;

/** A piece of a reply that is still coming. */
export interface Delta {
  type: 'delta';
  key: string;
  agent: string;
  text?: string;
  reasoning?: string;
  retry?: string;
}

/** Refused and withdrawn events hold the fault beside their own fields, so `fault` is its name there. */
export function faultOf(event: object): Fault | undefined {
  const { fault } = event as { fault?: unknown };
  if (typeof fault === 'string') return event as Fault;
  return (fault as Fault | undefined) ?? undefined;
}
