import { useSyncExternalStore } from 'react';

/** Where in the page somebody is: it stands in the fragment, so that every place has a link and the server sees none. */
export type Route =
  | { at: 'runs' }
  | { at: 'new' }
  | { at: 'run'; id: string }
  | { at: 'compare'; a: string; b: string }
  | { at: 'nowhere' };

export function parse(hash: string): Route {
  const parts = hash.replace(/^#\/?/, '').split('/').map(decoded);
  const [first, a, b] = parts;
  if (first === '' || (first === 'runs' && parts.length === 1)) return { at: 'runs' };
  if (first === 'new' && parts.length === 1) return { at: 'new' };
  if (first === 'runs' && a && parts.length === 2) return { at: 'run', id: a };
  if (first === 'compare' && a && b && parts.length === 3) return { at: 'compare', a, b };
  return { at: 'nowhere' };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function href(route: Route): string {
  switch (route.at) {
    case 'run':
      return `#/runs/${encodeURIComponent(route.id)}`;
    case 'compare':
      return `#/compare/${encodeURIComponent(route.a)}/${encodeURIComponent(route.b)}`;
    case 'new':
      return '#/new';
    case 'runs':
    case 'nowhere':
      return '#/';
  }
}

export function go(route: Route): void {
  location.hash = href(route);
}

export function useRoute(): Route {
  const hash = useSyncExternalStore(listen, () => location.hash);
  return parse(hash);
}

function listen(changed: () => void): () => void {
  addEventListener('hashchange', changed);
  return () => removeEventListener('hashchange', changed);
}
