import { describe, expect, it } from 'vitest'
import { Failure } from '../../../../src/foundation/base/index.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import { type ExecutableRun, executeRun, upstreamErrorOutcome } from '../../../../src/sync/jobs/index.ts'
import { PageFetcher } from '../../../../src/sync/jobs/listing.ts'
import type { PageError } from '../../../../src/sync/jobs/page-outcome.ts'
import type { SyncRunDeps } from '../../../../src/sync/jobs/run.ts'
import type { RunError } from '../../../../src/sync/runs/index.ts'
import type { RunOutcome } from '../../../../src/sync/runs/run.ts'
import { fastClock } from '../../../support/fast-clock.ts'
import { type Delivered, recordingProgress, recordingSink, runOf } from './recording.ts'
import { namesOf, type SourceCall, type SourceScript, scriptedSource } from './scripted-source.ts'

const never = new AbortController().signal

/** Executes a run against scripted lists and tells everything that happened. */
async function execute(script: SourceScript, run: ExecutableRun, rest: Partial<SyncRunDeps> = {}) {
  const source = scriptedSource(script)
  const sink = recordingSink()
  const progress = recordingProgress()
  const clock = fastClock()
  const account = { context: { site: 'north' }, environmentVariables: { STAGE: 'test' } }
  const outcome = await executeRun({ source, sink, clock, random: () => 0, account, ...rest }, run, progress, never)
  return { outcome, calls: namesOf(source.calls), requests: source.calls, delivered: sink.delivered, progress, clock }
}

/** What arrived, as `resource: ids`. */
function arrived(delivered: readonly Delivered[]): string[] {
  return delivered.map((each) =>
    each.kind === 'page' ? `${each.resource}: ${each.records.map((record) => idOf(record)).join(' ')}` : each.kind,
  )
}

function idOf(record: Json): string {
  return String((record as JsonObject).id)
}

function ids(...values: Json[]): Json[] {
  return values.map((id) => ({ id }))
}

function errorOf(failure: Failure | PageError): RunError {
  return failure instanceof Failure ? { reason: failure.reason, message: failure.publicMessage } : failure.error
}

const COMPLETED: RunOutcome = { kind: 'completed' }
const PARTIALLY: RunOutcome = { kind: 'partially_completed' }

describe('a flat resource', () => {
  it('is delivered page by page between started and completed, with rising sequence numbers', async () => {
    const { outcome, delivered, progress } = await execute(
      { records: () => ids(1, 2, 3) },
      runOf([{ resource: 'users', method: 'list', persist: true }]),
    )
    expect(outcome).toEqual(COMPLETED)
    const stats = {
      resource: 'users',
      method: 'list',
      pages: 2,
      fetched: 3,
      delivered: 3,
      failed: 0,
      stopReason: 'no_cursor',
      complete: true,
      distinct: 3,
      duplicates: 0,
    }
    expect(delivered).toEqual([
      { kind: 'started' },
      { kind: 'page', resource: 'users', sequence: 1, records: ids(1, 2), hasMore: true, errors: [] },
      { kind: 'page', resource: 'users', sequence: 2, records: ids(3), hasMore: false, errors: [] },
      { kind: 'completed', completion: 'completed', stats: [stats] },
    ])
    expect(progress.stats).toEqual([stats])
  })

  it('is read and counted but not delivered without persist', async () => {
    const { delivered, progress } = await execute(
      { records: () => ids(1) },
      runOf([{ resource: 'users', method: 'list' }]),
    )
    expect(arrived(delivered)).toEqual(['started', 'completed'])
    expect(progress.stats).toMatchObject([{ fetched: 1, delivered: 0, complete: true }])
  })

  it('of a unified name is always delivered', async () => {
    const { delivered } = await execute({ records: () => ids(1) }, runOf([{ resource: 'crm/users', method: 'list' }]))
    expect(arrived(delivered)).toEqual(['started', 'crm/users: 1', 'completed'])
  })

  it('is done before the next one is begun, so that no first page grows old', async () => {
    const { calls } = await execute(
      { records: () => ids(1, 2, 3) },
      runOf([
        { resource: 'users', method: 'list' },
        { resource: 'teams', method: 'list' },
      ]),
    )
    expect(calls).toEqual(['users', 'users#1', 'teams', 'teams#1'])
  })

  it('uses no sequence number for an empty page', async () => {
    const { delivered } = await execute(
      { records: ({ resource }) => (resource === 'none' ? [] : ids(1)) },
      runOf([
        { resource: 'none', method: 'list', persist: true },
        { resource: 'some', method: 'list', persist: true },
      ]),
    )
    expect(delivered[1]).toMatchObject({ resource: 'some', sequence: 1 })
  })

  it('hands its page on without touching the records', async () => {
    const records = [Object.freeze({ id: 1, nested: Object.freeze({ list: Object.freeze([1, null]) }) })]
    const { delivered } = await execute(
      { records: () => records },
      runOf([{ resource: 'a', method: 'list', persist: true }]),
    )
    const [, page] = delivered
    expect(page?.kind === 'page' && page.records[0]).toBe(records[0])
  })
})

