import type { Call, Part } from '../api/log';

export function partsOf(call: Call): Part[] {
  return call.kind === 'agent' || call.kind === 'team' || call.kind === 'person' ? call.parts : [];
}

/** Whether it is told the task itself, and not as a part of an earlier conversation. */
export function isTask(part: Part): boolean {
  return part === 'task';
}

/** The keys that one part quotes. */
export function quoted(part: Part): string[] {
  if (part === 'task') return [];
  if ('quote' in part) return [part.quote];
  if ('own' in part) return [part.own];
  if ('handed' in part) return [part.handed.key];
  if ('result' in part) return [part.result];
  if ('returned' in part) return [part.returned.key];
  if ('memory' in part) return part.memory;
  if ('findings' in part) return [part.findings];
  if ('board' in part) return part.board.replies;
  return [];
}

/** The earlier answers that a call was made from, each once. */
export function sourcesOf(call: Call): string[] {
  const direct = (): string[] => {
    switch (call.kind) {
      case 'agent':
      case 'team':
      case 'person':
        return [...(call.continues === undefined ? [] : [call.continues]), ...call.parts.flatMap(quoted)];
      case 'gate':
        return [call.of];
      case 'exchange':
        return [...(call.after === undefined ? [] : [call.after]), ...call.told.map((told) => told.reply ?? told.key)];
      case 'tool':
      case 'listing':
        return [];
    }
  };
  return [...new Set(direct())];
}
