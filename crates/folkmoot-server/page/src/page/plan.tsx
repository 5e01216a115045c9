import type { Plan, Range, TeamEntry } from '../api/views';
import { count, dollars, rough } from '../text/format';
import { useLanguage } from '../text/words';
import { Icon } from './icon';
import { Foreign } from './text';

/** What a run can take at most and at least. */
export function PlanView({ plan, agents }: { plan: Plan; agents: TeamEntry['agents'] }) {
  const { locale, words } = useLanguage();
  const { bounds } = plan;
  const name = (id: string): string => agents.find((it) => it.id === id)?.name ?? id;
  const whole = (value: number): string => count(value, locale);
  const short = (value: number): string => rough(value, locale);
  const money = (value: number): string => dollars(value, locale);
  const verdict = bounds.fits === true ? words.start.fits : bounds.fits === false ? words.start.fitsNot : words.start.fitsMaybe;
  return (
    <div className="plan stack">
      <dl className="plan-totals">
        <Total name={words.cost.calls} range={bounds.calls} text={whole}>
          {bounds.critical_path !== null && words.start.inRow(whole(bounds.critical_path))}
        </Total>
        <Total name={words.cost.tokens} range={bounds.tokens} text={short} />
        <Total name={words.cost.cost} range={bounds.cost_usd} text={money} />
      </dl>
      <p className={`verdict tone-${bounds.fits === true ? 'good' : bounds.fits === false ? 'bad' : 'wait'}`}>
        <Icon shape={bounds.fits === true ? 'check' : bounds.fits === false ? 'bound' : 'question'} />
        {verdict}
      </p>
      <div className="table" tabIndex={0} role="region" aria-label={words.start.plan}>
        <table>
          <thead>
            <tr>
              <th scope="col">{words.start.phase}</th>
              <th scope="col">{words.start.who}</th>
              <th scope="col" className="num">{words.cost.calls}</th>
              <th scope="col" className="num">{words.cost.tokens}</th>
              <th scope="col" className="num">{words.cost.cost}</th>
            </tr>
          </thead>
          <tbody>
            {bounds.phases.map((phase) => (
              <tr key={phase.name}>
                <th scope="row" className="mono">{phase.name}</th>
                <td dir="auto">
                  <Foreign>{phase.agents.map(name).join(', ')}</Foreign>
                  {phase.any && <span className="soft"> · {words.start.several}</span>}
                </td>
                <Amount range={phase.calls} text={whole} />
                <Amount range={phase.tokens} text={short} />
                <Amount range={phase.cost_usd} text={money} />
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {bounds.unknown.length > 0 && (
        <ul className="notes soft">
          {bounds.unknown.map((it, at) => (
            <li key={at} dir="auto">{it.message}</li>
          ))}
        </ul>
      )}
      {plan.warnings.length > 0 && (
        <ul className="notes tone-wait">
          {plan.warnings.map((it, at) => (
            <li key={at} dir="auto">{it.message}</li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Total({ name, range, text, children }: { name: string; range: Range; text(value: number): string; children?: React.ReactNode }) {
  const { words } = useLanguage();
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <span className="soft">{words.start.atMost} </span>
        <strong className="num">{range.max === null ? words.start.unknown : text(range.max)}</strong>
        <span className="soft num">
          {words.start.atLeast} {text(range.min)}
        </span>
        {children && <span className="soft num">{children}</span>}
      </dd>
    </div>
  );
}

function Amount({ range: { min, max }, text }: { range: Range; text(value: number): string }) {
  const { words } = useLanguage();
  const most = max === null ? words.start.unknown : text(max);
  return <td className="num">{max !== null && min === max ? most : `${text(min)}–${most}`}</td>;
}
