import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useRef, useState } from 'react';
import { type Client, Problem } from '../api/client';
import type { Compared, Comparison, Side, Totals } from '../api/views';
import { href } from '../route';
import { count, dollars, duration, rough } from '../text/format';
import { useLanguage } from '../text/words';
import { Icon, type Shape } from './icon';
import { Refusal } from './refusal';
import { useRuns } from './runs-context';
import { Foreign, Said } from './text';

const SHAPE: Record<Compared['state'], Shape> = { same: 'check', changed: 'pencil', only_a: 'minus', only_b: 'plus' };

/** Two runs side by side, call by call. */
export function CompareView({ client, a, b }: { client: Client; a: string; b: string }) {
  const { words } = useLanguage();
  const { list } = useRuns();
  const [found, setFound] = useState<Comparison | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isBrief, setBrief] = useState(false);
  useEffect(() => {
    setFound(null);
    setProblem(null);
    client.compare(a, b).then(setFound, (error: unknown) => error instanceof Problem && setProblem(error));
  }, [client, a, b]);
  const shown = (found?.calls ?? []).filter((call) => !isBrief || call.state !== 'same');
  const scroller = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: shown.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 160,
    overscan: 4,
    getItemKey: (at) => shown[at]?.key ?? at,
  });
  const prompt = (id: string): string => list?.find((run) => run.run_id === id)?.prompt ?? '';
  return (
    <div className="compare">
      <header className="compare-head">
        <div className="row wrap">
          <h1>{words.compare.title}</h1>
          <a className="button" href={href({ at: 'compare', a: b, b: a })}>
            {words.compare.swap}
          </a>
          <label className="check">
            <input type="checkbox" checked={isBrief} onChange={(event) => setBrief(event.target.checked)} /> {words.compare.onlyDifferent}
          </label>
        </div>
        {problem && <Refusal problem={problem} />}
        {found && (
          <ul className="row wrap tallies">
            {(['same', 'changed', 'only_a', 'only_b'] as const).map((state) => (
              <li key={state} className={`tally is-${state}`}>
                <Icon shape={SHAPE[state]} /> <strong className="num">{found.totals[state]}</strong> {words.compare[state]}
              </li>
            ))}
          </ul>
        )}
        <div className="sides">
          {[a, b].map((id, at) => (
            <div key={id} className="side-head">
              <a href={href({ at: 'run', id })}>
                <strong>{at === 0 ? words.compare.first : words.compare.second}</strong> <span className="mono">{id}</span>
              </a>
              <div className="clip soft">
                <Foreign>{prompt(id)}</Foreign>
              </div>
              {found && <TotalsLine totals={at === 0 ? found.totals.a : found.totals.b} />}
            </div>
          ))}
        </div>
      </header>
      <div className="compare-scroll" ref={scroller} tabIndex={0} role="region" aria-label={words.compare.title}>
        {found && shown.length === 0 && <p className="empty soft">{words.compare.nothing}</p>}
        <div className="compare-rows" style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map((row) => {
            const call = shown[row.index];
            return call ? (
              <article key={row.key} data-index={row.index} ref={rows.measureElement} className={`pair is-${call.state}`} style={{ transform: `translateY(${row.start}px)` }}>
                <header className="pair-head">
                  <Icon shape={SHAPE[call.state]} /> {words.compare[call.state]} <strong><Foreign>{call.agent}</Foreign></strong>{' '}
                  <span className="mono soft"><bdi>{call.key}</bdi></span>
                </header>
                <div className="sides">
                  <SideView side={call.a} />
                  {call.state !== 'same' && <SideView side={call.b} />}
                </div>
              </article>
            ) : null;
          })}
        </div>
      </div>
    </div>
  );
}

function TotalsLine({ totals }: { totals: Totals }) {
  const { locale, words } = useLanguage();
  const told = [
    words.runs.calls(count(totals.calls, locale)),
    words.runs.tokens(rough(totals.total_tokens, locale)),
    totals.cost_usd != null && dollars(totals.cost_usd, locale),
    totals.elapsed_seconds != null && duration(totals.elapsed_seconds * 1e6),
  ];
  return <div className="num soft">{told.filter(Boolean).join(' · ')}</div>;
}

function SideView({ side }: { side: Side | null }) {
  const { words } = useLanguage();
  if (!side) return <div className="side is-none soft">—</div>;
  return (
    <div className="side">
      {side.fault && (
        <div className="fault">
          <Said text={side.fault.error} plain />
        </div>
      )}
      {side.text !== null && side.text !== '' ? <Said text={side.text} /> : !side.fault && <p className="soft">{words.compare.noText}</p>}
    </div>
  );
}
