import { type FormEvent, type KeyboardEvent, useState } from 'react';
import { type Client, Problem } from '../api/client';
import type { Asked, RunView } from '../fold/run';
import { questionText } from '../fold/run';
import { useLanguage } from '../text/words';
import { Field } from './field';
import { Icon } from './icon';
import { Refusal } from './refusal';
import { useRuns } from './runs-context';
import { Foreign, Said } from './text';

/** The questions that a run asks a person, and where they are answered. */
export function AnswerBox({ client, run, view, open }: { client: Client; run: string; view: RunView; open: Asked[] }) {
  const { words } = useLanguage();
  const { refresh } = useRuns();
  const [chosen, choose] = useState(open[0]?.key ?? '');
  const [text, setText] = useState('');
  const [problem, setProblem] = useState<Problem | null>(null);
  const [sent, setSent] = useState<string | null>(null);
  const asked = open.find((it) => it.key === chosen) ?? open[0];
  if (!asked) return null;
  const name = view.members.find((it) => it.id === asked.agent)?.name ?? asked.agent;
  const isSent = sent === `${asked.key}/${asked.seq}`;
  const send = async (): Promise<void> => {
    if (isSent || text.trim() === '') return;
    setSent(`${asked.key}/${asked.seq}`);
    setProblem(null);
    try {
      await client.act(run, 'answer', { text, key: asked.key });
      setText('');
      refresh();
    } catch (error) {
      setSent(null);
      setProblem(error instanceof Problem ? error : new Problem(0, 'failed', String(error)));
    }
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    void send();
  };
  const keyed = (event: KeyboardEvent): void => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) void send();
  };
  return (
    <section className="answer-box" aria-label={words.status('needs_input')}>
      <div className="answer-question">
        <p className="answer-who">
          <Icon shape="question" />
          <strong>
            <Foreign>{name}</Foreign>
          </strong>{' '}
          {words.call.question} <span className="mono soft">{asked.key}</span>
        </p>
        {open.length > 1 && (
          <Field label={words.acts.which} isInline>
            {(id) => (
              <select id={id} value={asked.key} onChange={(event) => choose(event.target.value)}>
                {open.map((it) => (
                  <option key={it.key}>{it.key}</option>
                ))}
              </select>
            )}
          </Field>
        )}
        <Said text={questionText(view, asked.call)} key={asked.seq} />
      </div>
      <form onSubmit={submit} className="answer-form">
        <Field label={words.acts.yourAnswer}>
          {(id) => <textarea id={id} dir="auto" rows={3} value={text} onChange={(event) => setText(event.target.value)} onKeyDown={keyed} />}
        </Field>
        {problem && <Refusal problem={problem} />}
        <div className="row end">
          <kbd className="soft">Ctrl ↵</kbd>
          <button type="submit" className="main" disabled={isSent || text.trim() === ''}>
            {words.acts.send}
          </button>
        </div>
      </form>
    </section>
  );
}
