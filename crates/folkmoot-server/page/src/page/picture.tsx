import { Background, BaseEdge, type Edge, EdgeLabelRenderer, type EdgeProps, Handle, type Node, type NodeProps, Position, ReactFlow, ReactFlowProvider, useReactFlow } from '@xyflow/react';
import { memo, useEffect, useMemo, useRef, useState } from 'react';
import { around, isEnd, layout } from '../fold/layout';
import { ANSWER, BOARD, type Link, type Picture, PERSON, TASK, picture } from '../fold/picture';
import { type RunView, add, NOTHING, tokensOf } from '../fold/run';
import { type Activity, activities } from '../fold/waiting';
import { count, monogram, rough } from '../text/format';
import { useLanguage } from '../text/words';
import type { Words } from '../text/english';
import { Icon, type Shape } from './icon';
import { type Line, lineOf, straight } from './lines';
import { Foreign } from './text';

type AgentData = { name: string; description: string; activity: Activity; waitsFor: string; calls: number; tokens: number; isDue: boolean; select(): void };
type AgentNode = Node<AgentData, 'agent'>;
type EndNode = Node<{ name: string; isReached: boolean }, 'end'>;
type FrameNode = Node<{ text: string; isLive: boolean }, 'frame'>;
type LinkEdge = Edge<{ link: Link; line: Line }, 'link'>;

const LOOP_MARGIN = 16;
const LOOP_HEAD = 20;
const LOOP_BACK = 40;

/** The collaboration as a picture. Its words stand in a list beside it for whoever cannot see it. */
export const PictureView = memo(function PictureView({ view, onSelect }: { view: RunView; onSelect(seq: number): void }) {
  return (
    <ReactFlowProvider>
      <Drawn view={view} onSelect={onSelect} />
    </ReactFlowProvider>
  );
});

