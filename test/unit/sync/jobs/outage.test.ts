import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { type Clock, Failure, systemClock } from '../../../../src/foundation/base/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { QUEUE_POLICY } from '../../../../src/foundation/queue/index.ts'
import { resolveOutcome } from '../../../../src/foundation/queue/retry-policy.ts'
import { executeRun, type PageOutcome, upstreamErrorOutcome } from '../../../../src/sync/jobs/index.ts'
import { fastClock } from '../../../support/fast-clock.ts'
import { recordingProgress, recordingSink, runOf } from './recording.ts'
import { type SourceScript, scriptedSource } from './scripted-source.ts'

const START = new Date('2026-01-05T00:00:00Z')
const MINUTE = 60
const HOUR = 3_600
const DAY = 86_400
const users = [{ resource: 'users', method: 'list', persist: true }]
const ids = (...all: number[]) => all.map((id) => ({ id }))

/** How a third party says that it does not work at the moment. */
const DOWN: Readonly<Record<string, () => Error | PageOutcome>> = {
  'connection refused': () => new Failure('UPSTREAM_UNREACHABLE', 'connection refused'),
  'status 503': () => upstreamErrorOutcome('maintenance', 503, undefined),
  'a maintenance page': () => new Failure('UPSTREAM_INVALID_RESPONSE', 'text/html'),
}

interface Story {
  readonly script: SourceScript
  readonly resources?: readonly JsonObject[]
  readonly giveUpAfterSeconds?: number
  readonly nextTickAt?: Date
  readonly clock: Clock
  readonly wait: (ms: number) => Promise<unknown> | undefined
}

/** A run from its queue to its end, as the queue repeats it. */
async function runToEnd({ script, resources = users, giveUpAfterSeconds = DAY, nextTickAt, clock, wait }: Story) {
  const progress = recordingProgress()
  const source = scriptedSource(script)
  const sink = recordingSink()
  const deps = { source, sink, clock, random: () => 0.5, account: { context: {}, environmentVariables: {} } }
  const began = clock.now().getTime()
  let [attempt, attemptBase] = [0, 0]
  for (;;) {
    attempt++
    const { checkpoint } = progress
    const run = runOf(resources, { checkpoint, attempt, giveUpAfterSeconds, nextTickAt: nextTickAt ?? null })
    const pages = progress.stats.reduce((sum, each) => sum + each.pages, 0)
    const attemptsMax = attemptBase + QUEUE_POLICY.attemptsMax
    const outcome = await executeRun({ ...deps, attemptsMax }, run, progress, new AbortController().signal)
    if (progress.stats.reduce((sum, each) => sum + each.pages, 0) > pages) attemptBase = attempt - 1
    const { status, error, delayMs, ...next } = resolveOutcome(
      QUEUE_POLICY,
      { attempt, attemptBase },
      outcome,
      () => 0.5,
    )
    if (delayMs === null) {
      const lastedSeconds = (clock.now().getTime() - began) / 1_000
      const records = sink.delivered.flatMap((each) => (each.kind === 'page' ? each.records : []))
      return { status, error, lastedSeconds, records, requests: source.calls.length, stats: progress.stats }
    }
    attempt = next.attempt
    await wait(delayMs)
  }
}

/** On a clock that jumps: the third party is down from one moment of the run to another, in seconds. */
function outage(from: number, to: number, more: Partial<Story> = {}, down = DOWN['status 503']) {
  const clock = fastClock(START)
  const isDown = () => {
    const seconds = (clock.now().getTime() - START.getTime()) / 1_000
    return seconds >= from && seconds < to ? down?.() : undefined
  }
  const script: SourceScript = { records: () => ids(1, 2, 3, 4, 5), failure: isDown, ...more.script }
  return runToEnd({ ...more, script, clock, wait: (ms) => void clock.advance(ms) })
}