describe('templates of a job', () => {
  it('see args, context, environment variables and the previous run', async () => {
    const { requests } = await execute(
      { records: () => [] },
      runOf(
        [
          {
            resource: 'users',
            method: 'get',
            id: 'u-{{args.id}}',
            query: {
              since: '{{previous_run_date}}',
              site: '{{context.site}}',
              stage: '{{env.STAGE}}',
              n: '{{args.id}}',
            },
          },
        ],
        { args: { id: 0 }, previousRunDates: [new Date('2026-01-02T03:04:05.678Z')] },
      ),
    )
    expect(requests[0]?.request).toEqual({
      resource: 'users',
      method: 'get',
      id: 'u-0',
      query: { since: '2026-01-02T03:04:05.678Z', site: 'north', stage: 'test', n: 0 },
      args: { id: 0 },
      resources: {},
      previousRunDate: '2026-01-02T03:04:05.678Z',
    })
  })

  it('leave out query entries without a value, as on a first run', async () => {
    const { calls } = await execute(
      { records: () => [] },
      runOf([{ resource: 'users', method: 'list', query: { since: '{{previous_run_date}}', all: 'yes' } }]),
    )
    expect(calls).toEqual(['users?all=yes'])
  })

  it.each([[undefined], [null], [''], [{ a: 1 }]])('make an id of %j a problem, never another call', async (value) => {
    const { outcome, calls, delivered } = await execute(
      { records: () => [] },
      runOf([{ resource: 'users', method: 'get', id: '{{args.id}}' }], {
        args: value === undefined ? {} : { id: value },
      }),
    )
    expect(outcome).toEqual(PARTIALLY)
    expect(calls).toEqual([])
    expect(delivered[1]).toMatchObject({ kind: 'problem', error: { reason: 'PLACEHOLDER_UNRESOLVED' } })
  })
})

describe('loop_on', () => {
  it('repeats the node per element, in which the placeholder is the element, falsy ones too', async () => {
    const { calls, outcome } = await execute(
      { records: () => ids(1, 2, 3) },
      runOf([{ resource: 'boards', method: 'list', loop_on: 'teams', query: { team: '{{args.teams}}' } }], {
        args: { teams: ['a', 0, '', false] },
      }),
      { concurrency: 1 },
    )
    expect(outcome).toEqual(COMPLETED)
    expect(calls).toEqual(
      ['boards?team=a', 'boards?team=0', 'boards?team=', 'boards?team=false'].flatMap((call) => [call, `${call}#1`]),
    )
  })

  it('over an empty list asks for nothing and is complete', async () => {
    const { calls, progress } = await execute(
      { records: () => ids(1) },
      runOf([{ resource: 'boards', method: 'list', loop_on: 'teams' }], { args: { teams: [] } }),
    )
    expect(calls).toEqual([])
    expect(progress.stats).toMatchObject([{ pages: 0, complete: true }])
  })

  it('over an argument that is no list fails the run', async () => {
    const { outcome, delivered } = await execute(
      { records: () => [] },
      runOf([{ resource: 'boards', method: 'list', loop_on: 'teams' }], { args: { teams: 'a' } }),
    )
    expect(outcome).toMatchObject({ kind: 'failed', error: { reason: 'ARGS_INVALID' } })
    expect(arrived(delivered)).toEqual(['started', 'failed'])
  })

  it('inside a child sees parent and element, and the element stays below it', async () => {
    const { calls } = await execute(
      { records: ({ resource }) => (resource === 'repos' ? ids('r') : ids('x')) },
      runOf(
        [
          { resource: 'repos', method: 'list' },
          {
            resource: 'issues',
            method: 'list',
            depends_on: 'repos',
            loop_on: 'states',
            query: { of: '{{resources.repos.id}}', state: '{{args.states}}' },
          },
          { resource: 'notes', method: 'list', depends_on: 'issues', query: { state: '{{args.states}}' } },
        ],
        { args: { states: ['open', 'closed'] } },
      ),
      { concurrency: 1 },
    )
    expect(calls).toEqual([
      'repos',
      'issues?of=r&state=open',
      'notes?state=open',
      'issues?of=r&state=closed',
      'notes?state=closed',
    ])
  })
})

