import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Code } from '@connectrpc/connect'
import { afterAll, describe, expect, it } from 'vitest'
import { startDaemon } from './support/running-daemon.ts'
import { type ScriptedService, serviceError, startScriptedService } from './support/scripted-service.ts'

const directory = mkdtempSync(join(tmpdir(), 'patchbay-daemon-'))
const ENDED = 'a run ended here'

afterAll(() => rmSync(directory, { recursive: true }))

function daemonOf({ url }: ScriptedService) {
  return startDaemon({ url, token: 'secret-token-of-the-daemon', group: 'g', store: `ndjson:${directory}` })
}

/** Ids of the records stored of the run, in the order of the file. */
function stored({ runId }: ScriptedService): readonly number[] {
  const files = globSync(`contacts/*/${runId}.ndjson`, { cwd: directory })
  const lines = files.flatMap((file) => readFileSync(join(directory, file), 'utf8').trimEnd().split('\n'))
  return lines.map((line) => JSON.parse(line).record.id)
}

const ALL = Array.from({ length: 10 }, (_, index) => index + 1)

describe('a daemon whose service is unavailable', () => {
  it('resumes at its page once the service is available again', async () => {
    const reached = Promise.withResolvers<void>()
    await using service = await startScriptedService({
      async beforePage(page) {
        if (page === 3 && service.calls.filter((call) => call.startsWith('list')).length === 1) {
          reached.resolve()
          await new Promise(() => {})
        }
      },
    })
    await using daemon = daemonOf(service)
    await reached.promise
    await service.called('report', 3)
    await service.stop()
    await daemon.logged('the service is unavailable, the daemon waits for it')
    await service.restart()
    await daemon.logged(ENDED, { outcome: 'completed' })
    expect(stored(service)).toEqual(ALL)
    expect(service.calls.filter((call) => call.startsWith('list'))).toEqual(['list 1', 'list 3'])
  })

  it.each(['reportProgress', 'completeRun'] as const)('repeats %s until it is answered', async (name) => {
    let rejections = 0
    const busy = () => {
      rejections++
      if (rejections > 3) return {}
      if (rejections === 1) throw new Error('no answer of the product')
      throw rejections === 2
        ? serviceError(Code.Unavailable, 'SHUTTING_DOWN')
        : serviceError(Code.DeadlineExceeded, 'DEADLINE_EXCEEDED')
    }
    await using service = await startScriptedService({ [name]: busy })
    await using daemon = daemonOf(service)
    await daemon.logged(ENDED, { outcome: 'completed' })
    expect(rejections).toBeGreaterThan(3)
    expect(stored(service)).toEqual(ALL)
  })

  it('writes nothing more once its lease may have expired', async () => {
    const { promise: mayContinue, resolve: proceed } = Promise.withResolvers<void>()
    await using service = await startScriptedService({
      leaseSeconds: 1,
      beforePage: (page) => (page === 3 ? mayContinue : undefined),
      heartbeat: () => {
        throw serviceError(Code.Unavailable, 'DATABASE_UNAVAILABLE')
      },
    })
    await using daemon = daemonOf(service)
    await daemon.logged(ENDED, { outcome: 'lost' })
    const before = stored(service)
    proceed()
    await service.called('claim', 2)
    // A busy machine may not have come to the third page within the lease.
    expect(before).toEqual([1, 2, 3, 4].slice(0, before.length))
    expect(stored(service)).toEqual(before)
    expect(service.calls.filter((call) => /complete|fail|release/.test(call))).toEqual([])
  })

  it('reports nothing more about a run that another daemon holds', async () => {
    let reports = 0
    await using service = await startScriptedService({
      reportProgress: () => {
        reports++
        if (reports === 3) throw serviceError(Code.Aborted, 'LEASE_LOST')
        return {}
      },
    })
    await using daemon = daemonOf(service)
    await daemon.logged(ENDED, { outcome: 'lost' })
    expect(service.calls.filter((call) => /complete|fail|release/.test(call))).toEqual([])
    expect(stored(service)).toEqual([1, 2, 3, 4])
  })

  it('stops executing a run as soon as a heartbeat says that its lease is lost', async () => {
    await using service = await startScriptedService({
      beforePage: (page) => (page === 2 ? new Promise(() => {}) : undefined),
      heartbeat: ({ held }) => {
        const isLost = service.calls.filter((call) => call === 'report').length >= 2
        return { held: held.map(({ runId, leaseId }) => ({ runId, leaseId, isLost })) }
      },
    })
    await using daemon = daemonOf(service)
    await daemon.logged(ENDED, { outcome: 'lost' })
    expect(stored(service)).toEqual([1, 2])
  })

  it('releases a run when a heartbeat says that it should stop', async () => {
    const { promise: mayContinue, resolve: proceed } = Promise.withResolvers<void>()
    await using service = await startScriptedService({
      beforePage: (page) => (page === 3 ? mayContinue : undefined),
      heartbeat: ({ held }) => {
        if (held.length > 0) proceed()
        return { held: held.map(({ runId, leaseId }) => ({ runId, leaseId, stopRequested: true })) }
      },
    })
    await using daemon = daemonOf(service)
    await daemon.logged(ENDED, { outcome: 'stopped' })
    expect(service.calls).toContain('release')
    expect(stored(service).length).toBeLessThan(10)
  })

  it('reports that it waits for the rate limit of the third party, and for how long', async () => {
    await using service = await startScriptedService({ wait: { page: 3, seconds: 20 } })
    await using daemon = daemonOf(service)
    await service.called('report wait')
    // Of a busy machine the first seconds may be over.
    expect(service.calls.find((call) => call.startsWith('report wait'))).toMatch(/^report wait (1\d|20)$/)
    expect(service.calls).not.toContain('list 3')
    void daemon.daemon.drain(0)
    await daemon.ended
  })

  it('registers again when the service does not know it any more', async () => {
    let claims = 0
    await using service = await startScriptedService({
      claimRuns: async (_, { signal }) => {
        claims++
        if (claims === 1) throw serviceError(Code.NotFound, 'RESOURCE_NOT_FOUND')
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        return {}
      },
    })
    await using _ = daemonOf(service)
    await service.called('claim', 2)
    expect(service.calls.filter((call) => call === 'register')).toHaveLength(2)
  })

  it('drains although the service is unavailable', async () => {
    await using service = await startScriptedService()
    await service.stop()
    await using daemon = daemonOf(service)
    await daemon.logged('the service is unavailable, the daemon waits for it')
    void daemon.daemon.drain(60_000)
    await daemon.ended
    await service.restart()
  })

  it('keeps its token out of the log', async () => {
    await using service = await startScriptedService({
      leaseSeconds: 1,
      heartbeat: () => Promise.reject(new Error('x')),
    })
    await using daemon = daemonOf(service)
    await daemon.logged(ENDED)
    expect(JSON.stringify(daemon.log)).not.toContain('secret-token')
  })
})
