import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // They need Chromium: `npm run test:browser`.
    exclude: ['test/browser/**', '**/node_modules/**'],
    globalSetup: ['test/support/global-database.ts'],
    setupFiles: ['test/support/file-guard.ts'],
    // Files of a worker share their modules: evaluating the graph anew for each file cost more than half of the run.
    isolate: false,
    maxWorkers: availableParallelism(),
    restoreMocks: true,
    unstubEnvs: true,
    unstubGlobals: true,
    // Only for what hangs: a busy machine may be ten times slower.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } },
  },
})
