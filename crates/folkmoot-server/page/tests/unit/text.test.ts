import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, test } from 'vitest';
import { split } from '../../src/api/token';
import { shortened } from '../../src/fold/conversation';
import { Markdown, isTangled } from '../../src/page/markdown';
import { parse } from '../../src/route';
import { chinese } from '../../src/text/chinese';
import { english } from '../../src/text/english';
import { clock, dollars, duration, moment, monogram, rough, share } from '../../src/text/format';
import { localeOf } from '../../src/text/words';

test('numbers are as short as they can be and still tell something', () => {
  expect([0, 999, 1000, 12_345, 999_499, 4_100_000].map((value) => rough(value, 'en'))).toEqual(['0', '999', '1k', '12.3k', '999k', '4.1M']);
  expect([0, 0.00214, 0.064, 2.5, 1234].map((value) => dollars(value, 'en'))).toEqual(['$0.00', '$0.0021', '$0.064', '$2.50', '$1,234.00']);
  expect([0, 500, 8_000, 1_200_000, 59_940_000, 59_960_000, 245_000_000, 3_729_000_000].map(duration)).toEqual(['0 s', '<1 ms', '8 ms', '1.2 s', '59.9 s', '1:00', '4:05', '1:02:09']);
  expect([0, 500_000, 1_500_000, 90_000_000].map((at) => moment(at, 500_000))).toEqual(['0', '500 ms', '1.5 s', '1:30']);
  expect([share(5, 10), share(20, 10), share(0, 0), share(-1, 5)]).toEqual([0.5, 1, 1, 0]);
});

test('a moment of today is told by its hour alone', () => {
  const now = new Date(2026, 10, 30, 12, 0);
  expect(clock(new Date(2026, 10, 30, 9, 5).toISOString(), 'en', now)).toBe('09:05');
  expect(clock(new Date(2026, 10, 29, 9, 5).toISOString(), 'en', now)).toContain('29');
  expect(clock('nonsense', 'en', now)).toBe('');
});

test('names are told apart by two letters, or by one sign of a script of signs', () => {
  expect(['Code Reviewer', 'coder', '研究员', 'team/Ada', '', '👩‍🔬 x'].map(monogram)).toEqual(['CR', 'CO', '研', 'AD', '?', '👩X']);
});

test('a long text is cut at a line or between characters, and what is left is counted', () => {
  expect(shortened('abc', 10, 10)).toEqual({ text: 'abc', left: 0 });
  expect(shortened('a\nb\nc\nd', 100, 2)).toEqual({ text: 'a\nb', left: 4 });
  expect(shortened('ab😀cd', 3, 10)).toEqual({ text: 'ab', left: 4 });
  expect(shortened('x'.repeat(1 << 20), 6000, 60).left).toBe((1 << 20) - 6000);
});

const HOSTILE = [
  '<script>alert(1)</script>',
  '<img src=x onerror=alert(1)>',
  '[a](javascript:alert(1)) [b](data:text/html,x) [c](JaVaScRiPt:x) [d](//evil) [e](/v1/runs)',
  '![pixel](http://evil/p.png) ![x](javascript:alert(1))',
  '<style>*{display:none}</style>\n\n<iframe src=/></iframe>',
  '<http://evil/"onmouseover=alert(1)>',
  '[x]: javascript:alert(1)\n\n[x]',
  '`<b>` and\n\n```html\n<b onclick=x>\n```',
];

test('whatever an agent writes becomes text and a few plain elements', () => {
  for (const text of HOSTILE) {
    const html = renderToStaticMarkup(createElement(Markdown, { text }));
    expect(html).not.toMatch(/<(?!\/?(p|strong|em|del|code|pre|blockquote|ol|ul|li|br|hr|a|span|div|table|thead|tbody|tr|th|td)\b)/);
    expect(html).not.toMatch(/<[^>]*\s(on\w+|style|src|srcset)=/i);
    expect(html).not.toMatch(/href="(?!https?:|mailto:)/i);
  }
});

test('Markdown is shown as what it means', () => {
  const html = renderToStaticMarkup(createElement(Markdown, { text: '## T\n\n- **a**\n\n| x | y |\n|---|---|\n| 1 | ~~2~~ |\n\n[l](https://example.org)' }));
  for (const part of ['role="heading"', '<strong>a</strong>', '<td dir="auto">1</td>', '<del>2</del>', 'rel="noopener noreferrer nofollow"']) expect(html).toContain(part);
});

test('text of which no reader of Markdown makes sense in time is shown as it is', () => {
  const html = (text: string): string => renderToStaticMarkup(createElement(Markdown, { text }));
  for (const piece of ['>', '> ', '- ', '1. ', '[', '![[', '*', '*a_', '**a ', '~~a ', '`', '`a', '<a ', '[a](b', '&', '> a\n', '- a\n  ']) {
    const text = piece.repeat(6000 / piece.length);
    expect(isTangled(text), piece).toBe(true);
    expect(html(text)).not.toContain('<');
  }
  const written = '- **point** one, with `code` and a [link](https://example.org)\n'.repeat(60);
  expect(isTangled(written)).toBe(false);
  expect(html(written)).toContain('<li>');
});

test('the token is taken out of the fragment wherever it stands in it', () => {
  expect(split('#token=a%20b')).toEqual({ token: 'a b', rest: '' });
  expect(split('#/runs/x&token=abc')).toEqual({ token: 'abc', rest: '#/runs/x' });
  expect(split('#/runs/x')).toEqual({ token: null, rest: '#/runs/x' });
  expect(split('#token=')).toEqual({ token: null, rest: '' });
  expect(split('#token=%E0%A4%A')).toEqual({ token: '%E0%A4%A', rest: '' });
});

test('every place has an address, and what is none is nowhere', () => {
  expect(['', '#/', '#/new', '#/runs/a%2Fb', '#/compare/a/b', '#/x', '#/runs/a/b'].map((hash) => parse(hash))).toEqual([
    { at: 'runs' },
    { at: 'runs' },
    { at: 'new' },
    { at: 'run', id: 'a/b' },
    { at: 'compare', a: 'a', b: 'b' },
    { at: 'nowhere' },
    { at: 'nowhere' },
  ]);
});

test('the first language that the page speaks is taken, and both have the same words', () => {
  expect(localeOf(['fr', 'zh-TW', 'en'])).toBe('zh');
  expect(localeOf(['en-GB', 'zh'])).toBe('en');
  expect(localeOf(['fr'])).toBe('en');
  const keys = (words: object): string[] => Object.entries(words).flatMap(([key, value]) => (typeof value === 'object' ? keys(value as object).map((inner) => `${key}.${inner}`) : [key]));
  expect(keys(chinese).sort()).toEqual(keys(english).sort());
});
