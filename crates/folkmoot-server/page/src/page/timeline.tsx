import { type KeyboardEvent, memo, useLayoutEffect, useMemo, useRef, useState } from 'react';
import type { Micros } from '../api/log';
import { type RunView, faultText } from '../fold/run';
import { type Bar, type Lane, step, ticks, timeline, visible } from '../fold/timeline';
import { duration, moment } from '../text/format';
import { useLanguage } from '../text/words';
import { CALL_SHAPE, Icon } from './icon';
import { Tool } from './picture';
import { Foreign } from './text';

const ROW = 20;
const LABEL = 124;
const TICK = 92;
/** The axis above the lanes, and room for a scroll bar below. */
const HEAD = 72;
const MARGIN = 24;
const MOST_ZOOM = 4096;

/** One lane for each agent, its calls as bars. */
export function TimelineView({ view, now, selected, onSelect }: { view: RunView; now: Micros; selected: number | null; onSelect(seq: number): void }) {
  const { words } = useLanguage();
  const { lanes, marks } = useMemo(() => timeline(view), [view]);
  const [zoom, setZoom] = useState(1);
  const [frame, window] = useWindow();
  const span = Math.max(now, 1);
  const width = Math.max(60, (window.width - LABEL - MARGIN) * zoom);
  const scale = width / span;
  const by = step(span, width / TICK);
  const from = window.left / scale;
  const to = (window.left + window.width) / scale;
  const name = (id: string): string => (id === 'parent' ? words.run.lead : (view.members.find((it) => it.id === id)?.name ?? id));
  const first = lanes[0]?.bars[0]?.asked.seq ?? null;
  const focusable = lanes.some((lane) => lane.bars.some((bar) => bar.asked.seq === selected)) ? selected : first;

  const keyed = (event: KeyboardEvent): void => {
    const seq = Number((event.target as HTMLElement).dataset.seq);
    const next = Number.isNaN(seq) ? null : neighbour(lanes, seq, event.key);
    if (next === null) return;
    event.preventDefault();
    onSelect(next);
    requestAnimationFrame(() => frame.current?.querySelector<HTMLElement>(`[data-seq="${next}"]`)?.focus());
  };
  if (lanes.length === 0) return <p className="empty soft">{words.timeline.none}</p>;
  return (
    <div className="timeline" style={{ height: HEAD + lanes.reduce((sum, lane) => sum + lane.rows * ROW + 9, 0) }}>
      <div className="timeline-scroll" ref={frame} role="group" aria-label={words.timeline.label} onKeyDown={keyed}>
        <div className="timeline-inside" style={{ width: LABEL + width + MARGIN }}>
          <div className="axis" aria-hidden="true">
            {ticks(now, width / TICK)
              .filter((at) => at >= from - by && at <= to + by)
              .map((at) => (
                <span key={at} className="tick num" style={{ left: LABEL + at * scale }}>
                  {moment(at, by)}
                </span>
              ))}
          </div>
          {lanes.map((lane) => (
            <div className="lane" key={lane.agent} role="group" aria-label={name(lane.agent)} style={{ height: lane.rows * ROW + 8 }}>
              <div className="lane-name" style={{ width: LABEL }}>
                <Foreign>{name(lane.agent)}</Foreign>
              </div>
              {visible(lane.bars, from - span * 0.02, to, now).map((bar) => (
                <BarView
                  key={bar.asked.seq}
                  bar={bar}
                  left={LABEL + bar.from * scale}
                  width={((bar.to ?? now) - bar.from) * scale}
                  agent={name(lane.agent)}
                  isSelected={bar.asked.seq === selected}
                  isFocusable={bar.asked.seq === focusable}
                  onSelect={onSelect}
                />
              ))}
            </div>
          ))}
          {marks.map((mark) => (
            <div key={mark.seq} className={`mark is-${mark.event}`} style={{ left: LABEL + mark.at * scale }} title={`${mark.event} · ${duration(mark.at)}`} />
          ))}
          {!view.ending && <div className="now" style={{ left: LABEL + now * scale }} />}
        </div>
      </div>
      <div className="tools">
        <Tool shape="minus" name={words.timeline.zoomOut} act={() => setZoom(Math.max(1, zoom / 2))} />
        <Tool shape="plus" name={words.timeline.zoomIn} act={() => setZoom(Math.min(MOST_ZOOM, zoom * 2))} />
        <Tool shape="fit" name={words.timeline.fit} act={() => setZoom(1)} />
      </div>
    </div>
  );
}

