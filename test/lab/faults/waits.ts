/**
 * A third party that limits for ever, with every kind of hint, in a run over real HTTP: for some seconds on the real clock, counting
 * requests per second, and to its end on a clock that jumps, counting requests and attempts.
 */

import { setTimeout as pause } from 'node:timers/promises'
import { systemClock } from '../../../src/foundation/base/index.ts'
import { fastClock } from '../../support/fast-clock.ts'
import { startSyncOverHttp } from '../../support/sync-over-http.ts'
import { reportAtLeast, reportAtMost } from '../bench/support/report.ts'

const REAL_MS = 4_000
/** The first request, its first wait, and a backoff of 0.5 s that doubles. */
const REAL_REQUESTS_MAX = 6
const REQUESTS_MAX = 110
const MINUTES_5 = 5 * 60_000

type Headers = Readonly<Record<string, string>>
const at = (ms: number) => new Date(ms).toUTCString()
/** What the third party says, and what the definition makes of it. */
const HINTS: Readonly<Record<string, (nowMs: number) => Headers>> = {
  none: () => ({}),
  zero: () => ({ 'retry-after': '0' }),
  'minus zero': () => ({ 'retry-after': '-0' }),
  negative: () => ({ 'retry-after': '-30' }),
  fraction: () => ({ 'retry-after': '0.001' }),
  one: () => ({ 'retry-after': '1' }),
  'not a number': () => ({ 'retry-after': 'NaN' }),
  'no wait at all': () => ({ 'retry-after': 'soon' }),
  endless: () => ({ 'retry-after': '9'.repeat(300) }),
  'date in the past': (now) => ({ 'retry-after': at(now - MINUTES_5) }),
  'date of a clock behind': (now) => ({ date: at(now - MINUTES_5), 'retry-after': at(now - MINUTES_5 + 1_000) }),
  'date of a clock ahead': (now) => ({ date: at(now + MINUTES_5), 'retry-after': at(now + MINUTES_5 + 1_000) }),
  'date far away': () => ({ 'retry-after': 'Fri, 31 Dec 9999 23:59:59 GMT' }),
  'epoch in the past': (now) => ({ 'retry-after': String(Math.floor(now / 1_000) - 60) }),
}
const DEFINITIONS = {
  header: {},
  expression: {
    rate_limit: { retry_after_header_expression: '$max([0, $number(headers."x-reset") - $millis() / 1000])' },
  },
  action: { error_expression: 'status = 429 ? {"action": "rate_limited", "retry_after": 0}' },
}

const requests = new Map<string, number>()
await using upstream = await startSyncOverHttp((_request, response, url) => {
  const [, kind = '', hint = ''] = decodeURIComponent(url.pathname).split('/')
  const key = `${kind}/${hint}`
  requests.set(key, (requests.get(key) ?? 0) + 1)
  const reset = String(Math.floor(Date.now() / 1_000))
  response.writeHead(429, { 'x-reset': reset, ...HINTS[hint]?.(Date.now()) }).end('{}')
})
const cases = Object.entries(DEFINITIONS).flatMap(([kind, definition]) =>
  Object.keys(HINTS).map((hint) => ({ kind, hint, definition })),
)
const failures: string[] = []
const definitionOf = (name: string, hint: string, definition: object) => ({
  ...definition,
  resources: { items: { list: { path: `/${name}/${encodeURIComponent(hint)}` } } },
})

const isOver = AbortSignal.timeout(REAL_MS)
await Promise.all(
  cases.map(({ kind, hint, definition }) =>
    upstream
      .run(
        definitionOf(`real ${kind}`, hint, definition),
        systemClock,
        (ms) => pause(ms, undefined, { signal: isOver }),
        isOver,
      )
      .catch((error) => {
        if (!isOver.aborted) throw error
      }),
  ),
)
const most = Math.max(...requests.values())
for (const [key, count] of requests)
  if (count > REAL_REQUESTS_MAX) failures.push(`${key}: ${count} requests within 4 s`)

let attemptsMin = Number.POSITIVE_INFINITY
let requestsMost = 0
for (const { kind, hint, definition } of cases) {
  const clock = fastClock()
  const result = await upstream.run(definitionOf(kind, hint, definition), clock, (ms) => clock.advance(ms))
  const count = requests.get(`${kind}/${hint}`) ?? 0
  attemptsMin = Math.min(attemptsMin, result.attempts)
  requestsMost = Math.max(requestsMost, count)
  if (result.kind !== 'failed' || result.isComplete || count > REQUESTS_MAX)
    failures.push(`${kind}/${hint}: ${count} requests, ${JSON.stringify(result)}`)
}
for (const line of failures.slice(0, 50)) process.stderr.write(`${line}\n`)
reportAtLeast('waits/hints', cases.length, 'hints', 40)
reportAtMost('waits/requests-per-second', most / (REAL_MS / 1_000), 'requests/s', REAL_REQUESTS_MAX / (REAL_MS / 1_000))
reportAtMost('waits/requests-until-the-end', requestsMost, 'requests', REQUESTS_MAX)
reportAtLeast('waits/attempts-counted', attemptsMin, 'attempts', 5)
reportAtMost('waits/failed', failures.length, 'hints', 0)
process.exit()
