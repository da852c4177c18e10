import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    root: join(import.meta.dirname, '../..'),
    include: ['test/browser/**/*.test.ts'],
    globalSetup: ['test/browser/support/global-product.ts'],
    // Each file has a Chromium of its own.
    maxWorkers: 2,
    maxConcurrency: 6,
    testTimeout: 45_000,
    hookTimeout: 60_000,
  },
})
