import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Browser, type BrowserContextOptions, type Page, chromium } from 'playwright-core';
import { expect, inject } from 'vitest';

const SHOTS = process.env.FOLKMOOT_SHOTS ?? join(import.meta.dirname, '../../shots');

let browser: Browser | undefined;

/** A page as somebody opens it, with all that it did wrong. */
export interface Stage {
  page: Page;
  /** Addresses that it asked for outside of the server, errors, and what its policy had to forbid. */
  faults: string[];
  close(): Promise<void>;
}

declare module 'vitest' {
  export interface ProvidedContext {
    at: string;
    token: string;
    /** A token that may only look; empty if there is none. */
    reader: string;
  }
}

/** Opens the page at a place of it, by the link that the server prints. */
export async function open(place = '', options: BrowserContextOptions = {}, token = inject('token')): Promise<Stage> {
  browser ??= await chromium.launch({
    executablePath: process.env.FOLKMOOT_CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu'],
  });
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, locale: 'en-US', ...options });
  const page = await context.newPage();
  const faults: string[] = [];
  const at = inject('at');
  page.on('request', (request) => request.url().startsWith(`${at}/`) || faults.push(`asked for ${request.url()}`));
  page.on('pageerror', (error) => faults.push(`error: ${error.message}`));
  page.on('dialog', (dialog) => (faults.push(`dialog: ${dialog.message()}`), void dialog.dismiss()));
  page.on('console', (message) => {
    if (message.type() === 'error' && /content security policy|trusted/i.test(message.text())) faults.push(message.text());
  });
  await page.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => console.error(`content security policy: ${event.violatedDirective}`));
  });
  await page.goto(`${at}/#${place === '' ? '' : `${place}&`}token=${token}`);
  return { page, faults, close: () => context.close() };
}

/** Plays a scene on the page; nothing may have gone wrong at its end. */
export async function scene(place: string, options: BrowserContextOptions, play: (page: Page) => Promise<void>): Promise<void> {
  const { page, faults, close } = await open(place, options);
  try {
    await play(page);
    expect(faults).toEqual([]);
  } catch (error) {
    await shot(page, 'failed');
    throw error;
  } finally {
    await close();
  }
}

export async function shot(page: Page, name: string): Promise<void> {
  mkdirSync(SHOTS, { recursive: true });
  await page.screenshot({ path: join(SHOTS, `${name}.png`) });
}

/** Starts a run as a program does; gives its id. */
export async function start(team: string, prompt = 'Is it time?'): Promise<string> {
  const { run_id } = await ask<{ run_id: string }>('/v1/runs', { team, prompt });
  return run_id;
}

export async function ask<T>(path: string, body?: unknown): Promise<T> {
  const headers = { Authorization: `Bearer ${inject('token')}`, 'Content-Type': 'application/json' };
  const response = await fetch(inject('at') + path, body === undefined ? { headers } : { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
}

/** Waits until the run that is shown has this status. */
export async function until(page: Page, status: string | RegExp, timeout = 60_000): Promise<void> {
  await page.locator('.run-side [role=status]').filter({ hasText: status }).waitFor({ timeout });
}

export async function end(): Promise<void> {
  await browser?.close();
}
