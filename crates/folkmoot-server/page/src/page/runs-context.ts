import { createContext, useCallback, useContext, useEffect, useRef, useState } from 'react';
import { type Client, Problem } from '../api/client';
import type { RunEntry } from '../api/views';

const SHOWN_MS = 2000;
const HIDDEN_MS = 15_000;
const MOST = 500;

export interface Runs {
  /** Null until the first list has come. */
  list: RunEntry[] | null;
  problem: Problem | null;
  refresh(): void;
}

export const RunsContext = createContext<Runs>({ list: null, problem: null, refresh: () => undefined });

export function useRuns(): Runs {
  return useContext(RunsContext);
}

/** The list of runs, asked for again and again; rarely while nobody looks. */
export function usePolledRuns(client: Client | null): Runs {
  const [list, setList] = useState<RunEntry[] | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const wake = useRef<() => void>(() => undefined);

  useEffect(() => {
    if (!client) return;
    const end = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let text = '';
    const ask = async (): Promise<void> => {
      clearTimeout(timer);
      try {
        const runs = await client.runs(MOST, end.signal);
        const now = JSON.stringify(runs);
        if (now !== text) setList(runs);
        text = now;
        setProblem(null);
      } catch (error) {
        if (end.signal.aborted) return;
        setProblem(error instanceof Problem ? error : new Problem(0, 'failed', String(error)));
      }
      clearTimeout(timer);
      timer = setTimeout(() => void ask(), document.hidden ? HIDDEN_MS : SHOWN_MS);
    };
    wake.current = () => void ask();
    const shown = (): void => void (document.hidden || ask());
    document.addEventListener('visibilitychange', shown);
    void ask();
    return () => {
      end.abort();
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', shown);
    };
  }, [client]);

  const refresh = useCallback(() => wake.current(), []);
  return { list, problem, refresh };
}
