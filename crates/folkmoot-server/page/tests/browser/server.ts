import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { putTeams } from './teams';

/** Starts `folkmoot serve` for all tests: the program that FOLKMOOT names, or one that runs already at FOLKMOOT_AT. */
export default async function serve(project: TestProject): Promise<() => void> {
  const { FOLKMOOT, FOLKMOOT_AT, FOLKMOOT_TOKEN } = process.env;
  if (FOLKMOOT_AT) {
    project.provide('at', FOLKMOOT_AT);
    project.provide('token', FOLKMOOT_TOKEN ?? '');
    project.provide('reader', process.env.FOLKMOOT_READ_TOKEN ?? '');
    return () => undefined;
  }
  if (!FOLKMOOT) throw new Error('FOLKMOOT names no program to test');
  const folder = mkdtempSync(join(tmpdir(), 'folkmoot-page-'));
  const [token, reader] = [randomBytes(24).toString('hex'), randomBytes(24).toString('hex')];
  const at = `127.0.0.1:${await freePort()}`;
  putTeams(join(folder, 'teams'));
  const server = spawn(FOLKMOOT, ['serve', '--listen', at, '--teams', join(folder, 'teams'), '--max-runs', '8'], {
    cwd: folder,
    env: { ...process.env, FOLKMOOT_DB: join(folder, 'runs.db'), FOLKMOOT_TOKEN: token, FOLKMOOT_READ_TOKEN: reader, XDG_CONFIG_HOME: folder, XDG_STATE_HOME: folder },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  await answers(`http://${at}/healthz`, server);
  project.provide('at', `http://${at}`);
  project.provide('token', token);
  project.provide('reader', reader);
  return () => {
    server.kill();
    rmSync(folder, { recursive: true, force: true });
  };
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer().once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}

async function answers(url: string, server: ChildProcess): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    if (server.exitCode !== null) throw new Error(`folkmoot serve ended with ${server.exitCode}`);
    const isThere = await fetch(url).then((response) => response.ok, () => false);
    if (isThere) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error('folkmoot serve does not answer');
}
