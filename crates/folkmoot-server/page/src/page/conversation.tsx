import { useVirtualizer } from '@tanstack/react-virtual';
import { type KeyboardEvent, memo, useEffect, useMemo, useRef } from 'react';
import { type Item, conversation } from '../fold/conversation';
import { type Asked, type RunView, faultText, questionText, tokensOf, toolCallsOf } from '../fold/run';
import { duration, monogram, rough } from '../text/format';
import { useLanguage } from '../text/words';
import { CALL_SHAPE, Icon } from './icon';
import type { Flow } from './store';
import { Foreign, Said } from './text';

interface Given {
  view: RunView;
  flows: ReadonlyMap<string, Flow>;
  selected: number | null;
  onSelect(seq: number): void;
  onOpen(asked: Asked): void;
}

/** Near enough to the end to be carried along with it. */
const END_PX = 80;

/** What was said, in the order in which it was asked; only what can be seen is drawn. */
export const ConversationView = memo(function ConversationView({ view, flows, selected, onSelect, onOpen }: Given) {
  const { words } = useLanguage();
  const items = useMemo(() => conversation(view), [view]);
  const scroller = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const rows = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: (at) => (items[at]?.kind === 'call' ? 130 : 44),
    overscan: 6,
    getItemKey: (at) => items[at]?.id ?? at,
  });
  useEffect(() => {
    const at = items.findIndex((item) => item.kind === 'call' && item.asked.seq === selected);
    if (at < 0) return;
    isAtEnd.current = false;
    rows.scrollToIndex(at, { align: 'start' });
  }, [selected]);
  useEffect(() => {
    if (isAtEnd.current && items.length > 0) rows.scrollToIndex(items.length - 1, { align: 'end' });
  }, [items, flows]);
  const scrolled = (): void => {
    const shown = scroller.current;
    if (shown) isAtEnd.current = shown.scrollHeight - shown.scrollTop - shown.clientHeight < END_PX;
  };
  const keyed = (event: KeyboardEvent): void => {
    if (event.target !== scroller.current || (event.key !== 'j' && event.key !== 'k')) return;
    const calls = items.flatMap((item) => (item.kind === 'call' ? [item.asked.seq] : []));
    const at = calls.indexOf(selected ?? -1);
    const next = calls[event.key === 'j' ? at + 1 : Math.max(0, at - 1)];
    if (next !== undefined) onSelect(next);
  };
  const name = (id: string): string => (id === 'parent' ? words.run.lead : (view.members.find((it) => it.id === id)?.name ?? id));
  return (
    <div className="conversation" ref={scroller} tabIndex={0} role="log" aria-live="off" aria-label={words.run.conversation} onScroll={scrolled} onKeyDown={keyed}>
      <div className="conversation-inside" style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map((row) => {
          const item = items[row.index];
          return item ? (
            <div key={row.key} data-index={row.index} ref={rows.measureElement} className="conversation-row" style={{ transform: `translateY(${row.start}px)` }}>
              <ItemView item={item} view={view} name={name} flows={flows} selected={selected} onOpen={onOpen} />
            </div>
          ) : null;
        })}
      </div>
    </div>
  );
});

function ItemView({ item, view, name, flows, selected, onOpen }: { item: Item; view: RunView; name(id: string): string } & Pick<Given, 'flows' | 'selected' | 'onOpen'>) {
  const { words } = useLanguage();
  switch (item.kind) {
    case 'task':
      return (
        <article className="turn is-task">
          <h3 className="label">{words.run.task}</h3>
          <Said text={item.text} />
        </article>
      );
    case 'place':
      return <h3 className="place mono">{item.name}</h3>;
    case 'mark':
      return (
        <p className="turn-mark soft mono">
          {duration(item.mark.at)} · {item.mark.event.replace('_', ' ')} {item.mark.key ?? ''}
        </p>
      );
    case 'answer':
      return (
        <article className="turn is-answer">
          <h3 className="label">
            <Icon shape={view.ending?.done ? 'check' : 'bound'} /> {view.ending?.final != null ? words.run.answer : words.run.best}
          </h3>
          {item.text === null || item.text === '' ? <p className="soft">{words.run.noAnswer}</p> : <Said text={item.text} />}
        </article>
      );
    case 'call': {
      const { asked } = item;
      const isAside = asked.call.kind !== 'agent' && asked.call.kind !== 'person';
      const flow = asked.state === 'open' ? (flows.get(asked.key) ?? null) : null;
      const question = asked.call.kind === 'person' ? questionText(view, asked.call) : null;
      const given = { asked, name: name(asked.agent), isSelected: asked.seq === selected, onOpen };
      return isAside ? <Aside {...given} /> : <Turn {...given} flow={flow} question={question} />;
    }
  }
}

interface CallProps {
  asked: Asked;
  name: string;
  isSelected: boolean;
  onOpen(asked: Asked): void;
}

