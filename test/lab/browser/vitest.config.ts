import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { ProgressReporter } from '../../support/progress-reporter.ts'
import { scratchDirectory } from '../../support/scratch-files.ts'

process.env.TMPDIR ??= scratchDirectory()

/** Where CI wants the results as JSON. */
const { TEST_REPORT } = process.env
const progress = new ProgressReporter()

export default defineConfig({
  test: {
    root: join(import.meta.dirname, '../../..'),
    reporters: TEST_REPORT ? ['minimal', progress, ['json', { outputFile: TEST_REPORT }]] : ['minimal', progress],
    include: ['test/lab/browser/**/*.test.ts'],
    setupFiles: ['test/support/file-cpu-time.ts'],
    globalSetup: ['test/lab/browser/support/global-product.ts'],
    // Each file has a Chromium of its own: on two cores three take longer (219 s) than two (191 s).
    maxWorkers: 2,
    maxConcurrency: 5,
    // oidc-provider prints warnings about its development mode.
    silent: 'passed-only',
    testTimeout: 90_000,
    hookTimeout: 60_000,
  },
})
