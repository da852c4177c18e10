import jsonata from 'jsonata'
import { describe, expect, test } from 'vitest'
import { assertAllowedLink } from '../../../../src/engine/formats/pagination/allowed-link.ts'
import { absoluteLink } from '../../../../src/engine/formats/pagination/link-header.ts'
import {
  advancePage,
  pageParams,
  parseListingState,
  startListing,
} from '../../../../src/engine/formats/pagination/listing.ts'
import type { ListingContext, PageParams, Pagination } from '../../../../src/engine/formats/pagination/paginator.ts'
import { compilePagination, PAGINATION_FORMATS } from '../../../../src/engine/formats/pagination/registry.ts'
import { Failure } from '../../../../src/foundation/base/index.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import { PAGE_URL, PAGINATION_ROWS, type PageAnswer, type PaginationRow } from './rows/pagination.ts'

const toolsOf = (row: Pick<PaginationRow, 'args' | 'now'>): ListingContext => ({
  evaluate: async (expression, input) => {
    const result: unknown = await jsonata(expression).evaluate(input)
    return result === undefined ? undefined : (JSON.parse(JSON.stringify(result)) as Json)
  },
  scope: { account: { context: {}, credentials: {}, environmentVariables: {} }, call: { args: row.args } },
  now: () => new Date(row.now ?? '2026-01-01T00:00:00Z'),
})

function writeRequest({ url, params }: PageParams): string {
  return url ?? params.map(({ location, key, value }) => `${location} ${key}=${JSON.stringify(value)}`).join(' ')
}

interface Walk {
  readonly requests: string[]
  readonly delivered: (readonly Json[])[]
  readonly totals: (number | undefined)[]
  end: string
}

/** Walks through the answers; between pages the state goes through text, as it does when another process resumes. */
async function walk(pagination: Pagination, row: PaginationRow): Promise<Walk> {
  const tools = toolsOf(row)
  const walked: Walk = { requests: [], delivered: [], totals: [], end: 'more' }
  let state = await startListing(pagination, row.limit, tools)
  try {
    for (const answer of row.answers) {
      state = parseListingState(pagination, JSON.parse(JSON.stringify(state)) as JsonObject)
      const request = pageParams(pagination, state)
      walked.requests.push(writeRequest(request))
      const result = await advancePage(pagination, state, pageOf(answer, request.url, state.limit), tools)
      walked.delivered.push(result.records)
      walked.totals.push(result.total)
      if (result.state === null) {
        walked.end = result.stopReason ?? 'no reason'
        break
      }
      state = result.state
    }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    walked.end = error.reason
  }
  return walked
}

function pageOf(
  { status = 200, headers = {}, body = null, records, received }: PageAnswer,
  url: string | undefined,
  limit: number | null,
) {
  return { status, headers, body, records, received, url: url ?? PAGE_URL, limit: limit ?? undefined }
}

describe.each(PAGINATION_FORMATS.map((entry) => entry.format))('pagination %s', (format) => {
  const rows = PAGINATION_ROWS[format] ?? []

  test('has rows for an end and for a loop', () => {
    expect(rows.some(({ end }) => end === end.toLowerCase() && end !== 'more')).toBe(true)
    expect(rows.some(({ end }) => end === 'PAGINATION_LOOP')).toBe(true)
  })

  test.each(rows)('$promise', async (row) => {
    const walked = await walk(compilePagination({ format, config: row.config }), row)
    const failed = walked.end === walked.end.toUpperCase()
    const answered = row.answers.map(({ records }) => records)
    expect(walked.requests).toEqual(row.requests)
    expect(walked.end).toBe(row.end)
    expect(walked.delivered).toEqual(row.delivered ?? (failed ? answered.slice(0, -1) : answered))
    if (row.totals !== undefined) expect(walked.totals).toEqual(row.totals)
  })
})

test('rows exist for registered formats only', () => {
  const registered = PAGINATION_FORMATS.map((entry) => entry.format)
  expect(Object.keys(PAGINATION_ROWS).filter((format) => !registered.includes(format))).toEqual([])
})

describe('a cycle of tokens is noticed, however long it is', () => {
  const cursor = compilePagination({ format: 'cursor', config: { cursor_path: 'next', cursor_key: 'c' } })

  test.each([2, 48, 49, 500])('cycle of %i', async (length) => {
    const tools = toolsOf({})
    let state = await startListing(cursor, undefined, tools)
    let pages = 0
    const listing = async () => {
      for (; pages < 4 * length + 60; pages += 1) {
        const answer = { records: [pages], body: { next: `token ${pages % length}` } }
        const { state: next } = await advancePage(cursor, state, pageOf(answer, undefined, null), tools)
        if (next === null) return
        state = next
      }
    }
    await expect(listing()).rejects.toThrow('PAGINATION_LOOP')
    // A short cycle is noticed on the page that closes it, a longer one within three rounds.
    expect(pages).toBeLessThanOrEqual(length <= 48 ? length : 3 * length)
    expect(JSON.stringify(state).length).toBeLessThan(1_200)
  })

  test('a thousand empty pages in a row are one too', async () => {
    const tools = toolsOf({})
    let state = await startListing(cursor, undefined, tools)
    let pages = 0
    const listing = async () => {
      for (; pages < 2_000; pages += 1) {
        const answer = { records: [], body: { next: `token ${pages}` } }
        state = (await advancePage(cursor, state, pageOf(answer, undefined, null), tools)).state ?? state
      }
    }
    await expect(listing()).rejects.toThrow('1000 pages were empty')
    expect(pages).toBe(999)
  })
})