function Drawn({ view, onSelect }: { view: RunView; onSelect(seq: number): void }) {
  const { locale, words } = useLanguage();
  const { fitView, zoomIn, zoomOut } = useReactFlow();
  const [frame, room] = useRoom();
  const drawn = useMemo(() => picture(view), [view]);
  // The places follow from who is there alone, not from what has happened.
  const { places, direction } = useMemo(() => layout(drawn, room), [shapeOf(drawn), room]);
  const isEnded = view.ending !== null;
  const label = (node: string): string => nameOf(node, view, words);

  const nodes = useMemo(() => {
    const doing = activities(view);
    const frames = [
      ...drawn.groups.map((group): FrameNode => {
        const loop = drawn.loops.find((it) => it.agents.length === group.agents.length && it.agents.every((id) => group.agents.includes(id)));
        const text = loop ? `↻ ${words.picture.loop(loop.round, loop.cap)}` : String(group.agents.length);
        const { x, y, width, height } = places.get(group.id) ?? { x: 0, y: 0, width: 0, height: 0 };
        return { id: group.id, type: 'frame', position: { x, y }, width, height, zIndex: -1, data: { text, isLive: group.live } };
      }),
      ...drawn.loops.flatMap((loop, at): FrameNode[] => {
        const box = around(places, loop.agents, LOOP_MARGIN);
        const isFramed = drawn.groups.some((group) => loop.agents.every((id) => group.agents.includes(id)));
        if (!box || isFramed || loop.agents.length < 2) return [];
        const position = { x: box.x, y: box.y - LOOP_HEAD };
        // What leads back runs around the loop, and belongs to it.
        const room = direction === 'LR' ? { x: 0, y: LOOP_BACK } : { x: LOOP_BACK, y: 0 };
        const size = { width: box.width + room.x, height: box.height + LOOP_HEAD + room.y };
        const text = `↻ ${words.picture.loop(loop.round, loop.cap)}`;
        return [{ id: `loop-${at}`, type: 'frame', position, ...size, zIndex: -1, data: { text, isLive: false } }];
      }),
      ...view.members.filter((it) => it.isTeam).flatMap((team): FrameNode[] => {
        const own = view.members.filter((it) => it.within === team.id).map((it) => it.id);
        const box = around(places, own, LOOP_MARGIN);
        if (!box) return [];
        const placed = { position: { x: box.x, y: box.y - LOOP_HEAD }, width: box.width, height: box.height + LOOP_HEAD };
        return [{ id: `team-${team.id}`, type: 'frame', ...placed, zIndex: -1, data: { text: team.name, isLive: false } }];
      }),
    ];
    const own = drawn.nodes.flatMap((node): (AgentNode | EndNode)[] => {
      const box = places.get(node);
      if (!box) return [];
      const placed = { id: node, position: { x: box.x, y: box.y }, width: box.width, height: box.height };
      if (isEnd(node)) {
        const isReached = node !== ANSWER || view.ending !== null;
        return [{ ...placed, type: 'end', data: { name: label(node), isReached } }];
      }
      const member = view.members.find((it) => it.id === node);
      const asked = view.asked.filter((it) => it.agent === node);
      const activity = doing.get(node) ?? { kind: 'idle' };
      const usage = [...view.usage].filter(([id]) => id === node || id.startsWith(`${node}/`)).reduce((sum, [, it]) => add(sum, it), NOTHING);
      const data: AgentData = {
        name: label(node),
        description: member?.description ?? member?.model ?? '',
        activity,
        waitsFor: activity.kind === 'waits' ? activity.for.map(label).join(', ') : '',
        calls: asked.filter((it) => it.call.kind === 'agent' && !it.inherited).length,
        tokens: tokensOf(usage),
        isDue: !isEnded,
        select: () => {
          const last = asked.at(-1);
          if (last) onSelect(last.seq);
        },
      };
      return [{ ...placed, type: 'agent', data }];
    });
    return [...frames, ...own];
  }, [view, drawn, places, words]);

  const edges = useMemo(
    () =>
      drawn.links.flatMap((link): LinkEdge[] => {
        const from = places.get(link.from);
        const to = places.get(link.to);
        if (!from || !to) return [];
        const isWithin = drawn.groups.some(({ agents }) => agents.includes(link.from) && agents.includes(link.to));
        const line = isWithin ? straight(from, to) : lineOf(from, to, link.back, direction);
        return [{ id: `${link.from}>${link.to}`, source: link.from, target: link.to, type: 'link', data: { link, line } }];
      }),
    [drawn, places],
  );

  const fit = (): void => void fitView({ padding: 0.07, maxZoom: 1.15, duration: 0 });
  useEffect(() => {
    const timer = setTimeout(fit, 0);
    return () => clearTimeout(timer);
  }, [places, room]);

  return (
    <div className="picture" ref={frame}>
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={NODE_TYPES}
        edgeTypes={EDGE_TYPES}
        nodesDraggable={false}
        nodesConnectable={false}
        nodesFocusable={false}
        edgesFocusable={false}
        elementsSelectable={false}
        zoomOnScroll={false}
        zoomOnDoubleClick={false}
        preventScrolling={false}
        onlyRenderVisibleElements={nodes.length > 120}
        minZoom={0.1}
        maxZoom={2}
        proOptions={{ hideAttribution: true }}
        aria-label={words.picture.label}
      >
        <Background gap={22} size={1} />
      </ReactFlow>
      <div className="tools">
        <Tool shape="minus" name={words.picture.zoomOut} act={() => void zoomOut()} />
        <Tool shape="plus" name={words.picture.zoomIn} act={() => void zoomIn()} />
        <Tool shape="fit" name={words.picture.fit} act={fit} />
      </div>
      <ul className="unseen">
        {drawn.links
          .filter((link) => link.count > 0)
          .map((link) => (
            <li key={`${link.from}>${link.to}`}>
              {words.picture.messages(label(link.from), label(link.to), link.count)}
              {link.live && `, ${words.picture.live}`}
            </li>
          ))}
        {drawn.loops.map((loop, at) => (
          <li key={at}>{`${loop.agents.map(label).join(', ')}: ${words.picture.loop(loop.round, loop.cap)}`}</li>
        ))}
        <li>{`${words.cost.calls}: ${count(view.started, locale)}`}</li>
      </ul>
    </div>
  );
}

function nameOf(node: string, view: RunView, words: Words): string {
  switch (node) {
    case TASK:
      return words.run.task;
    case ANSWER:
      return words.run.answer;
    case PERSON:
      return words.run.you;
    case BOARD:
      return words.run.board;
    case 'parent':
      return words.run.lead;
    default:
      return view.members.find((it) => it.id === node)?.name ?? (node.startsWith('\u0000') ? words.picture.all : node);
  }
}

/** What the places of a picture follow from. */
function shapeOf({ nodes, groups, links }: Picture): string {
  const lines = links.map((link) => [link.from, link.to, link.back, link.mutual].join('>'));
  return [...nodes, ...groups.flatMap((group) => group.agents), ...lines].join('\n');
}

