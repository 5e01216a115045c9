import type { Nodes, RootContent, Table } from 'mdast';
import { fromMarkdown } from 'mdast-util-from-markdown';
import { gfmStrikethroughFromMarkdown } from 'mdast-util-gfm-strikethrough';
import { gfmTableFromMarkdown } from 'mdast-util-gfm-table';
import { gfmStrikethrough } from 'micromark-extension-gfm-strikethrough';
import { gfmTable } from 'micromark-extension-gfm-table';
import { type ReactNode, memo, useMemo } from 'react';

const EXTENSIONS = {
  extensions: [gfmTable(), gfmStrikethrough({ singleTilde: false })],
  mdastExtensions: [gfmTableFromMarkdown(), gfmStrikethroughFromMarkdown()],
};

/** Deeper than people quote; what is nested deeper is shown as the text that it is made of. */
const MOST_DEEP = 24;

/** What people write has fewer signs of Markdown, and fewer lines that begin with one, than that. */
const MOST_SIGNS = 600;
const MOST_ITEMS = 200;

/**
 * Whether a text has so many signs of Markdown, or so deep quotes and lists, that reading them would take longer than
 * anybody waits: no reader of Markdown is linear in these.
 */
export function isTangled(text: string): boolean {
  const signs = text.match(/[*_~`[\]<&]/g)?.length ?? 0;
  const items = text.match(/^[ \t]*(?:[>*+-]|\d{1,9}[.)])/gm)?.length ?? 0;
  return signs > MOST_SIGNS || items > MOST_ITEMS || /^(?:[ \t]*(?:[>*+-]|\d{1,9}[.)])){20}/m.test(text);
}

/**
 * Markdown that somebody else wrote. Each kind of node that is known becomes one element without any attribute of its
 * own, and HTML becomes the text that it is; so nothing is fetched, run or styled, whatever the text says.
 */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  return useMemo(() => (isTangled(text) ? text : all(fromMarkdown(text, EXTENSIONS).children, 0)), [text]);
});

function all(nodes: readonly Nodes[], depth: number): ReactNode[] {
  return nodes.map((node, at) => <One node={node} depth={depth} key={at} />);
}

function One({ node, depth }: { node: Nodes; depth: number }): ReactNode {
  if (depth > MOST_DEEP) return flat(node);
  const inside = 'children' in node ? all(node.children, depth + 1) : null;
  switch (node.type) {
    case 'paragraph':
      return <p>{inside}</p>;
    case 'heading':
      return <p className="heading" role="heading" aria-level={Math.min(6, node.depth + 3)}>{inside}</p>;
    case 'strong':
      return <strong>{inside}</strong>;
    case 'emphasis':
      return <em>{inside}</em>;
    case 'delete':
      return <del>{inside}</del>;
    case 'inlineCode':
      return <code>{node.value}</code>;
    case 'code':
      return (
        <pre tabIndex={0} dir="ltr">
          <code>{node.value}</code>
        </pre>
      );
    case 'blockquote':
      return <blockquote>{inside}</blockquote>;
    case 'list':
      return node.ordered ? <ol start={node.start ?? 1}>{inside}</ol> : <ul>{inside}</ul>;
    case 'listItem':
      return <li>{inside}</li>;
    case 'break':
      return <br />;
    case 'thematicBreak':
      return <hr />;
    case 'link':
      return <Link to={node.url}>{inside}</Link>;
    case 'image':
      return <Link to={node.url}>{node.alt || node.url}</Link>;
    case 'table':
      return <TableView table={node} depth={depth} />;
    case 'text':
    case 'html':
      return node.value;
    case 'linkReference':
      return <span className="dead-link">{inside}</span>;
    case 'imageReference':
      return node.alt ?? node.identifier;
    case 'definition':
      return <p className="dead-link">{`[${node.label ?? node.identifier}]: ${node.url}`}</p>;
    default:
      return inside;
  }
}

/** A link opens nothing but web and mail addresses, elsewhere, and shows where it leads. */
function Link({ to, children }: { to: string; children: ReactNode }) {
  if (!/^(https?:\/\/|mailto:)/i.test(to)) return <span className="dead-link">{children}</span>;
  return (
    <a href={to} title={to} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}

function TableView({ table, depth }: { table: Table; depth: number }) {
  const [head, ...rows] = table.children;
  return (
    <div className="table" tabIndex={0} role="group">
      <table>
        <thead>
          <tr>{head?.children.map((cell, at) => <th key={at} dir="auto">{all(cell.children, depth + 1)}</th>)}</tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <tr key={at}>
              {row.children.map((cell, column) => (
                <td key={column} dir="auto">{all(cell.children, depth + 1)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The text in a node, however deep; without recursion, as depth is what somebody else chose. */
export function flat(node: Nodes): string {
  const left: (Nodes | RootContent)[] = [node];
  let text = '';
  for (let next = left.pop(); next; next = left.pop()) {
    if ('value' in next) text += next.value;
    if ('children' in next) left.push(...[...next.children].reverse());
  }
  return text;
}
