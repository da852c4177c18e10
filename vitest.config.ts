import { randomInt } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { ProcessesFirst } from './test/support/processes-first.ts'
import { ProgressReporter } from './test/support/progress-reporter.ts'
import { scratchDirectory } from './test/support/scratch-files.ts'
import { filesOfOtherTurns } from './test/support/turns.ts'

// The reporter names it at the end.
process.env.TEST_SEED ??= String(randomInt(2 ** 31))
process.env.TMPDIR ??= scratchDirectory()
// A zone with summer time: a time that is read as local would be an hour or two wrong.
process.env.TZ = 'Europe/Berlin'

/** Where CI wants the results as JSON. */
const { TEST_REPORT } = process.env
const progress = new ProgressReporter()

export default defineConfig({
  test: {
    reporters: TEST_REPORT ? ['minimal', progress, ['json', { outputFile: TEST_REPORT }]] : ['minimal', progress],
    silent: 'passed-only',
    include: ['test/**/*.test.ts'],
    // They need Chromium: `npm run test:browser`.
    exclude: ['test/lab/browser/**', '**/node_modules/**', ...filesOfOtherTurns(process.argv.slice(2))],
    globalSetup: ['test/support/global-database.ts'],
    setupFiles: ['test/support/file-cpu-time.ts', 'test/support/file-guard.ts', 'test/support/property-seed.ts'],
    // The product as a process starts in half the time when its compiled modules are kept.
    env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/patchbay') },
    // Files of a worker share their modules: evaluating the graph anew for each file cost more than half of the run.
    isolate: false,
    // Most objects of a test die with it: a larger young generation collects them at once.
    execArgv: ['--max-semi-space-size=64'],
    // More than cores: tests of processes wait more than they compute.
    maxWorkers: availableParallelism() + 2,
    sequence: { sequencer: ProcessesFirst },
    restoreMocks: true,
    unstubEnvs: true,
    unstubGlobals: true,
    // Only for what hangs: a busy machine may be thirty times slower.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 60_000 } },
  },
})
