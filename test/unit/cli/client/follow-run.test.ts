import { describe, expect, it } from 'vitest'
import { ServerUnavailable } from '../../../../src/cli/client/errors.ts'
import { followRun, type RunEvent } from '../../../../src/cli/client/follow-run.ts'
import type { FollowedRun, RunsClient } from '../../../../src/cli/client/runs.ts'
import { Failure } from '../../../../src/foundation/base/index.ts'
import { fastClock } from '../../../support/fast-clock.ts'

const RUN: FollowedRun = {
  id: 'r',
  status: 'running',
  attempt: 1,
  startedAt: undefined,
  finishedAt: undefined,
  error: undefined,
  skipReason: undefined,
  waiting: undefined,
  resources: [],
}
const DONE: FollowedRun = { ...RUN, status: 'completed' }
const UNAVAILABLE = new ServerUnavailable('connection refused', 0, undefined)

const IDLE_MS = 40_000
/** Its sleeps take no time, except that of the idle timeout. */
const quickClock = () => fastClock(new Date(0), IDLE_MS)

/** Messages of each connection in turn; the last connection repeats. `hang` never ends. */
type Connection = readonly (FollowedRun | undefined | Error | 'hang')[]

function server(...connections: readonly Connection[]) {
  const signals: AbortSignal[] = []
  const hanging = Promise.withResolvers<void>()
  return {
    signals,
    hanging: hanging.promise,
    async *watch(_id: string, signal: AbortSignal) {
      signals.push(signal)
      for (const each of connections[signals.length - 1] ?? connections.at(-1) ?? []) {
        if (each instanceof Error) throw each
        if (each !== 'hang') yield each
        else {
          hanging.resolve()
          await new Promise((resolve) => signal.addEventListener('abort', resolve))
        }
      }
    },
  }
}

async function follow(runs: Pick<RunsClient, 'watch'>, clock = quickClock(), signal?: AbortSignal) {
  const events: RunEvent[] = []
  const following = followRun({ runs, clock, random: () => 0.5 }, 'r', signal ?? new AbortController().signal)
  const error = await (async () => {
    for await (const each of following) events.push(each)
  })().catch((reason) => reason)
  return {
    seen: events.map((each) => (each.kind === 'run' ? each.run.status : each.message)),
    error,
    slept: clock.sleptMs,
  }
}

describe('following a run', () => {
  it('ends with the run, and reports no keep-alive', async () => {
    expect(await follow(server([RUN, undefined, undefined, DONE, RUN]))).toMatchObject({
      seen: ['running', 'completed'],
      error: undefined,
    })
  })

  it('reconnects with growing backoff', async () => {
    const runs = server([RUN, UNAVAILABLE], [UNAVAILABLE], [UNAVAILABLE], [RUN, DONE])
    expect(await follow(runs)).toMatchObject({
      seen: ['running', 'connection refused', 'connection refused', 'connection refused', 'running', 'completed'],
      error: undefined,
      slept: [187.5, 375, 750],
    })
  })

  it('reconnects when the server ends the connection before the run has ended', async () => {
    const { seen } = await follow(server([RUN], [DONE]))
    expect(seen).toEqual(['running', 'the server ended the connection', 'completed'])
  })

  it('waits as long as the server asks', async () => {
    const { slept } = await follow(server([RUN, new ServerUnavailable('busy', 9_000, undefined)], [DONE]))
    expect(slept).toEqual([9_000])
  })

  it('fails when the first connection fails', async () => {
    expect(await follow(server([UNAVAILABLE]))).toMatchObject({ seen: [], error: UNAVAILABLE })
  })

  it('fails when the server is unavailable for two minutes', async () => {
    const { error, slept } = await follow(server([RUN, UNAVAILABLE], [UNAVAILABLE]))
    const sum = slept.reduce((all, each) => all + each, 0)
    expect(error).toBe(UNAVAILABLE)
    expect(sum).toBeGreaterThan(120_000)
    expect(sum).toBeLessThan(126_000)
  })

  it('does not retry after an error with a reason', async () => {
    const gone = new Failure('RESOURCE_NOT_FOUND', 'gone')
    const runs = server([RUN, gone])
    expect(await follow(runs)).toMatchObject({ seen: ['running'], error: gone })
    expect(runs.signals).toHaveLength(1)
  })

  it('closes an idle connection and reconnects', async () => {
    const runs = server([RUN, 'hang'], [DONE])
    const clock = quickClock()
    const following = follow(runs, clock)
    await runs.hanging
    await clock.pass(IDLE_MS)
    expect((await following).seen).toEqual(['running', 'the server sends nothing any more', 'completed'])
    expect(runs.signals[0]?.aborted).toBe(true)
  })

  it('closes the connection when its signal aborts', async () => {
    const aborter = new AbortController()
    const runs = server([RUN, 'hang'])
    const following = follow(runs, undefined, aborter.signal)
    await expect.poll(() => runs.signals.length).toBe(1)
    aborter.abort()
    expect(await following).toMatchObject({ error: undefined })
    expect(runs.signals[0]?.aborted).toBe(true)
  })
})