describe('depends_on', () => {
  const tree = [
    { resource: 'orgs', method: 'list', persist: true },
    { resource: 'repos', method: 'list', depends_on: 'orgs', persist: true, query: { org: '{{resources.orgs.id}}' } },
    {
      resource: 'crm/notes',
      method: 'list',
      depends_on: 'repos',
      id: '{{resources.orgs.id}}-{{resources.repos.meta.key}}',
    },
  ]
  const records: SourceScript['records'] = ({ resource, query, id }) => {
    if (resource === 'orgs') return ids('a', 'b', 0)
    if (resource === 'repos')
      return [
        { id: `${query.org}1`, meta: { key: 'k1' } },
        { id: `${query.org}2`, meta: { key: 'k2' } },
      ]
    return ids(`note of ${id}`)
  }

  it('runs a child per parent record, three levels deep, parents before their children', async () => {
    const { delivered, progress } = await execute({ records }, runOf(tree))
    expect(arrived(delivered)).toEqual([
      'started',
      'orgs: a b',
      'repos: a1 a2',
      'crm/notes: note of a-k1',
      'crm/notes: note of a-k2',
      'repos: b1 b2',
      'crm/notes: note of b-k1',
      'crm/notes: note of b-k2',
      'orgs: 0',
      'repos: 01 02',
      'crm/notes: note of 0-k1',
      'crm/notes: note of 0-k2',
      'completed',
    ])
    expect(progress.stats.map(({ resource, fetched }) => [resource, fetched])).toEqual([
      ['orgs', 3],
      ['repos', 6],
      ['crm/notes', 6],
    ])
  })

  it('delivers the same in the same order with every concurrency', async () => {
    const [one, many] = [
      await execute({ records }, runOf(tree), { concurrency: 1 }),
      await execute({ records }, runOf(tree), { concurrency: 8 }),
    ]
    expect(many.delivered).toEqual(one.delivered)
    expect([...many.calls].sort()).toEqual([...one.calls].sort())
  })

  it('never makes more calls at once than the concurrency allows', async () => {
    let running = 0
    let most = 0
    const inner = scriptedSource({ records, pageSize: 10 })
    const source: SyncRunDeps['source'] = {
      async *pages(...args) {
        for await (const page of inner.pages(...args)) {
          most = Math.max(most, ++running)
          await new Promise(setImmediate)
          running--
          yield page
        }
      },
    }
    await execute({ records }, runOf(tree), { source, concurrency: 3 })
    expect(most).toBe(3)
  })

  it('asks for parents no further ahead than a page, however many there are', async () => {
    const PARENTS = 3_000
    const PAGE = 50
    let [given, begun, most] = [0, 0, 0]
    const inner = scriptedSource({
      records: ({ resource, query }) =>
        resource === 'orgs'
          ? Array.from({ length: PARENTS }, (_, id) => ({ id }))
          : [{ id: `${query.org}1`, meta: { key: 'k' } }],
      pageSize: PAGE,
    })
    const source: SyncRunDeps['source'] = {
      async *pages(request, ...rest) {
        if (request.resource === 'repos') begun++
        for await (const page of inner.pages(request, ...rest)) {
          if (request.resource === 'orgs' && page.kind === 'page') given += page.records.length
          most = Math.max(most, given - begun)
          yield page
        }
      },
    }
    const { outcome, progress } = await execute({ records }, runOf(tree), { source })
    expect(outcome).toEqual(COMPLETED)
    expect(progress.stats.map(({ fetched }) => fetched)).toEqual([PARENTS, PARENTS, PARENTS])
    expect(most).toBe(PAGE)
  })

  it('saves pages of which nothing is sent once a second, and what is left when the run ends early', async () => {
    const clock = fastClock(new Date(0))
    const script: SourceScript = {
      records: ({ resource }) => (resource === 'orgs' ? Array.from({ length: 40 }, (_, id) => ({ id })) : []),
      pageSize: 100,
      failure: (_, index) => {
        clock.advance(100)
        return index === 35 ? new Failure('UPSTREAM_UNREACHABLE', 'down') : undefined
      },
    }
    const resources = [
      { resource: 'orgs', method: 'list' },
      { ...tree[1], resource: 'repos' },
    ] as JsonObject[]
    const { outcome, progress } = await execute(script, runOf(resources), { clock, concurrency: 1 })
    expect(outcome.kind).toBe('retry')
    expect(progress.saves).toBeLessThan(8)
    const rest = await execute({ ...script, failure: () => undefined }, runOf(resources, progress))
    expect(rest.calls).toHaveLength(41 - 35)
    expect(rest.progress.stats).toMatchObject([{ fetched: 40 }, { pages: 40, complete: true }])
  })

  it('keeps only the fields of parents that children read in the checkpoint', async () => {
    const fat = (id: string) => ({ id, text: 'x'.repeat(5_000), meta: { key: `k-${id}`, more: 1 } })
    const script: SourceScript = {
      records: ({ resource }) => (resource === 'orgs' ? [fat('a'), fat('b')] : [fat('c')]),
      parentPaths: (resource) => (resource === 'repos' ? [['orgs', 'meta', 'key']] : []),
    }
    const windows: Json[] = []
    const progress = recordingProgress()
    const save = progress.save
    progress.save = async (checkpoint, stats) => {
      windows.push((checkpoint.position as { window: Json }[])[0]?.window ?? null)
      return await save(checkpoint, stats)
    }
    const source = scriptedSource(script)
    const account = { context: {}, environmentVariables: {} }
    const deps = { source, sink: recordingSink(), clock: fastClock(), random: () => 0, account }
    await executeRun(deps, runOf(tree.slice(0, 2)), progress, never)
    expect(windows[1]).toEqual([
      { id: 'a', meta: { key: 'k-a' } },
      { id: 'b', meta: { key: 'k-b' } },
    ])
  })
})

