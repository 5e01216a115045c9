import { type FormEvent, type KeyboardEvent, useEffect, useMemo, useState } from 'react';
import { type Begin, type Client, Problem } from '../api/client';
import type { Plan, TeamEntry } from '../api/views';
import { go } from '../route';
import { useLanguage } from '../text/words';
import { Field } from './field';
import { PlanView } from './plan';
import { Refusal } from './refusal';
import { useRuns } from './runs-context';
import { Foreign } from './text';

const SETTLED_MS = 350;
const LIMITS = ['calls', 'tokens', 'cost_usd', 'time'] as const;
type LimitName = (typeof LIMITS)[number];

/** The form that starts a run. It can be sent once the plan of exactly what it says was shown. */
export function StartRun({ client }: { client: Client }) {
  const { words } = useLanguage();
  const { refresh } = useRuns();
  const { teams, problem: noTeams } = useTeams(client);
  const [name, setName] = useState('');
  const [prompt, setPrompt] = useState('');
  const [limits, setLimits] = useState<Partial<Record<LimitName, string>>>({});
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isStarting, setStarting] = useState(false);
  const team = teams?.find((it) => it.name === name) ?? teams?.find((it) => it.valid);
  const begin = useMemo(() => beginOf(team, prompt, limits), [team, prompt, limits]);
  const planned = usePlan(client, begin);
  const once = useMemo(() => crypto.randomUUID(), [planned.plan]);
  const isReady = planned.plan !== null && !isStarting;

  const start = async (): Promise<void> => {
    if (!begin || !isReady) return;
    setStarting(true);
    setProblem(null);
    try {
      const { run_id } = await client.start(begin, once);
      refresh();
      go({ at: 'run', id: run_id });
    } catch (error) {
      setProblem(error instanceof Problem ? error : new Problem(0, 'failed', String(error)));
      setStarting(false);
    }
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    void start();
  };
  const keyed = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void start();
  };
  const label: Record<LimitName, string> = {
    calls: words.start.calls,
    tokens: words.start.tokens,
    cost_usd: words.start.cost,
    time: words.start.time,
  };
  return (
    <div className="start">
      <form onSubmit={submit} className="start-form stack">
        <h1>{words.start.title}</h1>
        {noTeams && <Refusal problem={noTeams} />}
        {teams?.length === 0 && <p className="soft">{words.start.noTeams}</p>}
        <fieldset className="teams">
          <legend>{words.start.team}</legend>
          {teams?.map((it) => (
            <label key={it.name} className="team">
              <input
                type="radio"
                name="team"
                value={it.name}
                checked={it === team}
                disabled={!it.valid}
                onChange={() => setName(it.name)}
              />
              <span className="team-text">
                <strong>
                  <Foreign>{it.title}</Foreign>
                </strong>{' '}
                {it.strategy && <span className="soft">{it.strategy}</span>}
                <span className="team-more soft" dir="auto">
                  {it.valid ? (it.description ?? it.agents.map((agent) => agent.name).join(', ')) : words.start.broken}
                  {!it.valid && it.errors[0] && `: ${it.errors[0].message}`}
                </span>
              </span>
            </label>
          ))}
        </fieldset>
        <Field label={words.start.task}>
          {(id) => (
            <textarea
              id={id}
              dir="auto"
              rows={5}
              required
              placeholder={words.start.taskHint}
              value={prompt}
              onChange={(event) => setPrompt(event.target.value)}
              onKeyDown={keyed}
            />
          )}
        </Field>
        <details className="limits">
          <summary>{words.start.limits}</summary>
          <p className="soft">{words.start.limitsHint}</p>
          <div className="limits-fields">
            {LIMITS.map((limit) => (
              <Field label={label[limit]} key={limit}>
                {(id) => (
                  <input
                    id={id}
                    type="number"
                    min="0"
                    step={limit === 'cost_usd' || limit === 'time' ? 'any' : '1'}
                    inputMode="decimal"
                    value={limits[limit] ?? ''}
                    onChange={(event) => setLimits({ ...limits, [limit]: event.target.value })}
                  />
                )}
              </Field>
            ))}
          </div>
        </details>
      </form>
      <section className="start-plan stack" aria-label={words.start.plan} aria-live="polite">
        <h2>{words.start.plan}</h2>
        {planned.plan && begin ? (
          <PlanView plan={planned.plan} agents={team?.agents ?? []} />
        ) : planned.problem ? (
          <Refusal problem={planned.problem} />
        ) : (
          <p className="soft">{begin ? words.start.planning : words.start.planHint}</p>
        )}
        {problem && <Refusal problem={problem} />}
        <div className="row end">
          <kbd className="soft">Ctrl ↵</kbd>
          <button type="button" className="main" disabled={!isReady} title={isReady ? undefined : words.start.needPlan} onClick={() => void start()}>
            {isStarting ? words.start.starting : words.start.go}
          </button>
        </div>
      </section>
    </div>
  );
}

function beginOf(team: TeamEntry | undefined, prompt: string, limits: Partial<Record<LimitName, string>>): Begin | null {
  if (!team?.valid || prompt.trim() === '') return null;
  const set = LIMITS.flatMap((name): [string, number][] => {
    const value = limits[name]?.trim() ?? '';
    return value === '' || !Number.isFinite(Number(value)) ? [] : [[name, Number(value)]];
  });
  return { team: team.name, prompt, ...(set.length > 0 ? { limits: Object.fromEntries(set) } : {}) };
}

function useTeams(client: Client): { teams: TeamEntry[] | null; problem: Problem | null } {
  const [teams, setTeams] = useState<TeamEntry[] | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    client.teams().then(setTeams, (error: unknown) => error instanceof Problem && setProblem(error));
  }, [client]);
  return { teams, problem };
}

/** The plan of what is written, once nobody has typed for a moment; none while it is another's. */
function usePlan(client: Client, begin: Begin | null): { plan: Plan | null; problem: Problem | null } {
  const [found, setFound] = useState<{ of: Begin; plan: Plan | null; problem: Problem | null } | null>(null);
  useEffect(() => {
    if (!begin) return;
    const end = new AbortController();
    const timer = setTimeout(() => {
      client.plan(begin, end.signal).then(
        (plan) => setFound({ of: begin, plan, problem: null }),
        (error: unknown) => error instanceof Problem && setFound({ of: begin, plan: null, problem: error }),
      );
    }, SETTLED_MS);
    return () => {
      clearTimeout(timer);
      end.abort();
    };
  }, [client, begin]);
  return found && found.of === begin ? found : { plan: null, problem: null };
}
