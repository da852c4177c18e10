/**
 * The product of the table of answers (`src/engine/formats/response/answer-outcome.ts`) as page 2 of 3 of a list, and as its only page, by
 * each way of paging, in runs over real HTTP: a run is complete only if it read every record, or was answered that there are none.
 */

import { fastClock } from '../../support/fast-clock.ts'
import { startSyncOverHttp } from '../../support/sync-over-http.ts'
import { reportAtLeast, reportAtMost } from '../bench/support/report.ts'

const STATUSES = [
  200, 201, 202, 203, 204, 205, 206, 300, 301, 302, 303, 304, 307, 308, 400, 404, 408, 410, 429, 500, 501, 503,
]
/** Answers of a status that says by itself that there is nothing. */
const NOTHING = new Set([204, 205, 304])
const TYPES = ['application/json', 'application/vnd.api+json', 'text/html', 'text/csv', 'text/plain', undefined]
const BODIES = [
  '',
  ' \n',
  '{}',
  '{"status":"running"}',
  '[',
  '<!doctype html><form>',
  '{"data":null,"errors":[{"message":"no"}]}',
  '{"ok":false,"error":"x"}',
]
const PAGINATIONS = {
  cursor: { format: 'cursor', config: { cursor_path: 'next', cursor_key: 'page' } },
  page: { format: 'page', config: { page_key: 'page' } },
  link_header: { format: 'link_header', config: {} },
}
const VERBS = ['GET', 'POST']
const PAGES = 3

let bad = { status: 200, type: TYPES[0], body: '', page: 2 }
await using upstream = await startSyncOverHttp((_request, response, url) => {
  const page = Number(url.searchParams.get('page') ?? 1)
  if (page === bad.page) {
    const type = bad.type === undefined ? {} : { 'content-type': bad.type }
    return void response.writeHead(bad.status, type).end(bad.body)
  }
  const next = page < PAGES ? String(page + 1) : null
  const link = next === null ? {} : { link: `</items?page=${next}>; rel="next"` }
  const items = page <= PAGES ? [{ id: page }] : []
  response.writeHead(200, { 'content-type': 'application/json', ...link }).end(JSON.stringify({ items, next }))
})

/** Whether the bad answer may be taken for an empty page: a status that says so, or an empty text of a format that has one. */
function saysNothing(): boolean {
  const isEmptyText = bad.body.trim() === '' && (bad.type === 'text/csv' || bad.type === 'text/plain')
  const isObject = bad.body === '{}' || bad.body.startsWith('{"status"')
  return NOTHING.has(bad.status) || (bad.status < 300 && bad.status !== 202 && (isEmptyText || isObject))
}

let runs = 0
const failures: string[] = []
for (const [name, pagination] of Object.entries(PAGINATIONS))
  for (const method of VERBS)
    for (const page of [1, 2])
      for (const status of STATUSES)
        for (const type of TYPES)
          for (const body of BODIES) {
            // What a status without a body sends as one is no HTTP.
            if (NOTHING.has(status) && body !== '') continue
            // Each content once with 200, of the others a sample.
            if (status !== 200 && status !== 202 && (type !== TYPES[0] || body !== BODIES[0])) continue
            bad = { status, type, body, page }
            const clock = fastClock()
            const retry = { max_attempts: 1 }
            const resources = { items: { list: { path: '/items', method, response_path: 'items' } } }
            const result = await upstream.run({ pagination, retry, resources }, clock, (ms) => clock.advance(ms))
            runs++
            if (result.isComplete && result.records < PAGES && !saysNothing())
              failures.push(`${name} ${method} page ${page}: ${JSON.stringify([bad, result])}`)
            if (!result.isComplete && result.reason === undefined)
              failures.push(`${name} ${method} page ${page} without a reason: ${JSON.stringify([bad, result])}`)
          }
for (const line of failures.slice(0, 50)) process.stderr.write(`${line}\n`)
reportAtLeast('answers/runs', runs, 'runs', 900)
reportAtMost('answers/complete-without-evidence', failures.length, 'runs', 0)
process.exit()