describe('the date of the previous run', () => {
  const since = { query: { since: '{{previous_run_date}}' } }
  const resources = ['a', 'b'].map((resource) => ({ resource, method: 'list', ...since }))
  const dates = (...days: (number | null)[]) =>
    days.map((day) => (day === null ? null : new Date(Date.UTC(2026, 0, day))))
  const asked = (calls: readonly SourceCall[]) => calls.map(({ request: { query } }) => query.since)

  it('is that of each resource, and absent for one that was never read', async () => {
    const { requests } = await execute({ records: () => [] }, runOf(resources, { previousRunDates: dates(2, null) }))
    expect(asked(requests)).toEqual(['2026-01-02T00:00:00.000Z', undefined])
  })

  it('stays what it was on the first attempt, also when other runs have read meanwhile', async () => {
    const failing: SourceScript = { records: () => [], failure: () => new Failure('UPSTREAM_UNREACHABLE', 'down') }
    const { progress } = await execute(failing, runOf(resources, { previousRunDates: dates(2, null) }))
    const later = { previousRunDates: dates(9, 9), checkpoint: progress.checkpoint }
    const { requests } = await execute({ records: () => [] }, runOf(resources, later))
    expect(asked(requests)).toEqual(['2026-01-02T00:00:00.000Z', undefined])
  })
})

