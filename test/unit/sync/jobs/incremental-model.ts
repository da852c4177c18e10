import fc from 'fast-check'
import { Failure } from '../../../../src/foundation/base/index.ts'
import type { HttpClient } from '../../../../src/foundation/egress/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'

/** What goes wrong with an answer of the third party that is asked for again. */
const TRANSIENT = ['429', '500', '502', '503', 'reset', 'hang', 'broken', 'text', 'oversize'] as const
/** What ends a listing at once. */
const FINAL = ['400', '404', 'cut', 'loop'] as const
type Fault = (typeof TRANSIENT)[number] | (typeof FINAL)[number]

const RESOURCES = ['items', 'folders', 'files', 'notes'] as const
/** Records of one resource that may exist. */
const RECORDS = 12
const FOLDERS = 4
/** Of those, every so manieth is there at the beginning. */
const INITIAL_EVERY = 3
const PAGE_SIZE = 3

/** The arguments of runs: the boxes whose notes are wanted. */
export const BOXES = [[1], [1, 2], [2, 3]] as const

/** One record at its latest version. */
interface Entry {
  readonly resource: (typeof RESOURCES)[number]
  readonly id: number
  readonly version: number
  readonly changedMs: number
}

/** One thing that happens, all of it plain data, so that a failing list of them shrinks. */
export type Command =
  | { readonly kind: 'change'; readonly at: number }
  | { readonly kind: 'wait'; readonly minutes: number }
  | { readonly kind: 'tick' | 'run-trigger' | 'narrow' | 'widen' }
  | { readonly kind: 'run-job'; readonly boxes: number; readonly isFull: boolean }
  | { readonly kind: 'redirect'; readonly to: number }
  | { readonly kind: 'stop' | 'retry' }
  /** A tick that is executed at once, or whatever waits. */
  | { readonly kind: 'sync' | 'work'; readonly work: Work }

/** How one attempt of a run goes. */
export interface Work {
  /** By the number of the request to the third party. */
  readonly faults: readonly { readonly at: number; readonly fault: Fault; readonly times: number }[]
  /** Records that change while a request is answered. */
  readonly changes: readonly { readonly at: number; readonly record: number }[]
  /** The executor dies before its step of this number; a step is a call of the third party, receiver or database. */
  readonly crashAt: number | null
}

