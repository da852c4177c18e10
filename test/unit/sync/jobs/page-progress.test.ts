import fc from 'fast-check'
import { afterAll, expect, it } from 'vitest'
import { createEvaluator } from '../../../../src/engine/expressions/index.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import { createAccountSource } from '../../../../src/sync/jobs/account-source.ts'
import { executeRun } from '../../../../src/sync/jobs/index.ts'
import { caseCount } from '../../../support/case-count.ts'
import { fastClock } from '../../../support/fast-clock.ts'
import { ACCOUNT, planOf, SHOP_PLAN, scriptedProxy } from '../../engine/unified/engine-support.ts'
import { Crash, type Delivered, recordingProgress, recordingSink, runOf } from './recording.ts'

const evaluator = createEvaluator()
afterAll(() => evaluator[Symbol.asyncDispose]())

const mapping = planOf({
  before: [1, 2].map((at) => ({
    name: `team${at}`,
    type: 'request',
    resource: 'users',
    method: 'get',
    id: `'t${at}'`,
  })),
  response: { fields: { id: 'id', name: 'label', owner: { id: 'owner' } } },
  expand: { owner: { resource: 'users', method: 'get', ids: 'owner', fields: { name: 'name' } } },
})

/** Ten per window: a run looks again after a minute. */
const PROCESSES_MAX = 1_000
/** Two pages. */
const PAGES = 2

interface World {
  readonly references: number
  /** Requests per window. */
  readonly budget: number
  readonly windowSeconds: number
  /** The process is killed as soon as it has stored that it waits. */
  readonly isKilled: boolean
}

/** Executes a run in as many processes as it takes; returns the windows that it used, and what was delivered. */
async function windowsOf({ references, budget, windowSeconds, isKilled }: World) {
  const clock = fastClock()
  let left = budget
  let windows = 1
  let endsAtMs = clock.monotonicMs() + windowSeconds * 1_000
  const { proxy } = scriptedProxy(evaluator, ({ path }) => {
    if (clock.monotonicMs() >= endsAtMs) {
      left = budget
      windows++
      endsAtMs = clock.monotonicMs() + windowSeconds * 1_000
    }
    if (left === 0) return { status: 429, body: {}, headers: { 'retry-after': String(windowSeconds) } }
    left--
    if (!path.startsWith('/people')) return { body: { id: path.split('/')[2] ?? '', name: 'x' } }
    const page = path.includes('cursor=') ? 1 : 0
    const items = Array.from({ length: references }, (_, at) => ({ id: `${page}-${at}`, label: 'n', owner: `u${at}` }))
    return { body: { items, next: page === 0 ? 'c1' : null } }
  })
  const source = createAccountSource(
    { proxy, unified: { proxy, evaluator, clock }, findMapping: async () => mapping },
    SHOP_PLAN,
    ACCOUNT,
  )
  const delivered: Delivered[] = []
  const resources = [{ resource: 'crm/contacts', method: 'list', query: { expand: 'owner' } }]
  let checkpoint: JsonObject | null = null
  for (let processes = 0; processes < PROCESSES_MAX; processes++) {
    const progress = recordingProgress(() => () => {
      if (isKilled && left === 0 && progress.ending === null) throw new Crash()
    })
    progress.checkpoint = checkpoint
    const sink = recordingSink()
    const deps = { source, sink, clock, random: () => 0, account: { context: {}, environmentVariables: {} } }
    const run = runOf(resources, { checkpoint })
    const outcome = await executeRun(deps, run, progress, new AbortController().signal).catch((error) => {
      if (!(error instanceof Crash)) throw error
      return { kind: 'killed' } as const
    })
    delivered.push(...sink.delivered)
    checkpoint = progress.checkpoint
    if (outcome.kind === 'completed') return { windows, delivered }
    if (outcome.kind === 'killed') clock.advance(windowSeconds * 1_000)
    else if (outcome.kind === 'rate_limited') clock.advance(outcome.afterMs)
    else throw new Error(JSON.stringify(outcome))
  }
  throw new Error('the run made no progress in so many processes')
}

it('takes as many windows as the requests of its pages do, whatever the length of a window also when processes are killed', async () => {
  const world = fc.record({
    references: fc.integer({ min: 1, max: 20 }),
    budget: fc.integer({ min: 1, max: 12 }),
    windowSeconds: fc.constantFrom(1, 20, 31, 600),
    isKilled: fc.boolean(),
  })
  const property = fc.asyncProperty(world, async (drawn) => {
    const { windows, delivered } = await windowsOf(drawn)
    const requests = 2 + PAGES * (1 + drawn.references)
    // A process that is killed reads the steps before its page again where it had begun no page.
    expect(windows).toBeLessThanOrEqual(Math.ceil(requests / drawn.budget) + 4)
    const records = delivered.flatMap((each): readonly Json[] => (each.kind === 'page' ? each.records : []))
    expect(records.length).toBeGreaterThanOrEqual(PAGES * drawn.references)
    for (const record of records) expect(record).toMatchObject({ owner: { name: 'x' } })
  })
  await fc.assert(property, { numRuns: caseCount(12, 300) })
})