describe('errors of the third party', () => {
  const broken: SourceScript = {
    records: ({ resource, query }) => (resource === 'repos' ? ids('a', 'b', 'c') : ids(`of ${query.repo}`)),
    failure: ({ request }) =>
      request.query.repo === 'b'
        ? upstreamErrorOutcome('no such repository', 404, undefined, 'GET /repos/b/issues')
        : undefined,
  }
  const resources = [
    { resource: 'repos', method: 'list' },
    {
      resource: 'issues',
      method: 'list',
      depends_on: 'repos',
      persist: true,
      query: { repo: '{{resources.repos.id}}' },
    },
  ]
  const error = {
    reason: 'UPSTREAM_ERROR',
    message: 'the third party answered with status 404: no such repository',
    resource: 'issues',
    method: 'list',
    parent: { resource: 'repos', id: 'b', path: 'repos/b' },
    request: 'GET /repos/b/issues',
  }

  it('are reported, counted and passed over by default', async () => {
    const { outcome, delivered, progress } = await execute(broken, runOf(resources))
    expect(outcome).toEqual(PARTIALLY)
    expect(delivered.slice(1, 4)).toEqual([
      { kind: 'page', resource: 'issues', sequence: 1, records: ids('of a'), hasMore: false, errors: [] },
      { kind: 'problem', resource: 'issues', sequence: 2, error },
      { kind: 'page', resource: 'issues', sequence: 3, records: ids('of c'), hasMore: false, errors: [] },
    ])
    expect(progress.stats).toMatchObject([
      { resource: 'repos', complete: true },
      { resource: 'issues', failed: 1, delivered: 2, complete: false, errors: [error] },
    ])
  })

  it('are delivered in place of the page with batch', async () => {
    const { delivered } = await execute(broken, runOf(resources, { errorHandling: 'batch' }))
    expect(delivered[2]).toEqual({
      kind: 'page',
      resource: 'issues',
      sequence: 2,
      records: [],
      hasMore: false,
      errors: [error],
    })
  })

  it('fail the run with fail_fast', async () => {
    const { outcome, delivered } = await execute(broken, runOf(resources, { errorHandling: 'fail_fast' }))
    expect(outcome).toEqual({ kind: 'failed', error: { ...error, message: `issues.list: ${error.message}` } })
    expect(arrived(delivered)).toEqual(['started', 'issues: of a', 'failed'])
  })

  it('leave everything below a parent whose listing failed incomplete', async () => {
    const script: SourceScript = {
      records: () => ids(1, 2, 3),
      failure: ({ page }) => (page === 1 ? new Failure('PAGINATION_LOOP', 'the same page again') : undefined),
    }
    const { progress } = await execute(script, runOf(resources))
    expect(progress.stats).toMatchObject([{ complete: false, stopReason: 'error' }, { complete: false }])
  })

  const PASSED = 'partially_completed'
  const failures: readonly { failure: Failure | PageError; kind: RunOutcome['kind'] }[] = [
    { failure: new Failure('UPSTREAM_UNREACHABLE', 'down'), kind: 'retry' },
    { failure: upstreamErrorOutcome('gateway', 503, undefined), kind: 'retry' },
    { failure: upstreamErrorOutcome('bug', 500, undefined), kind: 'retry' },
    { failure: upstreamErrorOutcome('final', 500, 'fail'), kind: PASSED },
    { failure: upstreamErrorOutcome('gone', 404, 'fail'), kind: PASSED },
    { failure: new Failure('UPSTREAM_INVALID_RESPONSE', 'half an answer'), kind: 'retry' },
    { failure: new Failure('DEADLINE_EXCEEDED', 'it hangs'), kind: 'retry' },
    { failure: new Failure('DATABASE_UNAVAILABLE', 'restarting'), kind: 'retry' },
    { failure: upstreamErrorOutcome('who are you', 401, undefined), kind: 'failed' },
    { failure: upstreamErrorOutcome('busy', 409, 'retry'), kind: 'retry' },
    { failure: upstreamErrorOutcome('revoked', 200, 'needs_reauth'), kind: 'failed' },
    { failure: new Failure('METHOD_NOT_DEFINED', 'no list'), kind: 'failed' },
    { failure: new Failure('ACCOUNT_NOT_ACTIVE', 'reconnect'), kind: 'failed' },
    { failure: new Failure('EXPRESSION_FAILED', 'no'), kind: PASSED },
  ]
  const PLACE = { resource: 'users', method: 'list' }
  const rows = failures.map((row) => ({ ...row, error: errorOf(row.failure) }))
  it.each(rows)('$error.message end as $kind when errors are ignored', async ({ failure, error, kind }) => {
    const { outcome } = await execute(
      { records: () => [], failure: () => failure },
      runOf([{ resource: 'users', method: 'list' }]),
    )
    expect(outcome.kind).toBe(kind)
    if (outcome.kind === 'failed' || outcome.kind === 'retry')
      expect(outcome.error).toEqual({ ...error, message: `users.list: ${error.message}`, ...PLACE })
  })

  it('that are bugs are thrown instead of becoming an outcome', async () => {
    const run = execute(
      { records: () => [], failure: () => new TypeError('x is undefined') },
      runOf([{ resource: 'users', method: 'list' }]),
    )
    await expect(run).rejects.toThrow('x is undefined')
  })
})

