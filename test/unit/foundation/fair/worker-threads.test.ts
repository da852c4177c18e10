import { describe, expect, it } from 'vitest'
import { WorkerThreads } from '../../../../src/foundation/fair/index.ts'

/** Answers with its task when that is a text, and never ends one that is a number. */
const ECHO = new URL(
  `data:text/javascript,${encodeURIComponent(`
    import { parentPort } from 'node:worker_threads'
    parentPort.on('message', (task) => {
      while (typeof task === 'number');
      parentPort.postMessage(task)
    })`)}`,
)
const MIB = 1024 * 1024

function echo(limits: { readonly threads?: number; readonly taskMs?: number; readonly waitMsMax?: number } = {}) {
  return new WorkerThreads<string | number, string>(ECHO, { threads: 1, taskMs: 60_000, heapMegabytes: 64, ...limits })
}

/** Queues the tasks at once. @returns the order in which they ended */
async function orderOf(threads: WorkerThreads<string | number, string>, tasks: readonly string[]): Promise<string[]> {
  const order: string[] = []
  const run = async (task: string) => void order.push(await threads.run(task, 0, { owner: task.charAt(0) }))
  await Promise.all(tasks.map(run))
  return order
}

describe('worker threads', () => {
  it('run the tasks of owners in turns, each owner in order', async () => {
    const ofA = Array.from({ length: 20 }, (_, index) => `a${index}`)
    expect(await orderOf(echo(), [...ofA, 'b0', 'b1', 'c0'])).toEqual([
      'a0',
      'a1',
      'b0',
      'c0',
      'a2',
      'b1',
      ...ofA.slice(3),
    ])
  })

  it('leave the others to an owner whose task takes all of a thread', async () => {
    const threads = echo({ threads: 2, taskMs: 3_000 })
    const endless = threads.run(1, 0, { owner: 'a' }).catch(String)
    expect(await threads.run('b', 0, { owner: 'b' })).toBe('b')
    expect(await endless).toBe('Error: takes longer than 3000 ms to read')
    expect(await threads.run('a', 0, { owner: 'a' })).toBe('a')
  })

  it('reject an owner of whom too much waits, and no other', async () => {
    const threads = echo()
    const waiting = Array.from({ length: 51 }, () => threads.run('a', 0, { owner: 'a' }))
    await expect(threads.run('a', 0, { owner: 'a' })).rejects.toMatchObject({
      reason: 'RATE_LIMITED',
      retryAfterSeconds: 1,
    })
    expect(await threads.run('b', 0, { owner: 'b' })).toBe('b')
    expect(await Promise.all(waiting)).toHaveLength(51)
  })

  it('reject a task that has waited too long, instead of beginning it', async () => {
    const threads = echo({ taskMs: 3_000, waitMsMax: 1_000 })
    const endless = threads.run(1, 0, { owner: 'a' }).catch(String)
    await expect(threads.run('late', 0, { owner: 'a' })).rejects.toMatchObject({ reason: 'RATE_LIMITED' })
    expect(await endless).toBe('Error: takes longer than 3000 ms to read')
  })

  it('reject what would hold too many bytes while it waits, but not the only task of an owner', async () => {
    const threads = echo()
    const [running, large] = [threads.run('a', 40 * MIB, { owner: 'a' }), threads.run('a', 40 * MIB, { owner: 'a' })]
    await expect(threads.run('a', 1, { owner: 'a' })).rejects.toMatchObject({ reason: 'RATE_LIMITED' })
    expect(await Promise.all([running, large])).toEqual(['a', 'a'])
    expect(await threads.run('a', 1, { owner: 'a' })).toBe('a')
  })

  it('forget what waits for a request that has ended', async () => {
    const threads = echo()
    const request = new AbortController()
    const running = threads.run('a', 0, { owner: 'a' })
    const waiting = threads.run(1, 40 * MIB, { owner: 'a', signal: request.signal })
    request.abort()
    await expect(waiting).rejects.toMatchObject({ reason: 'CANCELLED' })
    expect(await running).toBe('a')
    expect(await threads.run('a', 32 * MIB, { owner: 'a' })).toBe('a')
    await expect(threads.run(1, 0, { owner: 'a', signal: request.signal })).rejects.toMatchObject({
      reason: 'CANCELLED',
    })
  })
})
