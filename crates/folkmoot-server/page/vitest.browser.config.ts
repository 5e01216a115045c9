import { defineConfig } from 'vitest/config';

/** The page in a real browser, in front of a real server. */
export default defineConfig({
  test: {
    include: ['tests/browser/*.test.ts'],
    globalSetup: ['tests/browser/server.ts'],
    environment: 'node',
    fileParallelism: false,
    testTimeout: 180_000,
    hookTimeout: 60_000,
  },
});