/** The call that an arrow key leads to: before and after in a lane, or the nearest in the next one. */
export function neighbour(lanes: Lane[], seq: number, key: string): number | null {
  const at = lanes.findIndex((lane) => lane.bars.some((bar) => bar.asked.seq === seq));
  const lane = lanes[at];
  const place = lane?.bars.findIndex((bar) => bar.asked.seq === seq) ?? -1;
  const bar = lane?.bars[place];
  if (!lane || !bar) return null;
  const nearest = (other: Lane | undefined): number | null => {
    const sorted = [...(other?.bars ?? [])].sort((a, b) => Math.abs(a.from - bar.from) - Math.abs(b.from - bar.from));
    return sorted[0]?.asked.seq ?? null;
  };
  switch (key) {
    case 'ArrowRight':
      return lane.bars[place + 1]?.asked.seq ?? null;
    case 'ArrowLeft':
      return lane.bars[place - 1]?.asked.seq ?? null;
    case 'ArrowDown':
      return nearest(lanes[at + 1]);
    case 'ArrowUp':
      return nearest(lanes[at - 1]);
    case 'Home':
      return lane.bars[0]?.asked.seq ?? null;
    case 'End':
      return lane.bars.at(-1)?.asked.seq ?? null;
    default:
      return null;
  }
}

interface BarProps {
  bar: Bar;
  left: number;
  width: number;
  agent: string;
  isSelected: boolean;
  isFocusable: boolean;
  onSelect(seq: number): void;
}

const BarView = memo(function BarView({ bar, left, width, agent, isSelected, isFocusable, onSelect }: BarProps) {
  const { words } = useLanguage();
  const { asked } = bar;
  const { kind } = asked.call;
  const took = bar.to === null ? words.timeline.underWay : duration(bar.to - bar.from);
  const fault = asked.fault ? ` · ${faultText(asked.fault)}` : '';
  const label = `${agent} · ${asked.key} · ${words.call[asked.state]} · ${took}${fault}`;
  const text = kind === 'tool' ? asked.call.name : asked.key.replace(/\/[^/]*$/, (end) => (/\d/.test(end) ? end : ''));
  return (
    <button
      type="button"
      className={`bar is-${asked.state} kind-${kind}`}
      style={{ left, width: Math.max(4, width), top: 4 + bar.row * ROW }}
      data-seq={asked.seq}
      tabIndex={isFocusable ? 0 : -1}
      aria-label={label}
      aria-pressed={isSelected}
      title={label}
      onClick={() => onSelect(asked.seq)}
    >
      {width > 16 && asked.state !== 'answered' && <Icon shape={kind === 'person' ? 'question' : CALL_SHAPE[asked.state]} />}
      {width > 48 && <bdi>{text}</bdi>}
    </button>
  );
});

/** What part of something that scrolls can be seen. */
function useWindow(): [React.RefObject<HTMLDivElement | null>, { left: number; width: number }] {
  const frame = useRef<HTMLDivElement>(null);
  const [window, setWindow] = useState({ left: 0, width: 600 });
  useLayoutEffect(() => {
    const observed = frame.current;
    if (!observed) return;
    const look = (): void => setWindow({ left: observed.scrollLeft, width: observed.clientWidth });
    const observer = new ResizeObserver(look);
    observer.observe(observed);
    observed.addEventListener('scroll', look, { passive: true });
    look();
    return () => {
      observer.disconnect();
      observed.removeEventListener('scroll', look);
    };
  }, []);
  return [frame, window];
}
