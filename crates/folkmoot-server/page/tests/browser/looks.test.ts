import { afterAll, expect, inject, test } from 'vitest';
import { type Page } from 'playwright-core';
import { ask, end, open, scene, shot, start, until } from './stage';

afterAll(end);

const PHONE = { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true };

/** Whether nothing is wider than the window. */
async function fits(page: Page): Promise<void> {
  const [inside, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  expect(inside).toBeLessThanOrEqual(window ?? 0);
}

test('the token leaves the address, and stays for this tab alone', () =>
  scene('/new', {}, async (page) => {
    await page.getByRole('heading', { name: 'New run' }).waitFor();
    expect(page.url()).toMatch(/#\/new$/);
    await page.reload();
    await page.getByRole('heading', { name: 'New run' }).waitFor();
    const kept = await page.evaluate(() => [document.cookie, JSON.stringify(localStorage)].join());
    expect(kept).not.toMatch(/[0-9a-f]{20}/);
  }));

test('without a token, and with a wrong one, the page asks for it and shows nothing', async () => {
  const { page, close } = await open();
  await page.getByRole('heading', { name: 'Runs' }).waitFor();
  await page.evaluate(() => sessionStorage.clear());
  await page.reload();
  await page.getByLabel('Token').fill('wrong');
  await page.getByRole('button', { name: 'Go on' }).click();
  await page.getByText('The server does not take this token.').waitFor();
  expect(await page.locator('.run-row').count()).toBe(0);
  await close();
});

test('whoever may only look is shown everything and offered nothing', async () => {
  const reader = inject('reader');
  if (reader === '') return;
  const id = await start('desk');
  const { page, faults, close } = await open(`/runs/${id}`, {}, reader);
  await until(page, 'waits for you');
  await page.locator('.agent.is-person').waitFor();
  for (const name of ['Cancel', 'Retry', 'Send the answer']) expect(await page.getByRole('button', { name }).count()).toBe(0);
  expect(await page.getByRole('link', { name: 'New run' }).count()).toBe(0);
  await page.getByRole('tab', { name: 'Events' }).click();
  await page.locator('.event').first().waitFor();
  expect(await page.getByRole('button', { name: /^Fork from event/ }).count()).toBe(0);
  expect(faults).toEqual([]);
  await close();
});

test('what agents write does nothing but stand there', async () => {
  const id = await start('hostile', '<img src=x onerror=pwned=1> \u202Eesrever');
  await scene(`/runs/${id}`, {}, async (page) => {
    await until(page, /done|failed/);
    await page.getByText("<svg onload='pwned=1'>").first().waitFor();
    for (const tab of ['Events', 'Cost', 'Conversation']) await page.getByRole('tab', { name: tab }).click();
    await page.getByRole('button', { name: /^Actions for round-1\/markup/ }).click();
    await page.keyboard.press('Escape');
    await shot(page, 'hostile');
    const found = await page.evaluate(() => ({
      pwned: 'pwned' in window,
      made: document.querySelectorAll('iframe, base, style, form[action], img, object, embed, meta[http-equiv], .said svg, .said script').length,
      scripts: document.scripts.length,
      handlers: [...document.querySelectorAll('*')].filter((it) => it.getAttributeNames().some((name) => name.startsWith('on'))).length,
      links: [...document.querySelectorAll('.said a')].map((it) => it.getAttribute('href')),
    }));
    expect(found).toMatchObject({ pwned: false, made: 0, scripts: 1, handlers: 0 });
    expect(found.links.every((link) => /^(https?:|mailto:)/.test(link ?? ''))).toBe(true);
    // A line that turns its direction around leaves what stands beside it alone.
    const isolated = await page.locator('.run-prompt bdi').evaluate((it) => getComputedStyle(it).unicodeBidi);
    expect(isolated).toMatch(/isolate/);
    await page.goto(page.url().replace(/#.*/, '#/new'));
    await page.getByText('Hostile <img src=x onerror=pwned=1>').waitFor();
    expect(await page.evaluate(() => 'pwned' in window)).toBe(false);
  });
});

test('a line of a megabyte is shown in pieces', async () => {
  const id = await start('long');
  await scene(`/runs/${id}`, {}, async (page) => {
    await until(page, 'done');
    const more = page.getByRole('button', { name: /more characters/ }).first();
    await more.waitFor();
    const shown = (): Promise<number> => page.evaluate(() => document.body.innerText.length);
    expect(await shown()).toBeLessThan(20_000);
    await more.click();
    await page.getByRole('button', { name: 'Show less' }).first().waitFor();
    expect(await shown()).toBeGreaterThan(55_000);
  });
});

test('a thousand calls are shown with few elements, wherever one scrolls', async () => {
  const id = await start('many');
  await scene(`/runs/${id}`, {}, async (page) => {
    await until(page, 'done', 150_000);
    await page.locator('.meters').getByText('1,000').waitFor();
    expect(await page.evaluate(() => document.querySelectorAll('.conversation *').length)).toBeLessThan(1500);
    const conversation = page.locator('.conversation');
    for (const [end, key] of [['top', 'round-1/agent-0'], ['bottom', 'round-50/agent-19'], ['middle', null]] as const) {
      await conversation.evaluate((shown, end) => {
        shown.scrollTop = end === 'top' ? 0 : end === 'bottom' ? shown.scrollHeight : shown.scrollHeight / 2;
      }, end);
      if (key) await conversation.getByText(key, { exact: true }).waitFor();
      else await conversation.locator('.turn').first().waitFor();
      expect(await page.evaluate(() => document.querySelectorAll('.conversation *').length)).toBeLessThan(1500);
    }
    await page.getByRole('tab', { name: 'Events' }).click();
    await page.locator('.event').first().waitFor();
    expect(await page.locator('.event').count()).toBeLessThan(120);
    await page.getByRole('tab', { name: 'Conversation' }).click();
    await shot(page, 'thousand');
  });
});

test('everything can be done with the keyboard alone', () =>
  scene('', {}, async (page) => {
    const press = (...keys: string[]): Promise<void> => keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve());
    const focused = (): Promise<string> => page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent ?? '');
    const tabTo = async (name: RegExp): Promise<void> => {
      for (let step = 0; step < 60; step += 1) {
        await press('Tab');
        if (name.test(await focused())) return;
      }
      throw new Error(`the focus never comes to ${name}`);
    };
    await page.getByRole('heading', { name: 'Runs' }).waitFor();
    await press('Tab');
    expect(await focused()).toBe('Skip to the content');
    await tabTo(/^New run$/);
    await press('Enter');
    await page.getByRole('radio').first().waitFor();
    await tabTo(/^$/);
    for (let step = 0; step < 12 && !(await page.getByRole('radio', { name: /^Slow/ }).isChecked()); step += 1) await press('ArrowDown');
    await press('Tab');
    await page.keyboard.type('By hand');
    await page.locator('.plan').waitFor();
    await press('Control+Enter');
    await until(page, 'running');
    await page.locator('.bar.is-open').waitFor();
    // The second has begun once its bar is there.
    await page.locator('.bar[aria-label^="second · step-2"]').waitFor();
    await tabTo(/^first · step-1/);
    await press('ArrowDown');
    expect(await focused()).toMatch(/^second · step-2/);
    await press('ArrowUp', 'Enter');
    await page.locator('.turn.is-selected').waitFor();
    await tabTo(/^Conversation$/);
    await press('ArrowRight');
    expect(await focused()).toBe('Events');
    await press('ArrowLeft');
    await tabTo(/^Actions for step-1/);
    await press('Enter');
    await page.getByRole('dialog').waitFor();
    await press('Escape');
    expect(await page.getByRole('dialog').count()).toBe(0);
    expect(await focused()).toMatch(/^Actions for step-1/);
    await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
    await tabTo(/^Cancel$/);
    await press('Enter');
    await page.getByRole('dialog').waitFor();
    expect(await focused()).toBe('Not now');
    await press('Tab', 'Enter');
    await until(page, 'cancelled');
  }));

test('readers of Chinese read Chinese', async () => {
  const id = await start('desk', '写发布说明');
  await scene(`/runs/${id}`, { locale: 'zh-CN' }, async (page) => {
    await until(page, '等待您回答');
    expect(await page.evaluate(() => document.documentElement.lang)).toBe('zh-CN');
    for (const tab of ['对话', '事件', '用量']) await page.getByRole('tab', { name: tab }).waitFor();
    await page.getByRole('button', { name: '取消', exact: true }).waitFor();
    await shot(page, 'chinese');
    await page.getByLabel('您的回答').fill('skip');
    await page.getByRole('button', { name: '发送回答' }).click();
    await until(page, /完成|失败/);
  });
});

test('a run is legible in light and dark, while it works and when it is done', async () => {
  for (const colorScheme of ['light', 'dark'] as const) {
    const under = await start('slow');
    await scene(`/runs/${under}`, { colorScheme }, async (page) => {
      await page.locator('.link.is-live').first().waitFor({ state: 'attached' });
      await page.locator('.bar.is-open').waitFor();
      expect(await page.locator('.agent.is-working').getAttribute('title')).not.toBeNull();
      expect((await page.evaluate(contrastsOfText)).filter((it) => it.ratio < 4.5)).toEqual([]);
    });
    await ask(`/v1/runs/${under}/cancel`, {});
    const id = await start(colorScheme === 'light' ? 'council' : 'review', 'Should we move the events to a queue this quarter?');
    await scene(`/runs/${id}`, { colorScheme }, async (page) => {
      await page.locator('.panels').waitFor();
      await shot(page, `run-${colorScheme}-live`);
      await until(page, 'done');
      await shot(page, `run-${colorScheme}`);
      expect((await page.evaluate(contrastsOfText)).filter((it) => it.ratio < 4.5)).toEqual([]);
    });
  }
});

test('a phone shows one view at a time, and nothing is cut off', async () => {
  const id = await start('council');
  await scene(`/runs/${id}`, PHONE, async (page) => {
    await until(page, 'done');
    for (const tab of ['Conversation', 'Picture', 'Timeline', 'Events', 'Cost']) {
      await page.getByRole('tab', { name: tab }).tap();
      await fits(page);
      await shot(page, `phone-${tab.toLowerCase()}`);
    }
    for (const place of ['#/', '#/new']) {
      await page.goto(page.url().replace(/#.*/, place));
      await page.getByRole('heading', { level: 1 }).waitFor();
      await fits(page);
      await shot(page, `phone${place.replace('#/', '-')}`);
    }
  });
});

test('state is told by words and shapes, not by colour alone', async () => {
  const id = await start('council');
  await scene(`/runs/${id}`, { forcedColors: 'active' }, async (page) => {
    await until(page, 'done');
    const texts = await page.locator('.agent-state').allInnerTexts();
    expect(texts.every((text) => text.trim() !== '')).toBe(true);
    expect(await page.locator('.bar.is-failed').getAttribute('aria-label')).toMatch(/failed/);
    await page.getByRole('link', { name: 'Runs', exact: true }).click();
    expect(await page.locator('.run-row .status').first().innerText()).not.toBe('');
  });
});

/** The contrast of every text with the first background that is painted behind it. */
function contrastsOfText(): { text: string; ratio: number }[] {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgb = (color: string): number[] => {
    if (!canvas) return [0, 0, 0, 0];
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = ([r = 0, g = 0, b = 0]: number[]): number => {
    const part = (value: number): number => (value / 255 <= 0.03928 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const behind = (element: Element | null): number[] => {
    for (let at = element; at; at = at.parentElement) {
      const color = rgb(getComputedStyle(at).backgroundColor);
      if ((color[3] ?? 0) > 250) return color;
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll('body *')]
    .filter((it) => [...it.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent?.trim()))
    .filter((it) => it.getClientRects().length > 0 && !it.closest(':disabled'))
    .map((it) => {
      const [one, other] = [luminance(rgb(getComputedStyle(it).color)), luminance(behind(it))];
      return { text: (it.textContent ?? '').slice(0, 30), ratio: (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05) };
    });
}
