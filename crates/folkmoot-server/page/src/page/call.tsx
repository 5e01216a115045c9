import { useEffect, useState } from 'react';
import { type Client, Problem } from '../api/client';
import type { CallEntry } from '../api/views';
import { type Asked, tokensOf } from '../fold/run';
import { count, duration } from '../text/format';
import { useLanguage } from '../text/words';
import type { Intent } from './acts';
import { Dialog } from './dialog';
import { Refusal } from './refusal';
import { Said } from './text';

interface Given {
  client: Client;
  run: string;
  asked: Asked;
  name: string;
  /** Whether the run goes on, so that an answer can still be amended in it. */
  isUnderWay: boolean;
  mayAct: boolean;
  onIntent(intent: Intent): void;
  onClose(): void;
}

/** One call in full: what it was asked, what it took, and what can be done from here. */
export function CallDialog({ client, run, asked, name, isUnderWay, mayAct, onIntent, onClose }: Given) {
  const { locale, words } = useLanguage();
  const { acts } = words;
  const text = asked.answer?.text ?? '';
  const isAnswerable = asked.call.kind === 'agent' || asked.call.kind === 'person' || asked.call.kind === 'team';
  const { call, isNone, problem } = useCall(client, run, asked.key);
  const took = asked.settledAt === null ? null : duration(asked.settledAt - asked.askedAt);
  return (
    <Dialog title={`${name} · ${asked.key}`} onClose={onClose} wide>
      <p className="soft num">
        {[
          words.call[asked.state],
          took,
          `${words.cost.tokens}: ${count(tokensOf(asked.usage), locale)}`,
          asked.attempt > 1 && words.call.attempt(asked.attempt),
          asked.inherited && words.call.inherited,
          asked.amended && words.call.amended,
        ]
          .filter(Boolean)
          .join(' · ')}
      </p>
      {mayAct && (
        <div className="row wrap">
          {isAnswerable && isUnderWay && (
            <button type="button" onClick={() => onIntent({ act: 'amend', key: asked.key, text })}>
              {acts.amend}
            </button>
          )}
          {isAnswerable && asked.state !== 'open' && (
            <button type="button" onClick={() => onIntent({ act: 'fork', instead: asked.key, text })}>
              {acts.forkOther}
            </button>
          )}
          <button type="button" onClick={() => onIntent({ act: 'fork', before: asked.key })}>
            {acts.forkHere}
          </button>
          {!isUnderWay && (
            <button type="button" onClick={() => onIntent({ act: 'retry', from: asked.key })}>
              {acts.retryHere}
            </button>
          )}
        </div>
      )}
      <h3 className="label">{words.call.asked}</h3>
      {problem && <Refusal problem={problem} />}
      {call?.request.messages?.map((message, at) => (
        <div className="message" key={at}>
          <span className="mono soft">{message.role}</span>
          <Said text={typeof message.content === 'string' ? message.content : JSON.stringify(message.content, null, 2)} plain />
        </div>
      ))}
      {call?.request.arguments !== undefined && <Said text={JSON.stringify(call.request.arguments, null, 2)} plain />}
      {call === null && !isNone && !problem && <p className="soft">{words.run.loading}</p>}
      {isNone && <p className="soft">{words.call.askedNone}</p>}
    </Dialog>
  );
}

function useCall(client: Client, run: string, key: string): { call: CallEntry | null; isNone: boolean; problem: Problem | null } {
  const [found, setFound] = useState<{ call: CallEntry | null } | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    client.call(run, key).then(
      (call) => setFound({ call }),
      (error: unknown) => error instanceof Problem && setProblem(error),
    );
  }, [client, run, key]);
  return { call: found?.call ?? null, isNone: found?.call === null, problem };
}
