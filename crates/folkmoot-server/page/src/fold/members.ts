import type { Agent, Spec, Target } from '../api/log';

/** One who takes part, under the id that the whole run knows it by. */
export interface Member {
  id: string;
  name: string;
  description?: string;
  /** What answers for it, in a word. */
  model: string | null;
  /** The member whose team it belongs to. */
  within: string | null;
  isTeam: boolean;
}

/** Everyone in a team and in the teams that are members, each right behind the member it belongs to. */
export function members(spec: Spec, within: Member | null = null): Member[] {
  const everyone = [...spec.team.agents, ...(spec.team.staff ?? [])];
  return everyone.flatMap((agent) => {
    const nested = nestedSpec(agent.target);
    const member: Member = {
      id: within ? `${within.id}/${agent.id}` : agent.id,
      name: within ? `${within.name}/${agent.name}` : agent.name,
      model: label(agent),
      within: within?.id ?? null,
      isTeam: nested !== null,
      ...(agent.description === undefined ? {} : { description: agent.description }),
    };
    return nested ? [member, ...members(nested, member)] : [member];
  });
}

function nestedSpec(target: Target): Spec | null {
  if (typeof target === 'string') return null;
  const team = target.team as { spec?: Spec } | undefined;
  return team?.spec ?? null;
}

function label({ target }: Agent): string | null {
  if (typeof target === 'string') return target;
  const [kind] = Object.keys(target);
  const held = target[kind ?? ''] as Record<string, unknown> | undefined;
  switch (kind) {
    case 'model':
      return `${String(held?.provider)}/${String(held?.model)}`;
    case 'team':
      return String(held?.file ?? kind);
    default:
      return kind ?? null;
  }
}
