import type { Micros } from '../api/log';

export type Locale = 'en' | 'zh';

const numbers = new Map<string, Intl.NumberFormat>();

function number(locale: Locale, options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const name = locale + JSON.stringify(options);
  const known = numbers.get(name) ?? new Intl.NumberFormat(locale, options);
  numbers.set(name, known);
  return known;
}

/** A whole number with its thousands apart. */
export function count(value: number, locale: Locale): string {
  return number(locale, { maximumFractionDigits: 0 }).format(value);
}

/** A number that only has to be known roughly: `950`, `12.3k`, `4.1M`. */
export function rough(value: number, locale: Locale): string {
  if (value < 1000) return count(value, locale);
  const [by, unit] = value < 999_500 ? [1000, 'k'] : value < 999_500_000 ? [1e6, 'M'] : [1e9, 'G'];
  return number(locale, { maximumSignificantDigits: 3 }).format(value / by) + unit;
}

/** Money in US dollars; small amounts keep two digits that tell something. */
export function dollars(value: number, locale: Locale): string {
  const small = value > 0 && value < 0.1;
  const digits = small ? { maximumSignificantDigits: 2 } : { minimumFractionDigits: 2, maximumFractionDigits: 2 };
  return `$${number(locale, digits).format(value)}`;
}

/** An amount of the log, in millionths of a millionth of a dollar, as dollars. */
export function ofMoney(amount: number): number {
  return amount / 1e12;
}

/** How long something took: `8 ms`, `3.2 s`, `4:05`, `1:02:09`. */
export function duration(micros: Micros): string {
  if (micros < 1000) return micros <= 0 ? '0 s' : '<1 ms';
  if (micros < 999_500) return `${Math.round(micros / 1000)} ms`;
  if (micros < 59_950_000) return `${(micros / 1e6).toFixed(1)} s`;
  const all = Math.round(micros / 1e6);
  const [hours, minutes, seconds] = [Math.floor(all / 3600), Math.floor(all / 60) % 60, all % 60];
  const two = (part: number): string => String(part).padStart(2, '0');
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds)}` : `${minutes}:${two(seconds)}`;
}

/** A moment on the axis: as short as its step allows. */
export function moment(micros: Micros, step: Micros): string {
  if (micros === 0) return '0';
  if (step < 1000) return `${+(micros / 1000).toFixed(3)} ms`;
  if (micros < 1e6) return `${micros / 1000} ms`;
  if (micros < 60e6) return `${+(micros / 1e6).toFixed(3)} s`;
  return duration(micros);
}

/** When something began, by the wall clock of whoever reads it. */
export function clock(iso: string, locale: Locale, now: Date): string {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return '';
  const isToday = date.toDateString() === now.toDateString();
  const time: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit', hour12: false };
  const day: Intl.DateTimeFormatOptions = { day: 'numeric', month: 'short' };
  return new Intl.DateTimeFormat(locale, isToday ? time : { ...day, ...time }).format(date);
}

/** How much of a limit is used, from 0 to 1; more than all is all. */
export function share(used: number, limit: number): number {
  return limit <= 0 ? 1 : Math.min(1, Math.max(0, used / limit));
}

/** Two letters, or one character of a script that writes words so, by which a name is told apart. */
export function monogram(name: string): string {
  const own = name.split('/').at(-1)?.trim() ?? '';
  const words = own.split(/[\s\-_.]+/).filter((word) => word !== '');
  const letters = words.length > 1 ? words.slice(0, 2).map(first) : [...(words[0] ?? '?')].slice(0, /^[\x20-\x7e]*$/.test(own) ? 2 : 1);
  return letters.join('').toLocaleUpperCase();
}

function first(word: string): string {
  return [...word][0] ?? '';
}
