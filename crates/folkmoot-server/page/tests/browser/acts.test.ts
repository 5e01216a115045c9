import { afterAll, expect, test } from 'vitest';
import { ask, end, scene, shot, start, until } from './stage';

afterAll(end);

interface Shown {
  run: { status: string; final: string | null; origin?: { run_id: string; seq: number } };
  calls: { key: string; state: string; reply?: string }[];
}

test('a run is started from the form once its plan was shown, and is watched to its end', () =>
  scene('/new', {}, async (page) => {
    const go = page.getByRole('button', { name: 'Start the run' });
    await page.getByRole('radio', { name: /^Council/ }).check();
    expect(await go.isDisabled()).toBe(true);
    await page.getByLabel('Task', { exact: true }).fill('Should we move the events to a queue this quarter?');
    expect(await go.isDisabled()).toBe(true);
    const plan = page.getByRole('region', { name: 'What it can take' }).first();
    await plan.getByText('round-2').waitFor();
    expect(await plan.locator('.plan-totals').innerText()).toMatch(/at most\s*9[\s\S]*at least 8/);
    await page.getByText('Limits', { exact: true }).click();
    await page.getByLabel('Calls', { exact: true }).fill('5');
    expect(await go.isDisabled()).toBe(true);
    await plan.getByText('The worst case is over a limit').waitFor();
    await page.getByLabel('Calls', { exact: true }).fill('');
    await plan.getByText('The worst case is within every limit').waitFor();
    await shot(page, 'new');
    await go.click();
    await until(page, 'running');
    await page.locator('.agent.is-working').first().waitFor();
    await page.locator('.bar.is-open').first().waitFor();
    await page.locator('.conversation .is-open').first().waitFor();
    await until(page, 'done');
    await page.getByRole('heading', { name: 'Answer' }).waitFor();
    await page.getByText('Measure for two weeks, then decide.').first().waitFor();
    expect(await page.locator('.agent.is-working').count()).toBe(0);
    expect(await page.locator('.bar.is-failed').count()).toBe(1);
    expect(await page.locator('.meters').innerText()).toMatch(/Calls\s*9\s*\/\s*12/);
  }));

test('a question is answered, and the run goes on', async () => {
  const id = await start('desk', 'Write the release notes');
  await scene(`/runs/${id}`, {}, async (page) => {
    await until(page, 'waits for you');
    await page.locator('.agent.is-person').waitFor();
    await shot(page, 'question');
    await page.getByLabel('Your answer').fill('{"decision": "retry", "prompt": "There is no style guide; go on without."}');
    await page.getByRole('button', { name: 'Send the answer' }).click();
    await until(page, 'done');
    await page.getByText('Shorter now.').first().waitFor();
    expect(await page.getByLabel('Your answer').count()).toBe(0);
  });
});

test('a run is cancelled after it was asked whether one means it', async () => {
  const id = await start('slow');
  await scene(`/runs/${id}`, {}, async (page) => {
    await page.getByText('The first word.').waitFor();
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByRole('button', { name: 'Not now' }).click();
    await until(page, 'running');
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByRole('button', { name: 'Cancel the run' }).click();
    await until(page, 'cancelled');
    await page.locator('.bar.is-withdrawn').waitFor();
  });
  expect((await ask<Shown>(`/v1/runs/${id}`)).run.status).toBe('cancelled');
});

test('an answer is amended in a run under way, and what was made from it is asked again', async () => {
  const id = await start('slow');
  await scene(`/runs/${id}`, {}, async (page) => {
    await page.locator('.bar.is-open').waitFor();
    await page.getByRole('button', { name: 'Actions for step-1/first' }).click();
    await page.getByText('State').or(page.getByText('do your part')).first().waitFor();
    await page.getByRole('button', { name: 'Amend' }).click();
    await page.getByLabel('Text', { exact: true }).fill('Another first word.');
    await page.getByRole('dialog').getByRole('button', { name: 'Amend' }).click();
    await until(page, 'done');
    await page.getByText('amended by a person').first().waitFor();
    await page.getByText('Another first word.').waitFor();
    await page.getByText('The second word.').first().waitFor();
    expect(await page.locator('.bar.is-withdrawn').count()).toBe(1);
  });
});

test('a run is forked from an event and with another answer, and two runs are compared', async () => {
  const id = await start('review', 'Make the parser refuse empty input');
  await scene(`/runs/${id}`, {}, async (page) => {
    await until(page, 'done');
    await page.getByRole('tab', { name: 'Events' }).click();
    await page.getByRole('button', { name: 'Fork from event 5', exact: true }).click();
    await page.getByRole('button', { name: 'Fork', exact: true }).click();
    await page.getByText('Forked from').waitFor();
    const fork = page.url().split('/').at(-1) ?? '';
    expect(fork).not.toBe(id);
    expect((await ask<Shown>(`/v1/runs/${fork}`)).run.origin).toMatchObject({ run_id: id, seq: 5 });
    await until(page, 'done');

    await page.goto(page.url().replace(fork, id));
    await page.getByRole('tab', { name: 'Conversation' }).click();
    await page.getByRole('button', { name: 'Actions for planner/1' }).click();
    await page.getByRole('button', { name: 'Fork with another answer' }).click();
    await page.getByLabel('Text', { exact: true }).fill('Just fix it.');
    await page.getByRole('dialog').getByRole('button', { name: 'Fork', exact: true }).click();
    await page.getByText('Forked from').waitFor();
    await until(page, 'done');
    await page.getByText('Just fix it.').waitFor();
    await page.getByRole('link', { name: 'Compare' }).click();
    await page.locator('.pair').first().waitFor();
    expect(await page.locator('.tally.is-changed').innerText()).toMatch(/[1-9]/);
    await page.getByText('Just fix it.').first().waitFor();
    await shot(page, 'compare');
  });
});

test('a run that failed in part is tried again, and the other run is chosen to compare with', async () => {
  const id = await start('council');
  await scene(`/runs/${id}`, {}, async (page) => {
    await until(page, 'done');
    await page.getByRole('button', { name: 'Retry' }).click();
    await page.getByLabel(/^Words to add/).fill('Be brief.');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('Another attempt at').waitFor();
    await until(page, 'done');
    await page.getByRole('button', { name: 'Compare', exact: true }).click();
    await page.getByLabel('The other run').selectOption(id);
    await page.getByRole('dialog').getByRole('button', { name: 'Compare' }).click();
    await page.locator('.pair').first().waitFor();
    expect(page.url()).toContain(`/${id}`);
  });
});