describe('rate limits', () => {
  const users = [{ resource: 'users', method: 'list', persist: true }]
  const limited = (retryAfterSeconds?: number) =>
    new Failure('UPSTREAM_RATE_LIMITED', 'slow down', retryAfterSeconds === undefined ? {} : { retryAfterSeconds })

  it('of up to 30 s are sat out and the same page is asked for again', async () => {
    const { outcome, calls, clock, delivered, progress } = await execute(
      { records: () => ids(1, 2, 3), failure: (_, index) => (index === 1 ? limited(30) : undefined) },
      runOf(users),
    )
    expect(outcome).toEqual(COMPLETED)
    expect(calls).toEqual(['users', 'users#1', 'users#1'])
    expect(clock.sleptMs).toEqual([30_000])
    expect(progress.shownWaitsMs).toEqual([30_000])
    expect(arrived(delivered)).toEqual(['started', 'users: 1 2', 'users: 3', 'completed'])
  })

  it('beyond that release the worker, and the run resumes at the page', async () => {
    let isLimited = true
    const script: SourceScript = {
      records: () => ids(1, 2, 3),
      failure: ({ page }) => (page === 1 && isLimited ? limited(31) : undefined),
    }
    const first = await execute(script, runOf(users))
    expect(first.outcome).toEqual({ kind: 'rate_limited', afterMs: 31_000 })
    expect(arrived(first.delivered)).toEqual(['started', 'users: 1 2'])
    isLimited = false
    const second = await execute(script, runOf(users, { checkpoint: first.progress.checkpoint }))
    expect(second.calls).toEqual(['users#1'])
    expect(arrived(second.delivered)).toEqual(['users: 3', 'completed'])
    expect(second.progress.stats).toMatchObject([{ pages: 2, fetched: 3, delivered: 3 }])
  })

  it('without a hint are waited for longer and longer, then give the worker back', async () => {
    const { outcome, clock, progress } = await execute({ records: () => [], failure: () => limited() }, runOf(users))
    expect(clock.sleptMs).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000, 30_000])
    expect(outcome).toEqual({ kind: 'rate_limited', afterMs: 30_000 })
    expect(progress.shownWaitsMs).toEqual(clock.sleptMs.slice(1)) // the first is over within a second
  })

  it('hold back every other call of the run', async () => {
    const times: number[] = []
    const clock = fastClock(new Date(0))
    const script: SourceScript = {
      records: ({ resource }) => (resource === 'repos' ? ids(1, 2, 3, 4) : []),
      pageSize: 10,
      failure: (_, index) => {
        times.push(clock.now().getTime())
        return index === 1 ? limited(5) : undefined
      },
    }
    const tree = [
      { resource: 'repos', method: 'list' },
      { resource: 'issues', method: 'list', depends_on: 'repos' },
    ]
    await execute(script, runOf(tree), { clock, concurrency: 1 })
    expect(times).toEqual([0, 0, 5_000, 5_000, 5_000, 5_000])
  })

  it('that parallel calls meet are shown once, and again when one of them lasts a second longer', () => {
    const shownMs: number[] = []
    const source = scriptedSource({ records: () => [] })
    const showWait = (ms: number) => shownMs.push(ms)
    const fetcher = new PageFetcher({ source, clock: fastClock(), random: () => 0, signal: never, showWait }, 4)
    for (const ms of [999, 5_000, 5_000, 5_999, 7_000, 3_000]) fetcher.pause(ms)
    expect(shownMs).toEqual([5_000, 7_000])
  })
})