function Head({ asked, name, onOpen }: Omit<CallProps, 'isSelected'>) {
  const { locale, words } = useLanguage();
  const tokens = tokensOf(asked.usage);
  const took = asked.settledAt !== null && !asked.inherited ? duration(asked.settledAt - asked.askedAt) : null;
  return (
    <header className="turn-head">
      <span className="monogram" aria-hidden="true">
        {monogram(name)}
      </span>
      <strong>
        <Foreign>{name}</Foreign>
      </strong>
      <span className="mono soft turn-key">
        <bdi>{asked.key}</bdi>
      </span>
      <span className={`turn-state tone-${asked.state === 'failed' ? 'bad' : asked.state === 'open' ? (asked.call.kind === 'person' ? 'wait' : 'good') : 'calm'}`}>
        {asked.state !== 'answered' && (
          <>
            <Icon shape={asked.call.kind === 'person' && asked.state === 'open' ? 'question' : CALL_SHAPE[asked.state]} /> {asked.call.kind === 'person' && asked.state === 'open' ? words.status('needs_input') : words.call[asked.state]}
          </>
        )}
        {asked.amended && ` · ${words.call.amended}`}
        {asked.inherited && ` · ${words.call.inherited}`}
        {asked.attempt > 1 && ` · ${words.call.attempt(asked.attempt)}`}
      </span>
      <span className="turn-cost num soft">
        {took}
        {tokens > 0 && ` · ${rough(tokens, locale)}`}
      </span>
      <button type="button" className="quiet square" aria-label={words.call.actions(asked.key)} title={words.call.actions(asked.key)} onClick={() => onOpen(asked)}>
        <Icon shape="dots" />
      </button>
    </header>
  );
}

const Turn = memo(function Turn({ asked, name, isSelected, onOpen, flow, question }: CallProps & { flow: Flow | null; question: string | null }) {
  const { words } = useLanguage();
  const { answer, fault } = asked;
  const text = answer?.text ?? '';
  const reasoning = answer?.reasoning ?? flow?.reasoning ?? '';
  const tools = toolCallsOf(asked);
  return (
    <article className={`turn is-${asked.state}${isSelected ? ' is-selected' : ''}`} aria-current={isSelected ? 'true' : undefined}>
      <Head asked={asked} name={name} onOpen={onOpen} />
      {question !== null && (
        <div className="quoted">
          <p className="soft">{words.call.question}</p>
          <Said text={question} />
        </div>
      )}
      {flow?.retry && (
        <p className="soft" dir="auto">
          {words.call.again} {flow.retry}
        </p>
      )}
      {reasoning !== '' && (
        <details className="reasoning">
          <summary>{words.call.thinking}</summary>
          <Said text={reasoning} plain />
        </details>
      )}
      {asked.state === 'open' && question === null && (flow && flow.text !== '' ? <Flowing flow={flow} /> : <p className="soft waiting">{words.call.waiting}</p>)}
      {question !== null && answer && <p className="label">{words.call.person}</p>}
      {answer && <Answer text={text} json={answer.json} isBlank={text.trim() === '' && tools.length === 0} />}
      {tools.length > 0 && (
        <ul className="tool-calls">
          {tools.map((tool) => (
            <li key={tool.id}>
              <Icon shape="tool" /> <span className="soft">{words.call.tools}</span> <span className="mono">{tool.name}</span>
              <details>
                <summary>{words.call.arguments}</summary>
                <Said text={JSON.stringify(tool.arguments, null, 2)} plain />
              </details>
            </li>
          ))}
        </ul>
      )}
      {answer?.warnings?.map((warning, at) => (
        <p className="tone-wait" dir="auto" key={at}>
          {warning}
        </p>
      ))}
      {fault && (
        <div className="fault">
          <Said text={faultText(fault)} plain />
        </div>
      )}
    </article>
  );
});

function Answer({ text, json, isBlank }: { text: string; json: unknown; isBlank: boolean }) {
  const { words } = useLanguage();
  if (isBlank) return <p className="soft">{words.call.blank}</p>;
  if (json !== undefined && text === JSON.stringify(json)) return <Said text={JSON.stringify(json, null, 2)} plain />;
  return text.trim() === '' ? null : <Said text={text} />;
}

/** The end of what is coming in: more than that nobody can read at once. */
const FLOW_TAIL = 4000;

function Flowing({ flow }: { flow: Flow }) {
  const isLong = flow.text.length > FLOW_TAIL;
  const tail = isLong ? flow.text.slice(-FLOW_TAIL) : flow.text;
  return (
    <div className="said flowing" dir="auto">
      {flow.isCut || isLong ? <pre className="plain">… {tail}</pre> : <Said text={tail} />}
    </div>
  );
}

/** A tool call, a look at evidence and the like: a line. */
const Aside = memo(function Aside({ asked, name, isSelected, onOpen }: CallProps) {
  const { words } = useLanguage();
  const { call, answer, fault } = asked;
  const said = call.kind === 'tool' ? call.name : call.kind === 'team' ? words.call.team : call.kind === 'gate' ? words.call.gate : call.kind === 'listing' ? words.call.listing : call.kind;
  const text = fault ? faultText(fault) : (answer?.text ?? '');
  return (
    <article className={`turn aside is-${asked.state}${isSelected ? ' is-selected' : ''}`}>
      <Head asked={asked} name={name} onOpen={onOpen} />
      <p>
        <Icon shape={call.kind === 'tool' ? 'tool' : CALL_SHAPE[asked.state]} /> <span className="mono">{said}</span>
      </p>
      {(text !== '' || call.kind === 'tool') && (
        <details>
          <summary>{fault ? words.call.failed : words.call.arguments}</summary>
          {call.kind === 'tool' && <Said text={JSON.stringify(call.arguments, null, 2)} plain />}
          {text !== '' && <Said text={text} plain />}
        </details>
      )}
    </article>
  );
});
