import { copyFileSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const OWN = join(import.meta.dirname, 'teams');

/** Puts the teams of these tests into a folder: those that are written down, and two that are too large for that. */
export function putTeams(folder: string): void {
  mkdirSync(folder, { recursive: true });
  for (const file of readdirSync(OWN)) copyFileSync(join(OWN, file), join(folder, file));
  writeFileSync(join(folder, 'long.yaml'), long());
  writeFileSync(join(folder, 'many.yaml'), many());
}

/** A line of nearly a megabyte: a team file of more is refused. */
function long(): string {
  const line = 'x'.repeat(1_000_000);
  return `name: Long line\nagents: [{ name: flood, script: { replies: ["${line}"] } }]\ncollaboration: { strategy: sequential }\n`;
}

/** A thousand calls: twenty agents, fifty rounds. */
function many(): string {
  const agents = Array.from(
    { length: 20 },
    (_, n) => `  - { name: agent-${n}, description: "Number ${n}", script: { replies: ["Says **${n}** in every round.\\n\\n- one\\n- two\\n\\nAnd a sentence that is a little longer."] } }`,
  );
  return `name: Many\nagents:\n${agents.join('\n')}\ncollaboration: { strategy: broadcast, rounds: 50 }\n`;
}