describe('a next link by http, as a server behind a proxy writes it', () => {
  const page = 'https://api.example.com/items?page=1'

  test.each([
    ['http://api.example.com/items?q=%C3%A4&page=2', 'https://api.example.com/items?q=%C3%A4&page=2'],
    ['http://API.example.com:80/items?page=2', 'https://api.example.com/items?page=2'],
    ['http://other.example.com/items', 'http://other.example.com/items'],
    ['http://u:p@api.example.com/items', 'http://u:p@api.example.com/items'],
    ['http://api.example.com:8080/items', 'http://api.example.com:8080/items'],
    ['https://api.example.com/items?page=2', 'https://api.example.com/items?page=2'],
  ])('%s is asked as %s', (link, expected) => {
    expect(absoluteLink(link, page)).toBe(expected)
  })

  test('stays http where the page came so, and keeps a port', () => {
    expect(absoluteLink('http://api.example.com/b', 'http://api.example.com/a')).toBe('http://api.example.com/b')
    const secured = absoluteLink('http://api.example.com:8443/b?x', 'https://api.example.com:8443/a')
    expect(secured).toBe('https://api.example.com:8443/b?x')
  })
})

describe('a next link stays on origin and path of the request', () => {
  const base = 'https://api.example.com/items'

  test.each<[string, string[], string[]]>([
    ['https://API.example.com:443/items?page=2', [], []],
    ['https://api.example.com/items/', [], []],
    ['https://api.example.com/%69tems', [], []],
    ['https://api.example.com/other?page=2', [], ['/other']],
    ['https://api.example.com/v2/items/continue', [], ['/v2/*/continue']],
    ['https://api.example.com/a/items/b', [], ['*/items/*']],
    ['https://api.example.com/anything', [], ['*']],
    ['https://eu.example.com/items', ['https://eu.example.com'], []],
  ])('%s is followed', (link, origins, paths) => {
    expect(() => assertAllowedLink(link, base, { origins, paths })).not.toThrow()
  })

  test.each<[string, string[], string[]]>([
    ['https://evil.example/items', [], ['*']],
    ['http://api.example.com/items', [], []],
    ['https://api.example.com:8443/items', [], []],
    ['https://api.example.com.evil.example/items', [], []],
    ['https://user:pass@api.example.com/items', [], []],
    ['https://user@api.example.com/items', [], []],
    ['https://:pass@api.example.com/items', [], []],
    ['https://eu.example.com/items', ['https://us.example.com', 'nonsense', ''], []],
    ['javascript:alert(1)', [], ['*']],
    ['nonsense', [], ['*']],
    ['https://api.example.com/other?page=2', [], []],
    ['https://api.example.com/Items', [], []],
    ['https://api.example.com/items/1', [], ['/items/2', '/items', '/items/*/1']],
    ['https://api.example.com/items/../other', [], []],
    ['https://api.example.com/items/..%2Fother', [], ['/items/*']],
    ['https://api.example.com/items/%252e%252e%255cother', [], ['*']],
    ['https://api.example.com/ab', [], ['/ab*b']],
  ])('%s is rejected', (link, origins, paths) => {
    expect(() => assertAllowedLink(link, base, { origins, paths })).toThrow('PAGINATION_ORIGIN')
  })
})

describe('a state that does not belong to the definition is rejected', () => {
  const page = compilePagination({ format: 'page', config: { page_key: 'page' } })

  test.each<[string, JsonObject]>([
    ['nothing', {}],
    [
      'another format',
      { format: 'offset', position: { offset: 1 }, limit: null, pages: 0, records: 0, empties: 0, loop: {} },
    ],
    [
      'a position of another shape',
      { format: 'page', position: [], limit: null, pages: 0, records: 0, empties: 0, loop: {} },
    ],
  ])('%s', (_what, state) => {
    expect(() => parseListingState(page, state)).toThrow('PAGE_TOKEN_INVALID')
  })

  test('a position without its number', async () => {
    const state = await startListing(page, undefined, toolsOf({}))
    expect(() => pageParams(page, { ...state, position: { page: 'x' } })).toThrow('PAGE_TOKEN_INVALID')
  })
})

test('the page before can be asked for where the API names it', async () => {
  const pagination = compilePagination({
    format: 'cursor',
    config: { cursor_path: 'next', prev_cursor_path: 'prev', cursor_key: 'c' },
  })
  const tools = toolsOf({})
  const state = await startListing(pagination, 10, tools)
  const answer = { records: [1], body: { next: 'n', prev: 'p' } }
  const { previous } = await advancePage(pagination, state, pageOf(answer, undefined, 10), tools)
  expect(previous && writeRequest(pageParams(pagination, previous))).toBe('query c="p"')
})
