import fc from 'fast-check'
import jsonata from 'jsonata'
import { describe, expect, test } from 'vitest'
import { checkConfig, compilePlan } from '../../../../src/engine/definitions/index.ts'
import { PAGINATION_FORMATS } from '../../../../src/engine/formats/pagination/registry.ts'
import { createProxy } from '../../../../src/engine/proxy/index.ts'
import { Failure, systemClock } from '../../../../src/foundation/base/index.ts'
import type { EgressRequest, HttpClient } from '../../../../src/foundation/egress/index.ts'
import { formatDotPath, type Json, type JsonObject } from '../../../../src/foundation/json/index.ts'
import { caseCount } from '../../../support/case-count.ts'
import { on } from './engine.ts'

/** No list ends early in silence: whatever an upstream does, its records are read, or an error or the verdict says that some are missing. */

interface Entry extends JsonObject {
  readonly id: number
  readonly keep: boolean
}

/** What an upstream holds, and how it behaves. */
interface Upstream {
  /** Pages as it serves them; in a `window` an hour each. */
  readonly pages: readonly (readonly Entry[])[]
  /** The key under which records, tokens and totals stand. */
  readonly name: string
  /** Whether the definition writes a name with dots as it is. */
  readonly isBare: boolean
  /** `constant`: the server remembers where the reader is. `repeats_last`: the last page names its own token. */
  readonly tokens: 'fresh' | 'constant' | 'repeats_last'
  readonly firstNumber: number
  /** `ignores_position`: always the first page. `stops_early`: fewer pages than it claims. */
  readonly manner: 'honest' | 'ignores_position' | 'stops_early'
  readonly isFiltered: boolean
  /** What ends a numbered list besides an empty page. */
  readonly end: 'empty' | 'has_more' | 'expression' | 'short'
}

interface Reply {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly json: Json
}

type Serve = (request: EgressRequest) => Reply

/** One pagination format: its config for an upstream, and the upstream. */
interface Scenario {
  readonly pagination: (upstream: Upstream) => JsonObject
  readonly serve: (upstream: Upstream) => Serve
}

const BASE = 'https://api.example.com'
const SIZE = 3
/** Listings per format. */
const RUNS = caseCount(40, 300)
const HOUR_S = 3_600
const NAMES = [
  'next',
  'a.b',
  '@odata.nextLink',
  "it's",
  'say "x"',
  '日本.語',
  ' spaced ',
  '[0]',
  '*',
  '$',
  'a\\b',
  '/x',
  '0',
]

