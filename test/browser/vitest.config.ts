import { join } from 'node:path'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    root: join(import.meta.dirname, '../..'),
    include: ['test/browser/**/*.test.ts'],
    globalSetup: ['test/browser/support/global-product.ts'],
    // Each file has a Chromium of its own.
    maxWorkers: 2,
    maxConcurrency: 5,
    // oidc-provider prints warnings about its development mode.
    silent: 'passed-only',
    testTimeout: 90_000,
    hookTimeout: 60_000,
  },
})
