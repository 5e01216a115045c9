import type { CallEntry, Comparison, Plan, RunEntry, Session, Shown, TeamEntry } from './views';

/** What the server refuses, or why it cannot be reached. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly errors: { code?: string; message: string; line?: number; help?: string }[] = [],
  ) {
    super(message);
  }
}

interface ProblemBody {
  code?: string;
  title?: string;
  detail?: string;
  message?: string;
  help?: string;
  errors?: { code?: string; message: string; line?: number; help?: string }[];
}

/** Reads why a response is none; whatever the body is, this does not throw. */
export async function problemOf(response: Response): Promise<Problem> {
  let body: ProblemBody = {};
  try {
    body = (await response.json()) as ProblemBody;
  } catch {
    // Not JSON: the status tells enough.
  }
  const message = body.detail ?? body.message ?? body.title ?? `${response.status} ${response.statusText}`.trim();
  const told = body.help === undefined ? message : `${message} (${body.help})`;
  return new Problem(response.status, body.code ?? String(response.status), told, body.errors ?? []);
}

export interface Begin {
  team: string;
  prompt: string;
  limits?: Record<string, number>;
}

/** The server, as somebody with this token sees it. */
export class Client {
  constructor(private readonly token: string) {}

  async fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    headers.set('Authorization', `Bearer ${this.token}`);
    let response: Response;
    try {
      response = await fetch(path, { ...init, headers, cache: 'no-store', redirect: 'error' });
    } catch (error) {
      if (init.signal?.aborted) throw error;
      throw new Problem(0, 'unreachable', 'the server cannot be reached');
    }
    if (!response.ok) throw await problemOf(response);
    return response;
  }

  private async get<T>(path: string, signal?: AbortSignal): Promise<T> {
    const response = await this.fetch(path, signal ? { signal } : {});
    return (await response.json()) as T;
  }

  private async post<T>(path: string, body: unknown, init: RequestInit = {}): Promise<T> {
    const headers = new Headers(init.headers);
    headers.set('Content-Type', 'application/json');
    const response = await this.fetch(path, { ...init, method: 'POST', headers, body: JSON.stringify(body) });
    return (await response.json()) as T;
  }

  session(): Promise<Session> {
    return this.get('/v1/session');
  }

  runs(limit: number, signal?: AbortSignal): Promise<RunEntry[]> {
    return this.get(`/v1/runs?limit=${limit}`, signal);
  }

  teams(): Promise<TeamEntry[]> {
    return this.get('/v1/teams');
  }

  show(id: string): Promise<Shown> {
    return this.get(`/v1/runs/${encodeURIComponent(id)}`);
  }

  async call(id: string, key: string): Promise<CallEntry | null> {
    const path = `/v1/runs/${encodeURIComponent(id)}/calls?key=${encodeURIComponent(key)}`;
    const calls = await this.get<CallEntry[]>(path);
    return calls.find((call) => call.key === key) ?? null;
  }

  compare(a: string, b: string): Promise<Comparison> {
    return this.get(`/v1/runs/${encodeURIComponent(a)}/compare/${encodeURIComponent(b)}`);
  }

  plan(begin: Begin, signal: AbortSignal): Promise<Plan> {
    return this.post('/v1/plan', begin, { signal });
  }

  /** Starts a run. The same `once` never starts a second one, whatever became of the first answer. */
  start(begin: Begin, once: string): Promise<{ run_id: string }> {
    return this.post('/v1/runs', begin, { headers: { 'Idempotency-Key': once } });
  }

  act(id: string, act: Act, body: object): Promise<{ run_id: string }> {
    return this.post(`/v1/runs/${encodeURIComponent(id)}/${act}`, body);
  }
}

export type Act = 'answer' | 'cancel' | 'resume' | 'retry' | 'amend' | 'fork';
