import { describe, expect, it } from 'vitest'
import { Failure } from '../../../../src/foundation/base/index.ts'
import { executeRun, type PageOutcome } from '../../../../src/sync/jobs/index.ts'
import { fastClock } from '../../../support/fast-clock.ts'
import { recordingProgress, recordingSink, runOf } from './recording.ts'
import { scriptedSource } from './scripted-source.ts'

/** Waits that a third party may ask for, ms. */
const HINTS = [
  undefined,
  0,
  -0,
  -1,
  -1e12,
  Number.NaN,
  Number.NEGATIVE_INFINITY,
  Number.POSITIVE_INFINITY,
  1,
  900,
  20_000,
]
const HOUR_MS = 3_600_000
/** Requests of the first hour: what ten waits inline and then a backoff of minutes leave. */
const REQUESTS_AN_HOUR_MAX = 30
const REQUESTS_MAX = 120
const ATTEMPTS_MAX = 5

/** A run whose third party always limits, resumed from its checkpoint until it has ended. @returns the times of the requests and the end */
async function runLimited(limit: () => PageOutcome | Error, random: number) {
  const clock = fastClock(new Date(0))
  const asked: number[] = []
  const source = scriptedSource({
    records: () => [{ id: 1 }],
    failure: () => {
      asked.push(clock.now().getTime())
      return limit()
    },
  })
  const progress = recordingProgress()
  const account = { context: {}, environmentVariables: {} }
  const deps = { source, sink: recordingSink(), clock, random: () => random, account, attemptsMax: ATTEMPTS_MAX }
  const resources = [{ resource: 'users', method: 'list', persist: true }]
  for (let attempt = 1; asked.length <= REQUESTS_MAX; ) {
    const run = { ...runOf(resources, { checkpoint: progress.checkpoint }), attempt }
    const outcome = await executeRun(deps, run, progress, new AbortController().signal)
    if (outcome.kind === 'rate_limited') clock.advance(Math.max(0, outcome.afterMs))
    else if (outcome.kind === 'retry') attempt++
    else return { asked, outcome, progress }
  }
  throw new Error(`asked ${asked.length} times within ${clock.now().getTime() / 1000} s`)
}

const KINDS: readonly (readonly [string, (afterMs: number | undefined) => PageOutcome | Error])[] = [
  ['the proxy', (afterMs) => ({ kind: 'wait', afterMs })],
  [
    'the service of a daemon',
    (afterMs) =>
      new Failure('UPSTREAM_RATE_LIMITED', 'wait', afterMs === undefined ? {} : { retryAfterSeconds: afterMs / 1000 }),
  ],
]

describe('a third party that limits every request', () => {
  it.each(
    KINDS.flatMap(([name, limit]) =>
      HINTS.flatMap((ms) => [0, 0.999].map((random) => [name, ms, random, limit] as const)),
    ),
  )(
    'gets a bounded number of requests by %s for a hint of %s ms (random %s), and the run fails',
    async (_, afterMs, random, limit) => {
      const { asked, outcome, progress } = await runLimited(() => limit(afterMs), random)
      expect(outcome).toMatchObject({ kind: 'failed', error: { reason: 'UPSTREAM_RATE_LIMITED' } })
      expect(asked.length).toBeLessThanOrEqual(REQUESTS_MAX)
      expect(asked.filter((ms) => ms <= HOUR_MS).length).toBeLessThanOrEqual(REQUESTS_AN_HOUR_MAX)
      expect(progress.stats).toMatchObject([{ complete: false }])
    },
  )

  it('is asked as soon as it says, once', async () => {
    const { asked } = await runLimited(() => ({ kind: 'wait', afterMs: 200 }), 0.999)
    expect(asked.slice(0, 2)).toEqual([0, 200])
    expect(asked[2]).toBeGreaterThan(1_000)
  })
})