const pathTo = ({ name, isBare }: Upstream) =>
  isBare && /^[^\s[\]"'\\]+\.[^\s]+$/.test(name) ? name : formatDotPath([name])
const queryOf = ({ url }: EgressRequest) => new URL(url).searchParams
const all = ({ pages }: Upstream) => pages.flat()

/** Pages that are served: fewer than there are where the upstream stops early. */
const served = ({ pages, manner }: Upstream) =>
  manner === 'stops_early' ? pages.slice(0, Math.floor(pages.length / 2)) : pages

function bodyOf(upstream: Upstream, entries: readonly Entry[], more: JsonObject): Json {
  const data = upstream.isFiltered ? { data: [...entries] } : { records: { [upstream.name]: [...entries] } }
  return { ...data, meta: { [upstream.name]: all(upstream).length }, ...more }
}

/** Pages by token; `null` asks for the first. */
function byToken(upstream: Upstream): (token: string | null) => { entries: readonly Entry[]; next: string | null } {
  const pages = served(upstream)
  let reader = 0
  return (token) => {
    reader = token === null ? 0 : reader + 1
    const asked = token === null ? 0 : upstream.tokens === 'constant' ? reader : Number(token.slice(1))
    const index = upstream.manner === 'ignores_position' ? 0 : asked
    const entries = pages[index] ?? []
    if (upstream.tokens === 'constant') return { entries, next: 'scroll' }
    if (index + 1 < pages.length) return { entries, next: `t${index + 1}` }
    return { entries, next: upstream.tokens === 'repeats_last' ? `t${index}` : null }
  }
}

function serveTokens(upstream: Upstream, place: 'body' | 'link'): Serve {
  const read = byToken(upstream)
  return (request) => {
    const { entries, next } = read(queryOf(request).get('at'))
    if (place === 'body') return { json: bodyOf(upstream, entries, { [upstream.name]: next }) }
    const headers = next === null ? {} : { link: `</items?at=${next}>; rel="next"` }
    return { headers, json: bodyOf(upstream, entries, {}) }
  }
}

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  page: {
    pagination: (upstream) => {
      const { firstNumber, pages, end } = upstream
      const ends: Record<Upstream['end'], JsonObject> = {
        empty: {},
        has_more: { has_more_path: 'more', stop_on_empty: false },
        expression: { stop_expression: `page >= ${firstNumber} + body.pages - 1`, stop_on_empty: false },
        short: { limit: SIZE, stop_on_short: true },
      }
      const config = { page_key: 'p', start_page: firstNumber, total_path: totalPath(upstream), ...ends[end] }
      return { format: 'page', config: pages.length === 0 ? { ...config, stop_on_empty: true } : config }
    },
    serve: (upstream) => (request) => {
      const pages = served(upstream)
      const asked = Number(queryOf(request).get('p')) - upstream.firstNumber
      const index = upstream.manner === 'ignores_position' ? 0 : asked
      return { json: bodyOf(upstream, pages[index] ?? [], { more: index + 1 < pages.length, pages: pages.length }) }
    },
  },
  offset: {
    pagination: (upstream) => ({
      format: 'offset',
      config: {
        offset_key: 'skip',
        start_offset: upstream.firstNumber,
        total_path: totalPath(upstream),
        limit: SIZE,
        stop_on_short: upstream.end === 'short',
      },
    }),
    serve: (upstream) => (request) => {
      const asked = Number(queryOf(request).get('skip')) - upstream.firstNumber
      const from = upstream.manner === 'ignores_position' ? 0 : asked
      return {
        json: bodyOf(
          upstream,
          served(upstream)
            .flat()
            .slice(from, from + SIZE),
          {},
        ),
      }
    },
  },
  cursor: {
    pagination: (upstream) => ({
      format: 'cursor',
      config: { cursor_path: pathTo(upstream), cursor_key: 'at', total_path: totalPath(upstream) },
    }),
    serve: (upstream) => serveTokens(upstream, 'body'),
  },
  link_header: {
    pagination: (upstream) => ({ format: 'link_header', config: { total_path: totalPath(upstream) } }),
    serve: (upstream) => serveTokens(upstream, 'link'),
  },
  dynamic: {
    pagination: (upstream) => {
      const next = `$lookup(body, ${JSON.stringify(upstream.name)})`
      return {
        format: 'dynamic',
        config: {
          get_pagination_values_expression: `${next} = null ? null : {"query": {"at": ${next}}}`,
          total_path: totalPath(upstream),
        },
      }
    },
    serve: (upstream) => serveTokens(upstream, 'body'),
  },
  range: {
    pagination: () => ({ format: 'range', config: { limit: SIZE } }),
    serve: (upstream) => {
      const total = all(upstream).length
      return ({ headers = {} }) => {
        const asked = Number(/=(\d+)-/.exec(headers.range ?? '')?.[1] ?? 0)
        const from = upstream.manner === 'ignores_position' ? 0 : asked
        const entries = served(upstream)
          .flat()
          .slice(from, from + SIZE)
        if (entries.length === 0) return { status: 416, json: null, headers: { 'content-range': `items */${total}` } }
        const range = `items ${from}-${from + entries.length - 1}/${total}`
        return { status: 206, headers: { 'content-range': range }, json: bodyOf(upstream, entries, {}) }
      }
    },
  },
  window: {
    pagination: (upstream) => ({
      format: 'window',
      config: {
        from_key: 'from',
        to_key: 'to',
        step: 'PT1H',
        start: '1970-01-01T00:00:00Z',
        end: new Date(Math.max(1, upstream.pages.length) * HOUR_S * 1_000).toISOString(),
        value_format: 'epoch_seconds',
        total_path: totalPath(upstream),
        pagination: { format: 'cursor', config: { cursor_path: pathTo(upstream), cursor_key: 'at' } },
      },
    }),
    serve: (upstream) => {
      const readers = new Map<number, ReturnType<typeof byToken>>()
      return (request) => {
        const hour = Number(queryOf(request).get('from')) / HOUR_S
        const entries = served(upstream)[upstream.manner === 'ignores_position' ? 0 : hour] ?? []
        const within = { ...upstream, manner: 'honest' as const, pages: entries.map((entry) => [entry]) }
        const read = readers.get(hour) ?? byToken(within)
        readers.set(hour, read)
        const answer = read(queryOf(request).get('at'))
        return { json: bodyOf(upstream, answer.entries, { [upstream.name]: answer.next }) }
      }
    },
  },
}

function totalPath(upstream: Upstream): string {
  return `meta${upstream.isBare && pathTo(upstream) === upstream.name ? `.${upstream.name}` : formatDotPath([upstream.name], '').replace(/^(?!\[)/, '.')}`
}

function definitionOf(format: string, upstream: Upstream): JsonObject {
  const records = upstream.isFiltered ? '$.data[keep]' : formatDotPath(['records', upstream.name])
  const list = { path: '/items', response_path: records, pagination: SCENARIOS[format]?.pagination(upstream) ?? {} }
  return { base_url: BASE, retry: { max_attempts: 1 }, resources: { items: { list } } }
}

/** JSONata without its sandbox, which other tests are about. */
const evaluator = {
  evaluate: async (expression: string, roots: JsonObject): Promise<Json | undefined> => {
    const result: unknown = await jsonata(expression).evaluate(roots)
    return result === undefined ? undefined : (JSON.parse(JSON.stringify(result)) as Json)
  },
}

interface Read {
  readonly ids: readonly number[]
  /** A stop reason, or `error` and why. */
  readonly end: string
  /** What a run would say of the listing. */
  readonly isComplete: boolean
}

