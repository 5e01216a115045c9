import { type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type { Client } from '../api/client';
import type { Micros } from '../api/log';
import type { Status } from '../api/views';
import { type Asked, type RunView, questions, statusOf, waitsForPerson } from '../fold/run';
import { unwrapped } from '../fold/waiting';
import { href } from '../route';
import { useLanguage } from '../text/words';
import { ActDialog, type Intent } from './acts';
import { AnswerBox } from './answer';
import { CallDialog } from './call';
import { ConversationView } from './conversation';
import { CostView, Meters } from './cost';
import { EventsView } from './events';
import { Icon, STATUS_SHAPE, toneOf } from './icon';
import { PictureView } from './picture';
import { Refusal } from './refusal';
import { useRuns } from './runs-context';
import { useFollowed } from './store';
import { type Tab, Tabs, useIsWide } from './tabs';
import { Foreign } from './text';
import { TimelineView } from './timeline';

const TICK_MS = 250;

/** One run: what it is about, how it stands, and the views of it. */
export function RunPage({ client, id, mayAct }: { client: Client; id: string; mayAct: boolean }) {
  const { words } = useLanguage();
  const { view, flows, connection, problem } = useFollowed(client, id);
  const { list } = useRuns();
  const entry = list?.find((run) => run.run_id === id);
  const status = shownStatus(view, entry?.status, connection);
  const now = useNow(view, status);
  const [selected, setSelected] = useState<number | null>(null);
  const [opened, setOpened] = useState<Asked | null>(null);
  const [intent, setIntent] = useState<Intent | null>(null);
  const isWide = useIsWide();
  const [tab, setTab] = useState<string>('conversation');
  const select = useCallback((seq: number) => {
    setSelected(seq);
    setTab('conversation');
  }, []);
  const fork = useCallback((at: number) => setIntent({ act: 'fork', at }), []);
  const mark = useCallback((seq: number) => setSelected(seq), []);
  const open = useMemo(() => questions(view), [view]);
  useTitle(view.seq === 0 ? null : `${words.status(status)} · ${(view.spec?.task ?? '').slice(0, 60)}`);

  if (view.seq === 0) return <div className="run-empty">{problem ? <Refusal problem={problem} /> : <p className="soft">{words.run.loading}</p>}</div>;

  const pictured = <PictureView view={view} onSelect={select} />;
  const timed = <TimelineView view={view} now={now} selected={selected} onSelect={isWide ? select : mark} />;
  const tabs: Tab[] = [
    { id: 'conversation', name: words.run.conversation, body: <ConversationView view={view} flows={flows} selected={selected} onSelect={mark} onOpen={setOpened} /> },
    ...(isWide ? [] : [{ id: 'picture', name: words.run.picture, body: pictured }, { id: 'timeline', name: words.run.timeline, body: timed }]),
    { id: 'events', name: words.run.events, body: <EventsView view={view} mayAct={mayAct} onFork={fork} /> },
    { id: 'cost', name: words.run.cost, body: <CostView view={view} now={now} /> },
  ];
  return (
    <div className="run">
      <Head id={id} view={view} status={status} connection={connection} mayAct={mayAct} client={client} onIntent={setIntent} onEvents={() => setTab('events')} />
      <Meters view={view} now={now} />
      {problem && <Refusal problem={problem} />}
      {mayAct && open.length > 0 && !view.ending && <AnswerBox client={client} run={id} view={view} open={open} />}
      <div className={isWide ? 'panels' : 'panels is-narrow'}>
        {isWide && (
          <div className="panels-left">
            <Panel name={words.run.picture}>{pictured}</Panel>
            <Panel name={words.run.timeline}>{timed}</Panel>
          </div>
        )}
        <Tabs label={words.run.views} tabs={tabs} chosen={tab} onChoose={setTab} />
      </div>
      {opened && (
        <CallDialog
          client={client}
          run={id}
          asked={view.asked.find((it) => it.seq === opened.seq) ?? opened}
          name={view.members.find((it) => it.id === opened.agent)?.name ?? opened.agent}
          isUnderWay={view.ending === null}
          mayAct={mayAct}
          onIntent={(next) => {
            setOpened(null);
            setIntent(next);
          }}
          onClose={() => setOpened(null)}
        />
      )}
      {intent && <ActDialog client={client} run={id} intent={intent} onClose={() => setIntent(null)} />}
    </div>
  );
}

function Panel({ name, children }: { name: string; children: ReactNode }) {
  return (
    <section className="panel" aria-label={name}>
      <h2 className="label">{name}</h2>
      {children}
    </section>
  );
}

/** What the log says; whether somebody drives it, the list says. */
function shownStatus(view: RunView, listed: Status | undefined, connection: string): Status {
  const isDriven = listed !== 'interrupted' && listed !== 'queued';
  const told = statusOf(view, isDriven);
  return told === 'interrupted' && listed === 'queued' ? 'queued' : connection === 'closed' && !view.ending ? (listed ?? told) : told;
}

function Head({
  id,
  view,
  status,
  connection,
  mayAct,
  client,
  onIntent,
  onEvents,
}: {
  id: string;
  view: RunView;
  status: Status;
  connection: string;
  mayAct: boolean;
  client: Client;
  onIntent(intent: Intent): void;
  /** Shows the events, from any of which it can be forked. */
  onEvents(): void;
}) {
  const { words } = useLanguage();
  const { acts } = words;
  const { refresh } = useRuns();
  const [kind] = unwrapped(view.spec?.collaboration ?? {});
  const isEnded = view.ending !== null;
  const canRetry = isEnded && view.asked.some((it) => it.state !== 'answered');
  return (
    <header className="run-head">
      <div className="run-title">
        <p className="run-about soft">
          <Foreign>{view.spec?.team.name ?? ''}</Foreign> · {view.spec?.auto ? words.run.autoChose(kind) : kind} · <span className="mono">{id}</span>
          {view.origin && (
            <>
              {' · '}
              {view.origin.retried ? words.run.retryOf : words.run.forkedFrom}{' '}
              <a className="mono" href={href({ at: 'run', id: view.origin.run })}>
                {view.origin.run}
              </a>
              {' · '}
              <a href={href({ at: 'compare', a: view.origin.run, b: id })}>{acts.compare}</a>
            </>
          )}
        </p>
        <h1 className="run-prompt" title={view.spec?.task}>
          <Foreign>{view.spec?.task ?? ''}</Foreign>
        </h1>
      </div>
      <div className="run-side">
        <p className={`status big tone-${toneOf(status)}`} role="status">
          <Icon shape={STATUS_SHAPE[status]} />
          <span className="status-word">{words.status(status)}</span>
          {view.ending && view.ending.reason !== status && <span className="soft mono">{view.ending.reason}</span>}
          {connection === 'lost' && <span className="tone-wait">{words.run.lost}</span>}
        </p>
        {mayAct && (
          <div className="row wrap end acts">
            {status === 'interrupted' && (
              <button type="button" className="main" onClick={() => void client.act(id, 'resume', {}).then(refresh, refresh)}>
                {acts.resume}
              </button>
            )}
            {!isEnded && (
              <button type="button" disabled={view.cancelRequested} onClick={() => onIntent({ act: 'cancel' })}>
                {acts.cancel}
              </button>
            )}
            {canRetry && (
              <button type="button" onClick={() => onIntent({ act: 'retry' })}>
                {acts.retry}
              </button>
            )}
            <button type="button" onClick={onEvents}>
              {acts.fork}…
            </button>
            <button type="button" onClick={() => onIntent({ act: 'compare' })}>
              {acts.compare}
            </button>
          </div>
        )}
      </div>
    </header>
  );
}

/** Says in the title of the window how the run stands, for whoever looks elsewhere meanwhile. */
function useTitle(title: string | null): void {
  useEffect(() => {
    if (title !== null) document.title = `${title} · Folkmoot`;
    return () => void (document.title = 'Folkmoot');
  }, [title]);
}

/** The run's active time, which stands still while nobody drives it or a person is asked. */
function useNow(view: RunView, status: Status): Micros {
  const isMoving = status === 'running' && !waitsForPerson(view);
  const [now, setNow] = useState(view.at);
  const latest = useRef(view);
  latest.current = view;
  useEffect(() => {
    if (!isMoving) return;
    const tick = (): void => {
      const { clock, at } = latest.current;
      setNow(Math.max(at, clock.at + Date.now() * 1000 - clock.wall));
    };
    tick();
    const timer = setInterval(tick, TICK_MS);
    return () => clearInterval(timer);
  }, [isMoving]);
  return isMoving ? Math.max(now, view.at) : view.at;
}