describe('a third party that is down', () => {
  it.each(
    Object.keys(DOWN).flatMap((how) =>
      [100, 10 * MINUTE, 5 * HOUR, 23 * HOUR].map((seconds) => [how, seconds] as const),
    ),
  )('by %s for %d s is waited for, and no record is lost', async (how, seconds) => {
    const { status, records, lastedSeconds } = await outage(0, seconds, {}, DOWN[how])
    expect({ status, records }).toEqual({ status: 'completed', records: ids(1, 2, 3, 4, 5) })
    expect(lastedSeconds).toBeLessThanOrEqual(seconds + 15 * MINUTE)
  })

  it('for longer than a day fails the run after the day, with few requests', async () => {
    const { status, error, lastedSeconds, requests } = await outage(0, Infinity)
    expect({ status, error }).toMatchObject({ status: 'failed', error: { reason: 'UPSTREAM_ERROR' } })
    expect(lastedSeconds).toBe(DAY)
    expect(requests).toBeLessThan(160)
  })

  it('until the next tick leaves the rest to the run of that tick', async () => {
    const nextTickAt = new Date(START.getTime() + 6 * HOUR * 1_000)
    expect(await outage(0, Infinity, { nextTickAt })).toMatchObject({ status: 'failed', lastedSeconds: 6 * HOUR })
    expect(await outage(0, 5 * HOUR, { nextTickAt })).toMatchObject({ status: 'completed' })
  })

  it('of a job that lets no run wait, or beyond a tick that has come, gets five attempts', async () => {
    expect(await outage(0, Infinity, { giveUpAfterSeconds: 0 })).toMatchObject({ status: 'failed', requests: 5 })
    expect(await outage(0, Infinity, { nextTickAt: START })).toMatchObject({ status: 'failed', requests: 5 })
  })

  it('after pages were read is waited for at the page that is missing', async () => {
    const clock = fastClock(START)
    let asked = 0
    const failure: SourceScript['failure'] = ({ page }) =>
      page === 1 && asked++ < 60 ? upstreamErrorOutcome('down', 503, undefined) : undefined
    const script: SourceScript = { records: () => ids(1, 2, 3, 4, 5), failure }
    const result = await runToEnd({ script, clock, wait: (ms) => void clock.advance(ms) })
    expect(result).toMatchObject({ status: 'completed', records: ids(1, 2, 3, 4, 5), stats: [{ complete: true }] })
  })

  it('between two resources is waited for before the second counts as failed', async () => {
    const resources = ['r0', 'r1'].map((resource) => ({ resource, method: 'list', persist: true }))
    let asked = 0
    const failure: SourceScript['failure'] = ({ request }) =>
      request.resource === 'r1' && asked++ < 20 ? upstreamErrorOutcome('down', 503, undefined) : undefined
    const clock = fastClock(START)
    const script: SourceScript = { records: () => ids(1), failure }
    const result = await runToEnd({ script, resources, clock, wait: (ms) => void clock.advance(ms) })
    expect(result).toMatchObject({ status: 'completed', stats: [{ complete: true }, { complete: true }] })
  })

  it('for one list alone holds the others up for five attempts', async () => {
    const resources = ['r0', 'r1', 'r2'].map((resource) => ({ resource, method: 'list', persist: true }))
    const failure: SourceScript['failure'] = ({ request }) =>
      request.resource === 'r1' ? upstreamErrorOutcome('bug', 500, undefined) : undefined
    const clock = fastClock(START)
    const script: SourceScript = { records: () => ids(1), failure }
    const result = await runToEnd({ script, resources, clock, wait: (ms) => void clock.advance(ms) })
    expect(result.status).toBe('partially_completed')
    expect(result.lastedSeconds).toBeLessThan(3 * MINUTE)
  })

  it('counts its time anew after a page', async () => {
    const clock = fastClock(START)
    const hours = () => (clock.now().getTime() - START.getTime()) / (HOUR * 1_000)
    // Down for 20 hours before each page.
    const failure: SourceScript['failure'] = ({ page }) =>
      hours() < (page + 1) * 20 ? upstreamErrorOutcome('down', 503, undefined) : undefined
    const script: SourceScript = { records: () => ids(1, 2, 3, 4, 5), failure }
    expect(await runToEnd({ script, clock, wait: (ms) => void clock.advance(ms) })).toMatchObject({
      status: 'completed',
    })
  })

  it('is waited for on the clock of the machine', async () => {
    const script: SourceScript = { records: () => [], failure: () => new Failure('UPSTREAM_UNREACHABLE', 'down') }
    const began = systemClock.monotonicMs()
    // The delays of the five attempts are passed over: what is waited is the time of the job.
    const wait = (ms: number) => (ms > 1_000 ? undefined : pause(ms))
    const { status } = await runToEnd({ script, giveUpAfterSeconds: 1, clock: systemClock, wait })
    expect({ status, isOver: systemClock.monotonicMs() - began >= 950 }).toEqual({ status: 'failed', isOver: true })
  })
})
