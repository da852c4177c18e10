import { describe, expect, it } from 'vitest'
import { type Clock, Failure } from '../../src/base/index.ts'
import {
  type FollowedRun,
  followRun,
  type RunEvent,
  type RunsClient,
  ServerUnavailable,
} from '../../src/client/index.ts'

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
const AWAY = new ServerUnavailable('connection refused', 0, undefined)

/** Sleeps at once, unless for so long that only silence is meant. */
class QuickClock implements Clock {
  readonly slept: number[] = []
  #nowMs = 0
  readonly now = () => new Date(this.#nowMs)
  readonly monotonicMs = () => this.#nowMs
  /** How often silence was feared. */
  silences = 0
  #endSilence = () => {}

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (ms >= 30_000) {
      this.silences += 1
      return new Promise((resolve) => {
        this.#endSilence = resolve
        signal?.addEventListener('abort', () => resolve())
      })
    }
    this.slept.push(ms)
    this.#nowMs += ms
    return Promise.resolve()
  }

  endSilence(): void {
    this.#endSilence()
  }
}

/** What each connection brings, one after the other; the last one again and again. `hang` never ends. */
type Connection = readonly (FollowedRun | undefined | Error | 'hang')[]

function server(...connections: readonly Connection[]): Pick<RunsClient, 'watch'> & { readonly seen: AbortSignal[] } {
  const seen: AbortSignal[] = []
  return {
    seen,
    async *watch(_id, signal) {
      seen.push(signal)
      for (const each of connections[seen.length - 1] ?? connections.at(-1) ?? []) {
        if (each instanceof Error) throw each
        if (each === 'hang') await new Promise((resolve) => signal.addEventListener('abort', resolve))
        else yield each
      }
    },
  }
}

async function follow(runs: Pick<RunsClient, 'watch'>, clock = new QuickClock(), signal?: AbortSignal) {
  const news: RunEvent[] = []
  const following = followRun({ runs, clock, random: () => 0.5 }, 'r', signal ?? new AbortController().signal)
  const error = await (async () => {
    for await (const each of following) news.push(each)
  })().catch((reason) => reason)
  return { told: news.map((each) => (each.kind === 'run' ? each.run.status : each.message)), error, slept: clock.slept }
}

describe('following a run', () => {
  it('ends with it, and tells nothing of signs of life', async () => {
    expect(await follow(server([RUN, undefined, undefined, DONE, RUN]))).toMatchObject({
      told: ['running', 'completed'],
      error: undefined,
    })
  })

  it('goes on when the server is back, waiting longer each time', async () => {
    const runs = server([RUN, AWAY], [AWAY], [AWAY], [RUN, DONE])
    expect(await follow(runs)).toMatchObject({
      told: ['running', 'connection refused', 'connection refused', 'connection refused', 'running', 'completed'],
      error: undefined,
      slept: [187.5, 375, 750],
    })
  })

  it('goes on when the server ends the connection before the run is over', async () => {
    const { told } = await follow(server([RUN], [DONE]))
    expect(told).toEqual(['running', 'the server ended the connection', 'completed'])
  })

  it('waits as long as the server asks', async () => {
    const { slept } = await follow(server([RUN, new ServerUnavailable('busy', 9_000, undefined)], [DONE]))
    expect(slept).toEqual([9_000])
  })

  it('gives a server up that was never there', async () => {
    expect(await follow(server([AWAY]))).toMatchObject({ told: [], error: AWAY })
  })

  it('gives a server up that is away for two minutes', async () => {
    const { error, slept } = await follow(server([RUN, AWAY], [AWAY]))
    const sum = slept.reduce((all, each) => all + each, 0)
    expect(error).toBe(AWAY)
    expect(sum).toBeGreaterThan(120_000)
    expect(sum).toBeLessThan(126_000)
  })

  it('does not ask again after a refusal', async () => {
    const gone = new Failure('RESOURCE_NOT_FOUND', 'gone')
    const runs = server([RUN, gone])
    expect(await follow(runs)).toMatchObject({ told: ['running'], error: gone })
    expect(runs.seen).toHaveLength(1)
  })

  it('takes a connection for dead that gives no sign of life, and closes it', async () => {
    const runs = server([RUN, 'hang'], [DONE])
    const clock = new QuickClock()
    const following = follow(runs, clock)
    await expect.poll(() => clock.silences).toBe(2)
    clock.endSilence()
    expect((await following).told).toEqual(['running', 'the server has fallen silent', 'completed'])
    expect(runs.seen[0]?.aborted).toBe(true)
  })

  it('stops when it is told to, and closes the connection', async () => {
    const aborter = new AbortController()
    const runs = server([RUN, 'hang'])
    const following = follow(runs, undefined, aborter.signal)
    await expect.poll(() => runs.seen.length).toBe(1)
    aborter.abort()
    expect(await following).toMatchObject({ error: undefined })
    expect(runs.seen[0]?.aborted).toBe(true)
  })
})
