import type { Micros } from '../api/log';
import { type RunView, NOTHING, tokensOf } from '../fold/run';
import { count, dollars, duration, ofMoney, rough, share } from '../text/format';
import { useLanguage } from '../text/words';
import { Foreign } from './text';

interface Meter {
  name: string;
  used: string;
  limit: string | null;
  share: number | null;
}

function useMeters(view: RunView, now: Micros): Meter[] {
  const { locale, words } = useLanguage();
  const { limits, total, started } = view;
  const tokens = tokensOf(total);
  const meter = (name: string, used: number | undefined, limit: number | undefined, text: (value: number) => string): Meter => ({
    name,
    used: used === undefined ? words.cost.unknown : text(used),
    limit: limit === undefined ? null : text(limit),
    share: used === undefined || limit === undefined ? null : share(used, limit),
  });
  return [
    meter(words.cost.calls, started, limits.calls, (value) => count(value, locale)),
    meter(words.cost.tokens, tokens, limits.tokens ?? limits.soft_tokens, (value) => rough(value, locale)),
    meter(words.cost.cost, total.cost, limits.cost, (value) => dollars(ofMoney(value), locale)),
    meter(words.cost.time, now, limits.time, duration),
  ];
}

/** What the run has used of each limit, in a line. */
export function Meters({ view, now }: { view: RunView; now: Micros }) {
  const { words } = useLanguage();
  return (
    <dl className="meters">
      {useMeters(view, now).map((meter) => (
        <div key={meter.name} className="meter">
          <dt>{meter.name}</dt>
          <dd className="num">
            <strong>{meter.used}</strong>
            {meter.limit !== null && <span className="soft"> / {meter.limit}</span>}
          </dd>
          {meter.share !== null && meter.limit !== null && (
            <dd
              className={`meter-bar${meter.share >= 1 ? ' is-full' : meter.share > 0.8 ? ' is-near' : ''}`}
              role="meter"
              aria-valuemin={0}
              aria-valuemax={100}
              aria-valuenow={Math.round(meter.share * 100)}
              aria-label={words.cost.spent(meter.name, meter.used, meter.limit)}
            >
              <span style={{ width: `${meter.share * 100}%` }} />
            </dd>
          )}
        </div>
      ))}
    </dl>
  );
}

/** Who used how much of it. */
export function CostView({ view, now }: { view: RunView; now: Micros }) {
  const { locale, words } = useLanguage();
  const all = tokensOf(view.total);
  const rows = view.members
    .map((member) => {
      const usage = view.usage.get(member.id) ?? NOTHING;
      const calls = view.asked.filter((it) => it.agent === member.id && it.call.kind === 'agent' && !it.inherited).length;
      return { member, usage, calls, tokens: tokensOf(usage) };
    })
    .filter((row) => row.calls > 0)
    .sort((a, b) => b.tokens - a.tokens);
  const written = (value: number): string => count(value, locale);
  const money = (cost: number | undefined): string => (cost === undefined ? words.cost.unknown : dollars(ofMoney(cost), locale));
  return (
    <div className="cost stack">
      <dl className="limits-list">
        {useMeters(view, now).map((meter) => (
          <div key={meter.name}>
            <dt>{meter.name}</dt>
            <dd className="num">
              {meter.used} <span className="soft">{meter.limit === null ? `· ${words.cost.noLimit}` : `${words.cost.of} ${meter.limit}`}</span>
            </dd>
          </div>
        ))}
      </dl>
      {view.total.estimated && <p className="soft">{words.cost.estimated}</p>}
      <div className="table" tabIndex={0} role="region" aria-label={words.run.cost}>
        <table>
          <thead>
            <tr>
              <th scope="col">{words.cost.agent}</th>
              <th scope="col" className="num">{words.cost.calls}</th>
              <th scope="col" className="num">{words.cost.read}</th>
              <th scope="col" className="num">{words.cost.written}</th>
              <th scope="col" className="num">{words.cost.cost}</th>
              <th scope="col">{words.cost.share}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(({ member, usage, calls, tokens }) => (
              <tr key={member.id}>
                <th scope="row">
                  <Foreign>{member.id === 'parent' ? words.run.lead : member.name}</Foreign>
                  {member.model && <div className="soft mono small">{member.model}</div>}
                </th>
                <td className="num">{written(calls)}</td>
                <td className="num">{written(tokens - usage.output)}</td>
                <td className="num">{written(usage.output)}</td>
                <td className="num">{money(usage.cost)}</td>
                <td className="share">
                  <span className="share-bar" style={{ width: `${share(tokens, all || 1) * 100}%` }} aria-hidden="true" />
                  <span className="num">{Math.round(share(tokens, all || 1) * 100)} %</span>
                </td>
              </tr>
            ))}
          </tbody>
          <tfoot>
            <tr>
              <th scope="row">{words.cost.all}</th>
              <td className="num">{written(rows.reduce((sum, row) => sum + row.calls, 0))}</td>
              <td className="num">{written(all - view.total.output)}</td>
              <td className="num">{written(view.total.output)}</td>
              <td className="num">{money(view.total.cost)}</td>
              <td />
            </tr>
          </tfoot>
        </table>
      </div>
    </div>
  );
}
