import { useEffect, useMemo, useState } from 'react';
import { Client, Problem } from './api/client';
import * as tokens from './api/token';
import type { Session } from './api/views';
import { CompareView } from './page/compare';
import { TokenGate } from './page/gate';
import { RunPage } from './page/run';
import { RunList } from './page/runs';
import { RunsContext, usePolledRuns } from './page/runs-context';
import { StartRun } from './page/start';
import { ThemeButton } from './page/theme';
import { type Route, href, useRoute } from './route';
import { LanguageContext, localeOf, useLanguage, wordsOf } from './text/words';

export function App({ token: taken }: { token: string | null }) {
  const [token, setToken] = useState(taken);
  const language = useLocale();
  const client = useMemo(() => (token === null ? null : new Client(token)), [token]);
  const { session, isRefused } = useSession(client);
  const runs = usePolledRuns(isRefused ? null : client);
  const accept = (given: string): void => {
    tokens.keep(given);
    setToken(given);
  };
  useEffect(() => {
    if (isRefused) tokens.forget();
  }, [isRefused]);
  return (
    <LanguageContext value={language}>
      {client === null || isRefused ? (
        <TokenGate wasRefused={isRefused} onToken={accept} />
      ) : (
        <RunsContext value={runs}>
          <Shell client={client} mayAct={session?.role !== 'read'} />
        </RunsContext>
      )}
    </LanguageContext>
  );
}

function Shell({ client, mayAct }: { client: Client; mayAct: boolean }) {
  const { words } = useLanguage();
  const route = useRoute();
  const current = route.at === 'run' ? route.id : null;
  return (
    <div className={`shell at-${route.at}`}>
      <a className="skip" href="#main" onClick={(event) => (event.preventDefault(), document.getElementById('main')?.focus())}>
        {words.shell.skip}
      </a>
      <nav className="bar" aria-label="Folkmoot">
        <a className="brand" href={href({ at: 'runs' })} aria-label={words.shell.home}>
          <Mark />
          <span>Folkmoot</span>
        </a>
        <a className="bar-link" href={href({ at: 'runs' })} aria-current={route.at === 'runs' ? 'page' : undefined}>
          {words.shell.runs}
        </a>
        {mayAct && (
          <a className="bar-link" href={href({ at: 'new' })} aria-current={route.at === 'new' ? 'page' : undefined}>
            {words.shell.newRun}
          </a>
        )}
        <span className="bar-space" />
        <ThemeButton />
      </nav>
      {route.at === 'run' && (
        <aside className="beside" aria-label={words.shell.runs}>
          <RunList current={current} isNarrow />
        </aside>
      )}
      <main id="main" tabIndex={-1} className="main-area">
        <Place route={route} client={client} mayAct={mayAct} />
      </main>
    </div>
  );
}

function Place({ route, client, mayAct }: { route: Route; client: Client; mayAct: boolean }) {
  const { words } = useLanguage();
  switch (route.at) {
    case 'runs':
      return <RunList />;
    case 'new':
      return mayAct ? <StartRun client={client} /> : <p className="empty soft">{words.shell.notFound}</p>;
    case 'run':
      return <RunPage key={route.id} client={client} id={route.id} mayAct={mayAct} />;
    case 'compare':
      return <CompareView client={client} a={route.a} b={route.b} />;
    case 'nowhere':
      return <p className="empty soft">{words.shell.notFound}</p>;
  }
}

function Mark() {
  return (
    <svg className="brand-mark" viewBox="0 0 32 32" aria-hidden="true">
      <circle className="ring" cx="16" cy="16" r="9.5" />
      <circle cx="16" cy="6.5" r="4" />
      <circle cx="24.2" cy="20.8" r="4" />
      <circle cx="7.8" cy="20.8" r="4" />
    </svg>
  );
}

function useLocale() {
  return useMemo(() => {
    const locale = localeOf(navigator.languages);
    document.documentElement.lang = locale === 'zh' ? 'zh-CN' : 'en';
    return { locale, words: wordsOf(locale) };
  }, []);
}

function useSession(client: Client | null): { session: Session | null; isRefused: boolean } {
  const [session, setSession] = useState<Session | null>(null);
  const [refused, setRefused] = useState<Client | null>(null);
  useEffect(() => {
    if (!client) return;
    client.session().then(setSession, (error: unknown) => {
      if (error instanceof Problem && error.status === 401) setRefused(client);
    });
  }, [client]);
  return { session, isRefused: client !== null && refused === client };
}