/** Requests that repeat a failed one are more than a run makes of one. */
const OUTAGE = 1_000
const request = fc.integer({ min: 0, max: 20 })
const fault = fc.oneof(
  fc.record({ at: request, fault: fc.constantFrom(...TRANSIENT), times: fc.constantFrom(1, 2, 8, OUTAGE) }),
  fc.record({ at: request, fault: fc.constantFrom(...FINAL), times: fc.constantFrom(1, 1, 1, OUTAGE) }),
)
const work: fc.Arbitrary<Work> = fc.record({
  faults: fc.array(fault, { maxLength: 3 }),
  changes: fc.array(fc.record({ at: request, record: fc.nat(RESOURCES.length * RECORDS - 1) }), { maxLength: 2 }),
  crashAt: fc.option(fc.nat(40), { freq: 2 }),
})
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 12, arbitrary: fc.record({ kind: fc.constantFrom('sync' as const, 'work' as const), work }) },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant('change' as const), at: fc.nat(RESOURCES.length * RECORDS - 1) }),
  },
  { weight: 3, arbitrary: fc.constant({ kind: 'tick' as const }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('wait' as const), minutes: fc.integer({ min: 1, max: 15 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('run-job' as const),
      boxes: fc.nat(BOXES.length - 1),
      isFull: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom('run-trigger' as const, 'narrow' as const, 'widen' as const) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('stop' as const, 'retry' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('redirect' as const), to: fc.nat(1) }) },
)

/** Days in the life of a job. */
export const commands = fc.array(command, { minLength: 4, maxLength: 24 })

const since = '{{previous_run_date}}'

/** What the job reads; `all` or only the even items. */
export function resourcesOf(scope: 'all' | 'even'): readonly JsonObject[] {
  return [
    { resource: 'items', method: 'list', persist: true, query: { since, scope } },
    { resource: 'folders', method: 'list', persist: true, query: { since } },
    {
      resource: 'files',
      method: 'list',
      persist: true,
      depends_on: 'folders',
      query: { since, folder: '{{resources.folders.id}}' },
    },
    { resource: 'notes', method: 'list', persist: true, loop_on: 'boxes', query: { since, box: '{{args.boxes}}' } },
  ]
}

/** The third party as its definition describes it; a call is repeated once. */
export const DEFINITION: JsonObject = {
  base_url: 'https://api.example',
  retry: { max_attempts: 2, base: 0.1 },
  pagination: {
    format: 'page',
    config: { page_key: 'page', limit_key: 'size', limit: PAGE_SIZE, total_path: 'total' },
  },
  resources: Object.fromEntries(
    RESOURCES.map((name) => [name, { list: { method: 'get', path: `/${name}`, response_path: 'records' } }]),
  ),
}

/** A third party that knows its records and when they changed, and answers badly when it is told to. */
export class ThirdParty {
  readonly #now: () => Date
  readonly #entries = new Map<string, Entry>()
  #work: Work | undefined
  #asked = 0
  /** `since` of every request since it was last cleared, in milliseconds; `undefined` where there was none. */
  readonly asked: (number | undefined)[] = []
  faults = 0

  constructor(now: () => Date) {
    this.#now = now
    for (let record = 0; record < RESOURCES.length * RECORDS; record += INITIAL_EVERY) this.change(record)
  }

  /** What the next requests meet. */
  behave(work: Work | undefined): void {
    this.#work = work
    this.#asked = 0
  }

  /** Creates or changes a record. A file that changes changes its folder too, as where folders are asked for by date. */
  change(record: number): void {
    const resource = RESOURCES[Math.floor(record / RECORDS) % RESOURCES.length] ?? 'items'
    const id = resource === 'folders' ? record % FOLDERS : record % RECORDS
    this.#put(resource, id)
    if (resource === 'files') this.#put('folders', id % FOLDERS)
  }

  /** What a receiver with these arguments must have, as `resource/id@version`. */
  expected(scope: 'all' | 'even', boxes: readonly number[]): readonly string[] {
    return [...this.#entries.values()]
      .filter(({ resource, id }) => {
        if (resource === 'items') return scope === 'all' || id % 2 === 0
        return resource !== 'notes' || boxes.includes(boxOf(id))
      })
      .map(({ resource, id, version }) => `${resource}/${id}@${version}`)
  }

  readonly send: HttpClient['send'] = async ({ url, signal }) => {
    signal?.throwIfAborted()
    const at = this.#asked++
    for (const change of this.#work?.changes ?? []) if (change.at === at) this.change(change.record)
    const fault = this.#work?.faults.find((each) => each.at <= at && at < each.at + each.times)?.fault
    if (fault !== undefined) this.faults++
    return this.#answer(new URL(url), fault)
  }

  #answer(url: URL, fault: Fault | undefined) {
    switch (fault) {
      case 'reset':
        throw new Failure('UPSTREAM_UNREACHABLE', 'it closed the connection')
      case 'hang':
        throw new Failure('DEADLINE_EXCEEDED', 'it did not answer in time')
      case 'oversize':
        throw new Failure('UPSTREAM_INVALID_RESPONSE', 'its decoded answer is too large')
      case 'broken':
        return answer(url, 200, JSON.stringify(this.#page(url)).slice(0, -9))
      case 'text':
        return answer(url, 200, '<html>log in</html>', 'text/html')
      case 'cut':
        return answer(url, 200, JSON.stringify({ ...this.#page(url), records: [] }))
      case 'loop':
        url.searchParams.set('page', '1')
        return answer(url, 200, JSON.stringify(this.#page(url)))
      case undefined:
        return answer(url, 200, JSON.stringify(this.#page(url)))
      default:
        return answer(url, Number(fault), '{"message":"no"}')
    }
  }

  #page(url: URL): JsonObject {
    const [page, size] = [Number(url.searchParams.get('page')), Number(url.searchParams.get('size'))]
    const since = url.searchParams.get('since')
    const sinceMs = since === null ? undefined : Date.parse(since)
    if (page === 1) this.asked.push(sinceMs)
    const listed = this.#list(url).filter(({ changedMs }) => sinceMs === undefined || changedMs >= sinceMs)
    const records = listed.slice((page - 1) * size, page * size).map(({ id, version }) => ({ id, version }))
    return { total: listed.length, records, next: records.length }
  }

  /** In the order of ids: what changes while it is read moves others to later pages at most. */
  #list({ pathname, searchParams }: URL): readonly Entry[] {
    const of = (each: Entry) => {
      if (`/${each.resource}` !== pathname) return false
      if (each.resource === 'items') return searchParams.get('scope') === 'all' || each.id % 2 === 0
      if (each.resource === 'files') return each.id % FOLDERS === Number(searchParams.get('folder'))
      return each.resource !== 'notes' || boxOf(each.id) === Number(searchParams.get('box'))
    }
    return [...this.#entries.values()].filter(of).sort((one, other) => one.id - other.id)
  }

  #put(resource: Entry['resource'], id: number): void {
    const version = (this.#entries.get(`${resource}/${id}`)?.version ?? 0) + 1
    this.#entries.set(`${resource}/${id}`, { resource, id, version, changedMs: this.#now().getTime() })
  }
}

function boxOf(id: number): number {
  return 1 + (id % 3)
}

function answer(url: URL, status: number, text: string, type = 'application/json') {
  return { status, headers: { 'content-type': type }, body: Buffer.from(text), url: url.href }
}
