import { useMemo, useState } from 'react';
import { shortened } from '../fold/conversation';
import { count } from '../text/format';
import { useLanguage } from '../text/words';
import { Markdown, isTangled } from './markdown';

/** Foreign text in a line of our own: its direction cannot spill over into what stands around. */
export function Foreign({ children }: { children: string }) {
  return <bdi className="foreign">{children}</bdi>;
}

/** Beyond this a text is shown in pieces; a line of a megabyte would hold up everything. */
const MOST = 6000;
const MOST_LINES = 60;
/** What is shown at first of such a text. */
const BEGINNING = 1500;
const PIECE = 60_000;

/** What somebody wrote: Markdown where it is short enough, plain text in pieces where it is not. */
export function Said({ text, plain = false }: { text: string; plain?: boolean }) {
  const { locale, words } = useLanguage();
  const isWhole = text.length <= MOST;
  const first = isWhole ? MOST : BEGINNING;
  const [more, setMore] = useState(0);
  const shown = useMemo(() => shortened(text, first + more * PIECE, more === 0 ? MOST_LINES : Infinity), [text, first, more]);
  const isPlain = plain || !isWhole || isTangled(text);
  return (
    <div className="said" dir="auto">
      {isPlain ? <pre className="plain">{shown.text}</pre> : <Markdown text={shown.text} />}
      {(shown.left > 0 || more > 0) && (
        <div className="row more">
          {shown.left > 0 && (
            <button type="button" className="quiet" onClick={() => setMore(more + 1)}>
              {words.call.more(count(Math.min(shown.left, PIECE), locale))}
            </button>
          )}
          {more > 0 && (
            <button type="button" className="quiet" onClick={() => setMore(0)}>
              {words.call.less}
            </button>
          )}
          <Copy text={text} />
          <span className="soft num">{count(text.length, locale)}</span>
        </div>
      )}
    </div>
  );
}

export function Copy({ text }: { text: string }) {
  const { words } = useLanguage();
  const [isCopied, setCopied] = useState(false);
  const copy = (): void => {
    void navigator.clipboard.writeText(text).then(() => {
      setCopied(true);
      setTimeout(() => setCopied(false), 1500);
    });
  };
  return (
    <button type="button" className="quiet" onClick={copy}>
      {isCopied ? words.call.copied : words.call.copy}
    </button>
  );
}
