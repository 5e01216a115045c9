import { useVirtualizer } from '@tanstack/react-virtual';
import { memo, useRef, useState } from 'react';
import type { RunEntry } from '../api/views';
import { href } from '../route';
import { clock, count, dollars, duration, rough } from '../text/format';
import { useLanguage } from '../text/words';
import { Icon, STATUS_SHAPE, toneOf } from './icon';
import { Refusal } from './refusal';
import { useRuns } from './runs-context';
import { Foreign } from './text';

/** The list of runs; beside a run only what tells them apart. */
export function RunList({ current = null, isNarrow = false }: { current?: string | null; isNarrow?: boolean }) {
  const { words } = useLanguage();
  const { list, problem } = useRuns();
  const [filter, setFilter] = useState('');
  const wanted = filter.trim().toLocaleLowerCase();
  const shown = (list ?? []).filter((run) => wanted === '' || textOf(run, words.status(run.status)).includes(wanted));
  const scroller = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: shown.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => (isNarrow ? 58 : 48),
    overscan: 12,
    getItemKey: (at) => shown[at]?.run_id ?? at,
  });
  return (
    <div className={isNarrow ? 'runs narrow' : 'runs'}>
      <div className="runs-head">
        <h1 className={isNarrow ? 'label' : ''}>{words.runs.title}</h1>
        {(list?.length ?? 0) > 0 && (
          <input
            type="search"
            placeholder={words.runs.filter}
            aria-label={words.runs.filter}
            value={filter}
            onChange={(event) => setFilter(event.target.value)}
          />
        )}
      </div>
      {problem && <Refusal problem={problem} />}
      {list?.length === 0 && (
        <div className="empty">
          <p>{words.runs.none}</p>
          <a className="button main" href={href({ at: 'new' })}>
            {words.runs.begin}
          </a>
        </div>
      )}
      {list !== null && list.length > 0 && shown.length === 0 && <p className="empty soft">{words.runs.noMatch}</p>}
      <div className="runs-scroll" ref={scroller}>
        <ul className="runs-rows" style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map((row) => {
            const run = shown[row.index];
            return run ? (
              <li key={row.key} style={{ transform: `translateY(${row.start}px)`, height: row.size }}>
                <Row run={run} isCurrent={run.run_id === current} isNarrow={isNarrow} />
              </li>
            ) : null;
          })}
        </ul>
      </div>
    </div>
  );
}

function textOf(run: RunEntry, status: string): string {
  return [run.run_id, run.prompt, run.team, run.strategy, run.status, status].join('\n').toLocaleLowerCase();
}

const Row = memo(function Row({ run, isCurrent, isNarrow }: { run: RunEntry; isCurrent: boolean; isNarrow: boolean }) {
  const { locale, words } = useLanguage();
  const { total, calls } = run.usage ?? { total: null, calls: 0 };
  const took = run.started_at && run.ended_at ? (Date.parse(run.ended_at) - Date.parse(run.started_at)) * 1000 : null;
  const status = words.status(run.status);
  const origin = run.origin && `${run.origin.retried ? words.runs.retryOf : words.runs.forkOf} ${run.origin.run_id}`;
  return (
    <a className="run-row" href={href({ at: 'run', id: run.run_id })} aria-current={isCurrent ? 'page' : undefined}>
      <span className={`status tone-${toneOf(run.status)}`} title={run.reason ?? status}>
        <Icon shape={STATUS_SHAPE[run.status] ?? 'dots'} />
        <span className="status-word">{status}</span>
      </span>
      <span className="run-task">
        <Foreign>{run.prompt || '—'}</Foreign>
      </span>
      <span className="run-team soft">
        <Foreign>{run.team ?? ''}</Foreign>
        {run.strategy && run.strategy !== run.team && <> · {run.strategy}</>}
        {origin && !isNarrow && (
          <>
            {' · '}
            <Icon shape="fork" />
            <span className="mono" title={origin}>
              {run.origin?.run_id.slice(0, 6)}
            </span>
          </>
        )}
      </span>
      {!isNarrow && (
        <>
          <span className="run-calls num soft">{words.runs.calls(count(calls, locale))}</span>
          <span className="run-tokens num soft">{words.runs.tokens(rough(total?.total_tokens ?? 0, locale))}</span>
          <span className="run-cost num soft">{total?.cost_usd === undefined ? '' : dollars(total.cost_usd, locale)}</span>
          <span className="run-took num soft">{took === null ? '' : duration(took)}</span>
        </>
      )}
      <span className="run-when num soft">{run.started_at ? clock(run.started_at, locale, new Date()) : ''}</span>
    </a>
  );
});
