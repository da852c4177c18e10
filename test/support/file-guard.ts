import { afterAll, expect, vi } from 'vitest'

/** Listeners of these events change how the process that runs the next file ends. */
const ENDING_EVENTS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'uncaughtException', 'unhandledRejection', 'beforeExit'] as const

/** What the files of a worker share, beside modules: a file that changes it would change the results of the next one. */
function sharedState() {
  const { stdout, stderr } = process
  return {
    directory: process.cwd(),
    environment: { ...process.env },
    exitCode: process.exitCode,
    hasFakeTimers: vi.isFakeTimers(),
    listeners: Object.fromEntries(ENDING_EVENTS.map((event) => [event, process.listenerCount(event)])),
    globals: [globalThis.fetch, Date.now, performance.now, Math.random, stdout.write, stderr.write],
  }
}

const before = sharedState()

// Hooks run in reverse order: this one after those of the file.
afterAll(() => {
  expect(sharedState(), 'the file leaves something behind for the next one of its worker').toEqual(before)
})
