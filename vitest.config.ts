import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // They need Chromium: `npm run test:browser`.
    exclude: ['test/browser/**', '**/node_modules/**'],
    globalSetup: ['test/support/global-database.ts'],
    testTimeout: 20_000,
    hookTimeout: 60_000,
  },
})