/** How much room there is for the picture. */
function useRoom(): [React.RefObject<HTMLDivElement | null>, { width: number; height: number }] {
  const frame = useRef<HTMLDivElement>(null);
  const [room, setRoom] = useState({ width: 640, height: 400 });
  useEffect(() => {
    const observed = frame.current;
    if (!observed) return;
    const observer = new ResizeObserver(() => {
      const { clientWidth: width, clientHeight: height } = observed;
      if (width > 0 && height > 0) setRoom({ width, height });
    });
    observer.observe(observed);
    return () => observer.disconnect();
  }, []);
  return [frame, room];
}

export function Tool({ shape, name, act }: { shape: Shape; name: string; act(): void }) {
  return (
    <button type="button" className="square" aria-label={name} title={name} onClick={act}>
      <Icon shape={shape} />
    </button>
  );
}

const ACTIVITY_SHAPE: Record<Activity['kind'], Shape> = {
  idle: 'dots',
  working: 'play',
  tool: 'tool',
  person: 'question',
  waits: 'pause',
  done: 'check',
  failed: 'cross',
};

const AgentView = memo(function AgentView({ data }: NodeProps<AgentNode>) {
  const { locale, words } = useLanguage();
  const { activity } = data;
  return (
    <button type="button" className={`agent nopan is-${activity.kind}`} onClick={data.select} title={data.description}>
      <Ends />
      <span className="agent-head">
        <span className="monogram" aria-hidden="true">
          {monogram(data.name)}
        </span>
        <span className="agent-name">
          <Foreign>{data.name}</Foreign>
        </span>
        <span className="agent-use num soft">
          {data.calls > 0 && `${count(data.calls, locale)}×`}
          {data.tokens > 0 && ` ${rough(data.tokens, locale)}`}
        </span>
      </span>
      <span className="agent-about soft" dir="auto">
        {data.description}
      </span>
      <span className="agent-state">
        <Icon shape={ACTIVITY_SHAPE[activity.kind]} />
        <span>{stateText(data, words)}</span>
      </span>
    </button>
  );
});

function stateText({ activity, waitsFor }: AgentData, words: Words): string {
  switch (activity.kind) {
    case 'waits':
      return `${words.picture.waits} ${waitsFor}`;
    case 'tool':
      return `${words.picture.tool} ${activity.tool}`;
    case 'done':
      return activity.faults > 0 ? `${words.picture.done} · ${words.picture.faults(activity.faults)}` : words.picture.done;
    case 'idle':
    case 'working':
    case 'person':
    case 'failed':
      return words.picture[activity.kind];
  }
}

const EndView = memo(function EndView({ data }: NodeProps<EndNode>) {
  return (
    <div className={data.isReached ? 'end-node' : 'end-node is-ahead'}>
      <Ends />
      {data.name}
    </div>
  );
});

const FrameView = memo(function FrameView({ data }: NodeProps<FrameNode>) {
  return (
    <div className={data.isLive ? 'frame-node is-live' : 'frame-node'}>
      <Ends />
      <span>{data.text}</span>
    </div>
  );
});

/** Lines hang on these; where they run is worked out from the boxes. */
function Ends() {
  return (
    <>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </>
  );
}

const LinkView = memo(function LinkView({ id, data }: EdgeProps<LinkEdge>) {
  if (!data) return null;
  const { link, line } = data;
  const state = link.live ? 'live' : link.count > 0 ? 'used' : 'ahead';
  const times = link.count > 1 ? `×${link.count}` : '';
  const text = [link.label, times].filter(Boolean).join(' ');
  return (
    <>
      <BaseEdge id={id} path={line.path} className={`link is-${state}`} interactionWidth={0} />
      <path d={line.head} className={`head is-${state}`} />
      {link.mutual && <path d={line.tail} className={`head is-${state}`} />}
      {text !== '' && (
        <EdgeLabelRenderer>
          <div
            className={`link-label is-${state} nodrag nopan`}
            style={{ transform: `translate(-50%, -50%) translate(${line.middle.x}px, ${line.middle.y}px)` }}
          >
            {link.label && <Foreign>{link.label}</Foreign>} {times}
          </div>
        </EdgeLabelRenderer>
      )}
    </>
  );
});

const NODE_TYPES = { agent: AgentView, end: EndView, frame: FrameView };
const EDGE_TYPES = { link: LinkView };

