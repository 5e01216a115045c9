import { type FormEvent, type ReactNode, useState } from 'react';
import { type Act, type Client, Problem } from '../api/client';
import type { RunEntry } from '../api/views';
import { go } from '../route';
import { useLanguage } from '../text/words';
import { Dialog } from './dialog';
import { Field } from './field';
import { Refusal } from './refusal';
import { useRuns } from './runs-context';

/** What a person is about to do to a run. */
export type Intent =
  | { act: 'cancel' }
  | { act: 'retry'; from?: string }
  | { act: 'amend'; key: string; text: string }
  | { act: 'fork'; at: number }
  | { act: 'fork'; before: string }
  | { act: 'fork'; instead: string; text: string }
  | { act: 'compare' };

export function ActDialog({ client, run, intent, onClose }: { client: Client; run: string; intent: Intent; onClose(): void }) {
  const { words } = useLanguage();
  const { acts } = words;
  const given = { client, run, onClose };
  switch (intent.act) {
    case 'cancel':
      return <Confirm {...given} act="cancel" title={acts.cancelTitle} why={acts.cancelWhy} go={acts.cancelGo} isGrave body={() => ({})} />;
    case 'retry':
      return (
        <Confirm
          {...given}
          act="retry"
          title={acts.retryTitle}
          why={intent.from === undefined ? acts.retryWhy : acts.retryFrom(intent.from)}
          go={acts.retryGo}
          field={{ label: acts.retryWords, begin: '', isNeeded: false }}
          body={(text) => ({ ...(intent.from === undefined ? {} : { from: intent.from }), ...(text.trim() === '' ? {} : { prompt: text }) })}
        />
      );
    case 'amend':
      return (
        <Confirm
          {...given}
          act="amend"
          title={acts.amendTitle}
          why={acts.amendWhy(intent.key)}
          go={acts.amendGo}
          field={{ label: acts.text, begin: intent.text, isNeeded: true }}
          body={(text) => ({ key: intent.key, text })}
        />
      );
    case 'fork':
      if ('instead' in intent) {
        const { instead, text: begin } = intent;
        return (
          <Confirm
            {...given}
            act="fork"
            title={acts.forkTitle}
            why={acts.forkAnswer(instead)}
            go={acts.forkGo}
            field={{ label: acts.text, begin, isNeeded: true }}
            body={(text) => ({ answers: { [instead]: text } })}
          />
        );
      }
      return (
        <Confirm
          {...given}
          act="fork"
          title={acts.forkTitle}
          why={'at' in intent ? acts.forkAt(intent.at) : acts.forkBefore(intent.before)}
          go={acts.forkGo}
          body={() => ({ at: 'at' in intent ? intent.at : intent.before })}
        />
      );
    case 'compare':
      return <Other run={run} onClose={onClose} />;
  }
}

interface Asking {
  client: Client;
  run: string;
  act: Act;
  title: string;
  why: string;
  go: string;
  isGrave?: boolean;
  field?: { label: string; begin: string; isNeeded: boolean };
  body(text: string): object;
  onClose(): void;
}

/** Says what will happen, takes a text where one is needed, and does it. */
function Confirm({ client, run, act, title, why, go: label, isGrave = false, field, body, onClose }: Asking) {
  const { words } = useLanguage();
  const { refresh } = useRuns();
  const [text, setText] = useState(field?.begin ?? '');
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isSent, setSent] = useState(false);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    if (isSent) return;
    setSent(true);
    try {
      const { run_id } = await client.act(run, act, body(text));
      refresh();
      onClose();
      if (run_id && run_id !== run) go({ at: 'run', id: run_id });
    } catch (error) {
      setSent(false);
      setProblem(error instanceof Problem ? error : new Problem(0, 'failed', String(error)));
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={(event) => void submit(event)} className="stack">
        <p dir="auto">{why}</p>
        {field && (
          <Field label={field.label}>
            {(id) => <textarea id={id} dir="auto" rows={6} value={text} onChange={(event) => setText(event.target.value)} data-first />}
          </Field>
        )}
        {problem && <Refusal problem={problem} />}
        <Buttons>
          <button type="button" onClick={onClose} data-first={isGrave || undefined}>
            {words.acts.back}
          </button>
          <button
            type="submit"
            className={isGrave ? 'grave' : 'main'}
            disabled={isSent || (field?.isNeeded === true && text.trim() === '')}
            data-first={!isGrave && field === undefined ? true : undefined}
          >
            {label}
          </button>
        </Buttons>
      </form>
    </Dialog>
  );
}

function Buttons({ children }: { children: ReactNode }) {
  return <div className="row end">{children}</div>;
}

/** Chooses the run to compare with: those of the same task first. */
function Other({ run, onClose }: { run: string; onClose(): void }) {
  const { words } = useLanguage();
  const { list } = useRuns();
  const own = list?.find((it) => it.run_id === run);
  const isNear = (it: RunEntry): boolean => it.prompt === own?.prompt || it.origin?.run_id === run || own?.origin?.run_id === it.run_id;
  const others = (list ?? []).filter((it) => it.run_id !== run);
  const sorted = [...others.filter(isNear), ...others.filter((it) => !isNear(it))];
  const [other, setOther] = useState(sorted[0]?.run_id ?? '');
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    onClose();
    go({ at: 'compare', a: run, b: other });
  };
  return (
    <Dialog title={words.acts.compareTitle} onClose={onClose}>
      {sorted.length === 0 ? (
        <p>{words.acts.compareNone}</p>
      ) : (
        <form onSubmit={submit} className="stack">
          <Field label={words.acts.compareWith}>
            {(id) => (
              <select id={id} value={other} onChange={(event) => setOther(event.target.value)} data-first>
                {sorted.map((it) => (
                  <option key={it.run_id} value={it.run_id}>
                    {`${it.run_id} · ${words.status(it.status)} · ${it.team ?? ''} · ${it.prompt.slice(0, 60)}`}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <Buttons>
            <button type="button" onClick={onClose}>
              {words.acts.back}
            </button>
            <button type="submit" className="main">
              {words.acts.compareGo}
            </button>
          </Buttons>
        </form>
      )}
    </Dialog>
  );
}