/** Reads a list to its end, as a run does. */
async function read(config: JsonObject, serve: Serve): Promise<Read> {
  const proxy = createProxy({ http: httpOf(serve), evaluator, clock: systemClock })
  const account = { id: 'a', context: {}, credentials: {}, environmentVariables: {}, isSandbox: false }
  const ids: number[] = []
  let claimed = 0
  try {
    for await (const step of proxy.pages(compilePlan(config), account, on('items', 'list'))) {
      if (step.kind !== 'page') return { ids, end: `error ${step.kind}`, isComplete: false }
      ids.push(...step.records.map((record) => (record as Entry).id))
      claimed = step.total ?? claimed
      if (step.stopReason !== undefined) return { ids, end: step.stopReason, isComplete: claimed <= new Set(ids).size }
      if (step.page > 300) return { ids, end: 'endless', isComplete: true }
    }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return { ids, end: `error ${error.reason}`, isComplete: false }
  }
  return { ids, end: 'no reason', isComplete: true }
}

function httpOf(serve: Serve): Pick<HttpClient, 'send' | 'stream'> {
  return {
    send: async (request) => {
      const { status = 200, headers = {}, json } = serve(request)
      const body = Buffer.from(JSON.stringify(json))
      return { status, headers: { 'content-type': 'application/json', ...headers }, body, url: request.url }
    },
    stream: () => Promise.reject(new Error('nothing is streamed here')),
  }
}

/** Pages of up to three entries, in which empty ones may stand between others. */
const anyPages = fc.array(fc.array(fc.boolean(), { maxLength: SIZE }), { maxLength: 8 }).map((pages) => {
  let id = 0
  return pages.map((page) => page.map((keep): Entry => ({ id: ++id, keep })))
})

const anyUpstream: fc.Arbitrary<Upstream> = fc.record({
  pages: anyPages,
  name: fc.constantFrom(...NAMES),
  isBare: fc.boolean(),
  tokens: fc.constantFrom('fresh', 'constant', 'repeats_last'),
  firstNumber: fc.constantFrom(0, 1, 7),
  manner: fc.constantFrom('honest', 'honest', 'ignores_position', 'stops_early'),
  isFiltered: fc.boolean(),
  end: fc.constantFrom('empty', 'has_more', 'expression', 'short'),
})

/**
 * Numbered lists that end at an empty or a short page have none in their middle: nothing tells those from the end. Intervals
 * that are ignored are noticed by the records that come again, as long as no filter takes those away.
 */
function withoutFalseEnds(format: string, drawn: Upstream): Upstream {
  const isWindowIgnored = format === 'window' && drawn.manner === 'ignores_position'
  const upstream: Upstream = isWindowIgnored ? { ...drawn, isFiltered: false } : drawn
  const full = [...all(upstream).keys()].flatMap((at) => (at % SIZE === 0 ? [all(upstream).slice(at, at + SIZE)] : []))
  const needsFull = format === 'page' && (upstream.end === 'empty' || upstream.end === 'short')
  // With a constant token a second empty answer in a row is the end, as an upstream without a second page has one to repeat.
  const pages = needsFull ? full : upstream.tokens === 'constant' ? withoutEmpty(upstream.pages) : upstream.pages
  return {
    ...upstream,
    pages: upstream.manner === 'ignores_position' ? pages.filter((page) => page.length > 0) : pages,
  }
}

/** Without the second and later of several empty pages in a row. */
function withoutEmpty(pages: Upstream['pages']): Upstream['pages'] {
  return pages.filter((page, index) => page.length > 0 || (pages[index - 1]?.length ?? 1) > 0)
}

/** Lists without progress whose end cannot be told: these fail instead of ending. */
function mayFail(format: string, { tokens, pages, manner }: Upstream): boolean {
  if (manner !== 'honest') return true
  const hasTokens = ['cursor', 'link_header', 'dynamic', 'window'].includes(format)
  return hasTokens && tokens !== 'fresh' && (format !== 'cursor' || tokens === 'repeats_last' || pages.length < 2)
}

describe.each(PAGINATION_FORMATS.map(({ format }) => format))('a list paged by %s', (format) => {
  test('is read whole, or says that it is not', async () => {
    await fc.assert(
      fc.asyncProperty(anyUpstream, async (drawn) => {
        const upstream = withoutFalseEnds(format, drawn)
        const config = definitionOf(format, upstream)
        expect(checkConfig(config, 'integration', 'config')).toEqual([])
        const { ids, end, isComplete } = await read(
          config,
          SCENARIOS[format]?.serve(upstream) ?? (() => ({ json: null })),
        )
        const expected = all(upstream).flatMap(({ id, keep }) => (keep || !upstream.isFiltered ? [id] : []))
        expect(end).not.toBe('endless')
        expect(end).not.toBe('no reason')
        if (isComplete) expect([...new Set(ids)].toSorted((a, b) => a - b)).toEqual(expected)
        if (isComplete && upstream.manner === 'honest') expect(ids).toHaveLength(expected.length)
        if (!mayFail(format, upstream)) expect({ end, isComplete }).toEqual({ end, isComplete: true })
      }),
      { numRuns: RUNS },
    )
  })
})
