/** What the routes give besides the log; server.md §2, interface.md. */

export type Status =
  | 'queued'
  | 'running'
  | 'interrupted'
  | 'needs_input'
  | 'done'
  | 'failed'
  | 'cancelled'
  | 'budget_exhausted'
  | 'bound_reached'
  | 'deadline';

export interface TokenCounts {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  cost_usd?: number;
  estimated?: boolean;
}

export interface RunUsage {
  total: TokenCounts;
  agents: Record<string, TokenCounts>;
  calls: number;
}

export interface RunEntry {
  run_id: string;
  status: Status;
  reason: string | null;
  strategy: string | null;
  team: string | null;
  prompt: string;
  started_at: string | null;
  ended_at: string | null;
  usage: RunUsage | null;
  origin?: { run_id: string; seq: number; retried: boolean } | null;
}

/** The unified result, as far as the page shows it. */
export interface Outcome {
  run_id: string;
  status: Status;
  reason: string | null;
  final: string | null;
  partial?: { text: string; keys: string[] } | null;
  warnings: { code: string; message: string }[];
  graph?: { loops?: { agents: string[]; rounds: number; cap: number | null }[] };
  meta: { elapsed_seconds: number; usage: RunUsage };
}

export interface CallEntry {
  key: string;
  agent: string;
  state: 'open' | 'answered' | 'failed' | 'refused' | 'withdrawn';
  request: { messages?: { role: string; content: unknown }[]; arguments?: unknown; digest?: string };
  reply?: string;
  fault?: { error: string };
  usage?: { total_tokens?: number; prompt_tokens?: number; completion_tokens?: number; input?: number; output?: number };
  elapsed_seconds?: number;
}

export interface Shown {
  run: Outcome & { strategy: string; prompt: string };
  calls: CallEntry[];
}

export interface TeamEntry {
  name: string;
  title: string;
  description: string | null;
  strategy: string | null;
  agents: { id: string; name: string; description: string | null; model: string | null }[];
  valid: boolean;
  errors: { code: string; message: string; line?: number; column?: number; help?: string }[];
}

export interface Range {
  min: number;
  max: number | null;
}

export interface Amounts {
  calls: Range;
  tokens: Range;
  cost_usd: Range;
}

export interface Plan {
  team: string;
  strategy: string;
  bounds: Amounts & {
    critical_path: number | null;
    phases: (Amounts & { name: string; agents: string[]; any: boolean })[];
    agents: (Amounts & { id: string; name: string })[];
    limits: { calls: number | null; tokens: number | null; cost_usd: number | null; time: number | null };
    against: { agent: string | null; limit: string; allowed: number; most: number | null; fits: boolean | null }[];
    fits: boolean | null;
    unknown: { of: string; message: string; help?: string }[];
  };
  models: Record<string, string | null>;
  warnings: { code: string; message: string }[];
}

export interface Session {
  role: 'read' | 'run';
  version: string;
}

export interface Side {
  state: string;
  text: string | null;
  fault: { error: string } | null;
  total_tokens?: number | null;
  elapsed_seconds?: number | null;
}

export interface Compared {
  key: string;
  agent: string;
  state: 'same' | 'changed' | 'only_a' | 'only_b';
  a: Side | null;
  b: Side | null;
}

export interface Totals {
  calls: number;
  total_tokens: number;
  cost_usd?: number | null;
  elapsed_seconds: number | null;
}

export interface Comparison {
  calls: Compared[];
  totals: { same: number; changed: number; only_a: number; only_b: number; a: Totals; b: Totals };
}
