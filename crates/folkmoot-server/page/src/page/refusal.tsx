import type { Problem } from '../api/client';
import { Icon } from './icon';

/** Why the server refused, in its own words. */
export function Refusal({ problem }: { problem: Problem }) {
  const further = problem.errors.filter((error) => error.message !== problem.message);
  return (
    <div className="refusal" role="alert">
      <Icon shape="cross" />
      <div dir="auto">
        {problem.message}
        {further.length > 0 && (
          <ul>
            {further.map((error, at) => (
              <li key={at}>
                {error.line !== undefined && <span className="mono soft">{error.line}: </span>}
                {error.message}
              </li>
            ))}
          </ul>
        )}
      </div>
    </div>
  );
}
