import { describe, expect, it } from 'vitest'
import { Failure } from '../../../../src/foundation/base/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { readCheckpoint } from '../../../../src/sync/jobs/checkpoint.ts'
import { executeRun } from '../../../../src/sync/jobs/index.ts'
import { deliverEnding } from '../../../../src/sync/jobs/run-ending.ts'
import type { RunEnding } from '../../../../src/sync/runs/run.ts'
import { fastClock } from '../../../support/fast-clock.ts'
import { type Delivered, recordingProgress, recordingSink, runOf } from './recording.ts'
import { type SourceScript, scriptedSource } from './scripted-source.ts'

const DAY = 86_400
const USERS = [{ resource: 'users', method: 'list', persist: true }]
const DOWN = { reason: 'UPSTREAM_UNREACHABLE', message: 'connection refused' }
const THREE: SourceScript = { records: () => [{ id: 1 }, { id: 2 }, { id: 3 }] }

/** One attempt of a run whose destination is unavailable for the deliveries that match. */
async function attempt(
  isUnavailable: (delivered: Delivered) => boolean,
  { checkpoint = null, ending = null, script = THREE, afterMs }: Partial<Attempt> = {},
) {
  const wait = afterMs === undefined ? {} : { afterMs }
  const sink = recordingSink((each) =>
    isUnavailable(each) ? { kind: 'unavailable', error: DOWN, ...wait } : undefined,
  )
  const progress = recordingProgress()
  progress.checkpoint = checkpoint
  const source = scriptedSource(script)
  const deps = { source, sink, clock: fastClock(), random: () => 0, account: { context: {}, environmentVariables: {} } }
  const run = runOf(USERS, { checkpoint, attempt: 5, giveUpAfterSeconds: DAY })
  const outcome =
    ending === null
      ? await executeRun({ ...deps, attemptsMax: 5 }, run, progress, new AbortController().signal)
      : await deliverEnding({ ...deps, giveUpAfterSeconds: DAY, progress }, readCheckpoint(checkpoint), ending, [])
  return {
    outcome,
    checkpoint: progress.checkpoint,
    ending: progress.ending ?? ending,
    calls: source.calls.length,
    kinds: kindsOf(sink.delivered),
  }
}

interface Attempt {
  readonly checkpoint: JsonObject | null
  readonly ending: RunEnding | null
  readonly script: SourceScript
  readonly afterMs: number
}

function kindsOf(delivered: readonly Delivered[]): string[] {
  return delivered.map((each) => (each.kind === 'page' ? `page ${each.sequence}` : each.kind))
}

describe('a destination that is unavailable', () => {
  it('lets the run wait without an end of its attempts, and go on at the page that was not taken', async () => {
    const first = await attempt((each) => each.kind === 'page' && each.sequence === 2)
    expect(first.outcome).toEqual({ kind: 'rate_limited', afterMs: 2_500, error: DOWN })
    const second = await attempt(() => false, { checkpoint: first.checkpoint })
    expect(second.outcome).toEqual({ kind: 'completed' })
    expect([first.kinds, second.kinds]).toEqual([
      ['started', 'page 1', 'page 2'],
      ['page 2', 'completed'],
    ])
    expect(second.calls).toBe(1)
  })

  it.each(['started', 'completed'] as const)('is offered %s again', async (kind) => {
    const first = await attempt((each) => each.kind === kind)
    expect(first.outcome).toMatchObject({ kind: 'rate_limited' })
    const second = await attempt(() => false, first)
    expect(second.outcome).toEqual({ kind: 'completed' })
    expect(second.kinds).toContain(kind)
  })

  it('is waited for longer and longer, at least as long as it asks', async () => {
    const waits: unknown[] = []
    let checkpoint: JsonObject | null = null
    for (let count = 0; count < 10; count++) {
      const tried: Awaited<ReturnType<typeof attempt>> = await attempt(() => true, { checkpoint })
      if (tried.outcome.kind === 'rate_limited') waits.push(tried.outcome.afterMs / 1_000)
      checkpoint = tried.checkpoint
    }
    expect(waits).toEqual([2.5, 5, 10, 20, 40, 80, 160, 320, 450, 450])
    const asked = await attempt(() => true, { afterMs: 3_600_000 })
    expect(asked.outcome).toEqual({ kind: 'rate_limited', afterMs: 3_600_000, error: DOWN })
  })

  it('begins anew once it has taken something', async () => {
    const first = await attempt((each) => each.kind === 'page' && each.sequence === 1)
    const second = await attempt((each) => each.kind === 'page' && each.sequence === 2, first)
    expect([first.checkpoint?.waits, second.checkpoint?.waits]).toEqual([1, 1])
  })

  it('for too long fails the run, and one that is retried by hand waits anew', async () => {
    const first = await attempt((each) => each.kind === 'page')
    const waiting_since = new Date(Date.parse(String(first.checkpoint?.waiting_since)) - DAY * 1_000).toISOString()
    const patient = { ...first.checkpoint, waiting_since }
    const last = await attempt((each) => each.kind !== 'started', { checkpoint: patient })
    expect(last.outcome).toEqual({ kind: 'failed', error: DOWN })
    expect(last.kinds).toEqual(['page 1', 'failed'])
    const again = await attempt((each) => each.kind === 'page', { checkpoint: last.checkpoint })
    expect(again.outcome).toEqual({ kind: 'rate_limited', afterMs: 2_500, error: DOWN })
  })
})

describe('a failed run whose destination is unavailable', () => {
  const broken: SourceScript = { records: () => [], failure: () => new Failure('METHOD_NOT_DEFINED', 'no list') }
  const error = { reason: 'METHOD_NOT_DEFINED', message: 'users.list: no list' }

  it('waits until it can tell, asks the third party nothing more, and then is failed', async () => {
    const first = await attempt((each) => each.kind === 'failed', { script: broken })
    expect(first.outcome).toEqual({ kind: 'rate_limited', afterMs: 2_500, error: DOWN })
    const second = await attempt((each) => each.kind === 'failed', { ...first, script: broken })
    expect(second).toMatchObject({ outcome: { kind: 'rate_limited', afterMs: 5_000 }, calls: 0, kinds: ['failed'] })
    const third = await attempt(() => false, second)
    expect(third).toMatchObject({ outcome: { kind: 'failed', error }, calls: 0, kinds: ['failed'] })
    const retried = await attempt(() => false, { checkpoint: third.checkpoint })
    expect(retried.outcome).toEqual({ kind: 'completed' })
  })

  it('remembers what it had counted', async () => {
    const failure = () => new Failure('METHOD_NOT_DEFINED', 'no list')
    const script: SourceScript = { ...THREE, failure: ({ page }) => (page === 1 ? failure() : undefined) }
    const first = await attempt((each) => each.kind === 'failed', { script })
    expect(first.checkpoint).toMatchObject({ counts: [{ fetched: 2, delivered: 2 }] })
    expect(first.ending).toMatchObject({ status: 'failed', error })
  })
})
