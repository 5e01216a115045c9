/**
 * The token that the link brings: read from the fragment, which no server ever sees, kept for this tab alone, and taken
 * out of the address so that it is in no history and in no link that is copied.
 */

const PLACE = 'folkmoot-token';

/** Splits `#token=…` (also `#/runs/x&token=…`) into the token and the fragment without it. */
export function split(hash: string): { token: string | null; rest: string } {
  const parts = hash.replace(/^#/, '').split('&');
  const found = parts.find((part) => part.startsWith('token='));
  const rest = parts.filter((part) => part !== found).join('&');
  const token = found === undefined ? null : decoded(found.slice('token='.length));
  return { token: token || null, rest: rest === '' ? '' : `#${rest}` };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Takes the token out of the address if it is there, else the one of this tab. */
export function take(): string | null {
  const { token, rest } = split(location.hash);
  if (token === null) return sessionStorage.getItem(PLACE);
  sessionStorage.setItem(PLACE, token);
  history.replaceState(null, '', location.pathname + location.search + rest);
  return token;
}

export function keep(token: string): void {
  sessionStorage.setItem(PLACE, token);
}

export function forget(): void {
  sessionStorage.removeItem(PLACE);
}
