import { type Asked, type Mark, type RunView, finalText, marks } from './run';

export type Item =
  | { kind: 'task'; id: string; text: string }
  | { kind: 'place'; id: string; name: string }
  | { kind: 'call'; id: string; asked: Asked }
  | { kind: 'mark'; id: string; mark: Mark }
  | { kind: 'answer'; id: string; text: string | null };

/** The conversation in the order in which it came about. */
export function conversation(view: RunView): Item[] {
  if (!view.spec) return [];
  const items: Item[] = [{ kind: 'task', id: 'task', text: view.spec.task }];
  const told = marks(view).filter((mark) => mark.event !== 'woken');
  let next = 0;
  let place = '';
  const passMarks = (seq: number): void => {
    for (let mark = told[next]; mark && mark.seq < seq; mark = told[++next]) {
      items.push({ kind: 'mark', id: `mark-${mark.seq}`, mark });
    }
  };
  for (const asked of view.asked) {
    passMarks(asked.seq);
    const now = placeOf(asked.key);
    if (now !== null && now !== place) {
      place = now;
      items.push({ kind: 'place', id: `place-${asked.seq}`, name: now });
    }
    items.push({ kind: 'call', id: `call-${asked.seq}`, asked });
  }
  passMarks(Infinity);
  if (view.ending) items.push({ kind: 'answer', id: 'answer', text: finalText(view) });
  return items;
}

/** The round that a call belongs to, where its key tells one. */
function placeOf(key: string): string | null {
  return /^(?:round|votes?|proposals?)(?:-\d+)?(?=\/)/.exec(key)?.[0] ?? null;
}

/** A text that is too long to be shown at once: its beginning, and how much is left. */
export function shortened(text: string, most: number, mostLines: number): { text: string; left: number } {
  let end = Math.min(text.length, most);
  let lines = 0;
  for (let at = text.indexOf('\n'); at >= 0 && at < end; at = text.indexOf('\n', at + 1)) {
    lines += 1;
    if (lines === mostLines) end = at;
  }
  if (end >= text.length) return { text, left: 0 };
  const isHalf = /[\uD800-\uDBFF]/.test(text.charAt(end - 1));
  const shown = text.slice(0, isHalf ? end - 1 : end);
  return { text: shown, left: text.length - shown.length };
}
