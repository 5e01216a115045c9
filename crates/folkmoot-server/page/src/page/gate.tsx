import { type FormEvent, useState } from 'react';
import { useLanguage } from '../text/words';
import { Field } from './field';

/** Asks for the token where the link did not bring one. */
export function TokenGate({ wasRefused, onToken }: { wasRefused: boolean; onToken(token: string): void }) {
  const { words } = useLanguage();
  const [token, setToken] = useState('');
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (token.trim() !== '') onToken(token.trim());
  };
  return (
    <main className="gate">
      <form className="stack" onSubmit={submit}>
        <h1>{words.token.title}</h1>
        <p className="soft">{words.token.why}</p>
        {wasRefused && (
          <p className="tone-bad" role="alert">
            {words.token.refused}
          </p>
        )}
        <Field label={words.token.field}>
          {(id) => <input id={id} type="password" autoComplete="off" spellCheck={false} value={token} onChange={(event) => setToken(event.target.value)} autoFocus />}
        </Field>
        <div className="row end">
          <button type="submit" className="main">
            {words.token.go}
          </button>
        </div>
      </form>
    </main>
  );
}
