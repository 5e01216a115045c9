import { useVirtualizer } from '@tanstack/react-virtual';
import { memo, useEffect, useRef } from 'react';
import type { RunView } from '../fold/run';
import { duration } from '../text/format';
import { useLanguage } from '../text/words';
import { Icon } from './icon';
import { Foreign } from './text';

const ROW = 30;

/** The log, a line each; a run can be forked from any of them. */
export const EventsView = memo(function EventsView({ view, mayAct, onFork }: { view: RunView; mayAct: boolean; onFork(seq: number): void }) {
  const { words } = useLanguage();
  const scroller = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(false);
  const rows = useVirtualizer({ count: view.log.length, getScrollElement: () => scroller.current, estimateSize: () => ROW, overscan: 16 });
  useEffect(() => {
    if (isAtEnd.current && view.log.length > 0) rows.scrollToIndex(view.log.length - 1);
  }, [view.log.length]);
  const scrolled = (): void => {
    const shown = scroller.current;
    if (shown) isAtEnd.current = shown.scrollHeight - shown.scrollTop - shown.clientHeight < ROW * 2;
  };
  const name = (id: string): string => view.members.find((it) => it.id === id)?.name ?? id;
  return (
    <div className="events" ref={scroller} tabIndex={0} role="region" aria-label={words.events.label} onScroll={scrolled}>
      <ol style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map((row) => {
          const mark = view.log[row.index];
          return mark ? (
            <li key={row.key} className={`event is-${mark.event}`} style={{ transform: `translateY(${row.start}px)`, height: ROW }}>
              <span className="num soft">{mark.seq}</span>
              <span className="num soft">{duration(mark.at)}</span>
              <span className="event-what">{mark.event.replace('_', ' ')}</span>
              <span className="event-key mono">
                <bdi>{mark.key ?? ''}</bdi>
              </span>
              <span className="event-who soft">{mark.agent !== null && <Foreign>{name(mark.agent)}</Foreign>}</span>
              {mayAct && (
                <button type="button" className="quiet" aria-label={words.events.forkAt(mark.seq)} onClick={() => onFork(mark.seq)}>
                  <Icon shape="fork" /> <span className="event-fork">{words.events.fork}</span>
                </button>
              )}
            </li>
          ) : null;
        })}
      </ol>
    </div>
  );
});
