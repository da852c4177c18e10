import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { executeRun, upstreamErrorOutcome } from '../../../../src/sync/jobs/index.ts'
import type { RunError } from '../../../../src/sync/runs/index.ts'
import { fastClock } from '../../../support/fast-clock.ts'
import { Crash, recordingProgress, recordingSink, runOf } from './recording.ts'
import { type SourceScript, scriptedSource } from './scripted-source.ts'

const never = new AbortController().signal
const ORDERS: readonly JsonObject[] = [
  { resource: 'orders', method: 'list' },
  { resource: 'lines', method: 'list', depends_on: 'orders', persist: true, query: { of: '{{resources.orders.no}}' } },
]
const orders = (count: number) => Array.from({ length: count }, (_, at) => ({ id: `o${at + 1}`, no: at + 1 }))

/** Every listing of lines fails, with a message of that length. */
function failing(count: number, messageLength = 4): SourceScript {
  return {
    pageSize: 1_000,
    records: () => orders(count),
    parentPaths: () => [],
    failure: ({ request }) =>
      request.resource === 'lines'
        ? upstreamErrorOutcome('x'.repeat(messageLength), 404, undefined, `GET /orders/${request.query.of}`)
        : undefined,
  }
}

interface Executed {
  readonly progress: ReturnType<typeof recordingProgress>
  readonly log: readonly JsonObject[]
}

async function execute(
  script: SourceScript,
  run: ReturnType<typeof runOf>,
  progress = recordingProgress(),
): Promise<Executed> {
  const log: JsonObject[] = []
  const deps = {
    source: scriptedSource(script),
    sink: recordingSink(),
    clock: fastClock(),
    random: () => 0,
    account: { context: {}, environmentVariables: {} },
    warn: (fields: JsonObject) => void log.push(fields),
  }
  await executeRun(deps, run, progress, never).catch((error: unknown) => {
    if (!(error instanceof Crash)) throw error
  })
  return { progress, log }
}

const requestsOf = (errors: readonly RunError[] = []) => errors.map(({ request }) => request)
const firstRequests = (count: number) => orders(count).map(({ no }) => `GET /orders/${no}`)

describe('the errors that a run keeps', () => {
  it('are the first ten of a node, and how many there were besides', async () => {
    const { progress, log } = await execute(failing(13), runOf(ORDERS))
    const [, lines] = progress.stats
    expect(requestsOf(lines?.errors)).toEqual(firstRequests(10))
    expect(lines).toMatchObject({ failed: 13, errorsOmitted: 3 })
    expect(log.map(({ request }) => request)).toEqual(firstRequests(10))
  })

  it('have at most 32 KiB together, and messages of at most 500 characters', async () => {
    const nodes = Array.from({ length: 12 }, (_, at) => ({ ...ORDERS[1], resource: `lines${at}` }))
    const script = failing(13, 5_000)
    const failure: SourceScript['failure'] = (call, index) =>
      script.failure?.({ ...call, request: { ...call.request, resource: call.request.resource.slice(0, 5) } }, index)
    const { progress } = await execute({ ...script, failure }, runOf([...ORDERS.slice(0, 1), ...nodes]))
    const kept = progress.stats.flatMap(({ errors = [] }) => errors)
    expect(JSON.stringify(kept).length).toBeGreaterThan(30 * 1024)
    expect(JSON.stringify(kept).length).toBeLessThan(33 * 1024)
    expect(Math.max(...kept.map(({ message }) => message.length))).toBe(500)
    const counted = progress.stats.reduce((sum, { errorsOmitted = 0 }) => sum + errorsOmitted, kept.length)
    expect(counted).toBe(12 * 13)
  })

  it('are neither forgotten nor doubled by a crash anywhere', async () => {
    for (let dies = 1; dies <= 9; dies++) {
      const dying = recordingProgress((save) => {
        if (save === dies) throw new Crash()
        return undefined
      })
      await execute(failing(8), runOf(ORDERS), dying)
      const { progress } = await execute(failing(8), runOf(ORDERS, { checkpoint: dying.checkpoint }))
      expect([dies, requestsOf(progress.stats[1]?.errors)]).toEqual([dies, firstRequests(8)])
    }
  })

  it('name the element of a loop, and all records above, without the secrets of the account', async () => {
    const resources = [
      { resource: 'teams', method: 'list', loop_on: 'regions' },
      { resource: 'boards', method: 'list', depends_on: 'teams' },
      { resource: 'cards', method: 'list', depends_on: 'boards', persist: true },
    ]
    const script: SourceScript = {
      records: ({ resource }) => [{ id: resource === 'teams' ? 7 : 'key-1' }],
      parentPaths: () => [],
      failure: ({ request }) => (request.resource === 'cards' ? upstreamErrorOutcome('no', 404, undefined) : undefined),
    }
    const source = { ...scriptedSource(script), redact: (text: string) => text.replaceAll('key-1', '***') }
    const progress = recordingProgress()
    const deps = { source, sink: recordingSink(), clock: fastClock(), random: () => 0 }
    const run = runOf(resources, { args: { regions: ['eu', { name: 'us' }] } })
    await executeRun({ ...deps, account: { context: {}, environmentVariables: {} } }, run, progress, never)
    expect(progress.stats[2]?.errors?.map(({ parent, element }) => ({ parent, element }))).toEqual(
      ['eu', '{"name":"us"}'].map((element) => ({
        parent: { resource: 'boards', id: '***', path: 'teams/7/boards/***' },
        element,
      })),
    )
  })
})

describe('records without an identifier', () => {
  const page = (records: readonly JsonObject[]): SourceScript => ({ pageSize: 1, records: () => records })
  const nodes = [{ resource: 'orders', method: 'list', persist: true }]

  it('are warned of once, on the run and in the log', async () => {
    const { progress, log } = await execute(page([{ no: 1 }, { no: 2 }]), runOf(nodes))
    const warning = {
      reason: 'RECORD_ID_MISSING',
      message: expect.stringContaining('records of orders have no `id`: set `id_path`'),
    }
    expect(progress.stats).toMatchObject([{ complete: true, warnings: [warning] }])
    expect(log).toEqual([{ resource: 'orders', ...warning }])
    const resumed = await execute(page([{ no: 1 }, { no: 2 }]), runOf(nodes, { checkpoint: progress.checkpoint }))
    expect(resumed.log).toEqual([])
  })

  it.each<[string, readonly JsonObject[], JsonObject]>([
    ['have one', [{ id: 1 }, { id: 'b' }], { persist: true }],
    ['are not delivered', [{ no: 1 }], { persist: false }],
  ])('are not warned of when they %s', async (_, records, rest) => {
    const { progress } = await execute(page(records), runOf([{ resource: 'orders', method: 'list', ...rest }]))
    expect(progress.stats[0]?.warnings).toBeUndefined()
  })
})