describe('ending early', () => {
  const users = [{ resource: 'users', method: 'list', persist: true }]

  it('happens after the page when save says stop', async () => {
    const sink = recordingSink()
    const progress = recordingProgress((save) => (save === 1 ? 'stop' : undefined))
    const deps = { sink, clock: fastClock(), random: () => 0, account: { context: {}, environmentVariables: {} } }
    const source = scriptedSource({ records: () => ids(1, 2, 3, 4, 5) })
    expect(await executeRun({ ...deps, source }, runOf(users), progress, never)).toEqual({ kind: 'stopped' })
    expect(arrived(sink.delivered)).toEqual(['started', 'users: 1 2'])
    const rest = recordingSink()
    const run = runOf(users, { checkpoint: progress.checkpoint })
    expect(await executeRun({ ...deps, source, sink: rest }, run, recordingProgress(), never)).toEqual(COMPLETED)
    expect(arrived(rest.delivered)).toEqual(['users: 3 4', 'users: 5', 'completed'])
  })

  it('happens in mid-call when the signal aborts', async () => {
    const controller = new AbortController()
    const source: SyncRunDeps['source'] = {
      async *pages(_request, _state, signal) {
        controller.abort()
        signal.throwIfAborted()
        yield { kind: 'page', page: 1, records: [], state: null, stopReason: undefined }
      },
    }
    const deps = { source, sink: recordingSink(), clock: fastClock(), random: () => 0 }
    const account = { context: {}, environmentVariables: {} }
    const outcome = await executeRun({ ...deps, account }, runOf(users), recordingProgress(), controller.signal)
    expect(outcome).toEqual({ kind: 'stopped' })
  })

  it('by a lost lease throws it, even when the signal aborts too, and delivers nothing more', async () => {
    const controller = new AbortController()
    const sink = recordingSink()
    const progress = recordingProgress((save) => {
      if (save === 0) return undefined
      controller.abort()
      throw new Failure('LEASE_LOST', 'another worker holds this run')
    })
    const deps = { sink, clock: fastClock(), random: () => 0, account: { context: {}, environmentVariables: {} } }
    const source = scriptedSource({ records: () => ids(1, 2, 3) })
    const running = executeRun({ ...deps, source }, runOf(users), progress, controller.signal)
    await expect(running).rejects.toMatchObject({ reason: 'LEASE_LOST' })
    expect(arrived(sink.delivered)).toEqual(['started', 'users: 1 2'])
  })

  it('follows what the sink says: of a page, of started, of completed', async () => {
    const retry: RunOutcome = { kind: 'retry', error: { reason: 'UPSTREAM_UNREACHABLE', message: 'receiver down' } }
    for (const kind of ['started', 'page', 'completed'] as const) {
      const sink = recordingSink((each) => (each.kind === kind ? retry : undefined))
      const { outcome } = await execute({ records: () => ids(1) }, runOf(users), { sink })
      expect(outcome).toEqual(retry)
      expect(sink.delivered.at(-1)?.kind).toBe(kind)
    }
  })

  it('permanently, on the last attempt, is delivered to the destination', async () => {
    const script: SourceScript = { records: () => [], failure: () => new Failure('UPSTREAM_UNREACHABLE', 'down') }
    const early = await execute(script, runOf(users, { attempt: 4 }), { attemptsMax: 5 })
    expect([early.outcome.kind, ...arrived(early.delivered)]).toEqual(['retry', 'started'])
    const last = await execute(script, runOf(users, { attempt: 5 }), { attemptsMax: 5 })
    expect([last.outcome.kind, ...arrived(last.delivered)]).toEqual(['failed', 'started', 'failed'])
  })

  it('on the last attempt is no end when a page was delivered in it', async () => {
    const script: SourceScript = {
      records: () => ids(1, 2, 3),
      failure: ({ page }) => (page === 0 ? undefined : new Failure('UPSTREAM_UNREACHABLE', 'down')),
    }
    const last = await execute(script, runOf(users, { attempt: 5 }), { attemptsMax: 5 })
    expect([last.outcome.kind, ...arrived(last.delivered)]).toEqual(['retry', 'started', 'users: 1 2'])
  })

  describe('with listings that cannot be read on the last attempt', () => {
    const lists = (count: number) => Array.from({ length: count }, (_, at) => ({ resource: `r${at}`, method: 'list' }))
    const down = upstreamErrorOutcome('bug', 500, undefined)
    const reading = (broken: readonly string[]): SourceScript => ({
      records: () => ids(1),
      failure: ({ request }) => (broken.includes(request.resource) ? down : undefined),
    })
    const last = (script: SourceScript, count: number, more: Parameters<typeof runOf>[1] = {}) =>
      execute(script, runOf(lists(count), { attempt: 5, ...more }), { attemptsMax: 5 })

    it('passes them over once another one can be read', async () => {
      const { outcome, delivered, progress } = await last(reading(['r0', 'r1']), 3)
      expect(outcome).toEqual(PARTIALLY)
      expect(arrived(delivered)).toEqual(['started', 'problem', 'problem', 'completed'])
      expect(progress.stats.map(({ complete }) => complete)).toEqual([false, false, true])
    })

    it('passes them over at the end when others were read before', async () => {
      expect((await last(reading(['r1']), 2)).outcome).toEqual(PARTIALLY)
    })

    it('fails the run with fail_fast', async () => {
      expect((await last(reading(['r1']), 2, { errorHandling: 'fail_fast' })).outcome.kind).toBe('failed')
    })

    it('fails the run after six in a row, where they began', async () => {
      const { outcome, delivered, progress } = await last(reading(['r0', 'r1', 'r2', 'r3', 'r4', 'r5']), 8)
      expect(outcome).toMatchObject({
        kind: 'failed',
        error: { message: 'r0.list: the third party answered with status 500: bug' },
      })
      expect(arrived(delivered)).toEqual(['started', 'failed'])
      const again = await last(reading([]), 8, { checkpoint: progress.checkpoint })
      expect(again.outcome).toEqual(COMPLETED)
      expect(again.progress.stats.map(({ pages }) => pages)).toEqual([1, 1, 1, 1, 1, 1, 1, 1])
    })

    it('has them read by another attempt after six in a row when this one has made progress', async () => {
      const { outcome } = await last(reading(['r1', 'r2', 'r3', 'r4', 'r5', 'r6']), 8)
      expect(outcome).toEqual({
        kind: 'retry',
        error: {
          reason: 'UPSTREAM_ERROR',
          message: 'r1.list: the third party answered with status 500: bug',
          resource: 'r1',
          method: 'list',
        },
      })
    })

    it('has them read by the next attempt when there is one', async () => {
      const { outcome, progress } = await execute(reading(['r1']), runOf(lists(2), { attempt: 4 }), { attemptsMax: 5 })
      expect(outcome).toEqual({
        kind: 'retry',
        error: {
          reason: 'UPSTREAM_ERROR',
          message: 'r1.list: the third party answered with status 500: bug',
          resource: 'r1',
          method: 'list',
        },
      })
      expect((await last(reading([]), 2, { checkpoint: progress.checkpoint })).outcome).toEqual(COMPLETED)
    })
  })

  it('because the stored resources make no plan fails the run', async () => {
    const circle = [
      { resource: 'a', method: 'list', depends_on: 'b' },
      { resource: 'b', method: 'list', depends_on: 'a' },
    ]
    const { outcome } = await execute({ records: () => [] }, runOf(circle))
    expect(outcome).toMatchObject({ kind: 'failed', error: { reason: 'RESOURCES_INVALID' } })
  })
})
