import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')
const SOURCES = globSync('src/**/*.ts', { cwd: ROOT })
  .toSorted()
  .map((path) => ({ path: path.slice('src/'.length), text: readFileSync(join(ROOT, path), 'utf8') }))

/**
 * Every map and set that starts empty and may live as long as its process, `file name`, with what bounds it. Caches are not here:
 * `LRUCache` and `TtlCache` are made with a number of entries.
 */
const BOUNDS: Readonly<Record<string, string>> = {
  'platform/accounts/refresh-token.ts inFlight': 'token requests under way',
  'server/api/listener/listener.ts #sessions': 'open HTTP/2 sessions',
  'server/api/listener/listener.ts #sockets': 'open sockets',
  'server/api/listener/protocol-detection.ts undecided': 'open sockets',
  'server/api/messages/codec.ts formatters': 'messages of the contract',
  'server/api/messages/free-form.ts byKey': 'messages of the contract',
  'server/api/messages/free-form.ts freeFormFieldsByType': 'messages of the contract',
  'server/api/messages/rules.ts patterns': 'patterns of the contract',
  'server/api/messages/storable.ts validators': 'messages of the contract',
  'server/api/pipeline/rate-limiter.ts #current': 'the requests of a window: a new map follows',
  'server/api/pipeline/rate-limiter.ts #previous': 'the requests of a window',
  'server/api/pipeline/token-look-ups.ts #byKey': 'requests that wait for a look-up, bounded for each address',
  'server/api/request-context.ts #held': 'one request',
  'server/api/services/health.ts #problems': 'services of the contract',
  'server/api/services/integrated-account.ts NO_CONTEXT_ERRORS': 'nothing is added',
  'server/api/services/shape.ts conversions': 'messages of the contract',
  'foundation/fair/fair-queue.ts #lines': 'owners with something that waits',
  'foundation/fair/fair-slots.ts #held': 'owners with work under way',
  'foundation/fair/fair-semaphore.ts #held': 'owners with work under way',
  'foundation/base/lazy-map.ts #values': 'the keys it was made with',
  'server/api/pipeline/audit.ts nouns': 'RPCs of the contract',
  'foundation/base/long-poll-hub.ts #waiters': 'open requests',
  'foundation/fair/worker-threads.ts #threads': 'the threads of the limits',
  'foundation/fair/worker-threads.ts #waitingBytes': 'owners with tasks that wait',
  'platform/call-log/watch.ts #seen': 'entries of the last LATE_MS',
  'platform/call-log/writer.ts #bytesOf': 'environments with entries that wait',
  'platform/call-log/writer.ts #droppedOf': 'COUNTED_OWNERS_MAX',
  'platform/figures/call-hours.ts #waiting': 'KEYS_MAX',
  'engine/catalog/logos.ts logos': 'files of the catalogue',
  'engine/catalog/unified.ts documents': 'files of the catalogue',
  'cli/commands/run-lines.ts #printed': 'nodes of one run',
  'cli/commands/run-lines.ts #problems': 'problems of one run, which the service bounds',
  'cli/daemon/ndjson-store.ts #files': 'resources of one run',
  'cli/daemon/postgres-store.ts #tables': 'resources that the daemon stores',
  'cli/daemon/postgres-store.ts #views': 'resources that the daemon stores',
  'foundation/database/health-check.ts #errorCounts': 'reasons of errors',
  'foundation/database/prepared-statements.ts #statements': 'STATEMENTS_MAX',
  'webhooks/outbound/in-flight.ts #prompt': 'attempts under way',
  'webhooks/outbound/in-flight.ts #promptOf': 'queue groups',
  'webhooks/outbound/in-flight.ts #shares': 'webhooks with leases',
  'webhooks/outbound/in-flight.ts #slow': 'attempts under way',
  'webhooks/outbound/in-flight.ts #states': 'webhooks with attempts in the last hour (FORGET_MS)',
  'foundation/queue/leased-work.ts #underWay': 'work on the leases that a process has claimed',
  'foundation/egress/connection-slots.ts #origins': 'origins with calls under way',
  'foundation/egress/connector.ts inFlight': 'look-ups of names under way',
  'webhooks/inbound/unverified-reads.ts #reading': 'LARGE_MAX',
  'webhooks/inbound/unverified-reads.ts #smallOfAddress': 'small bodies that are read, bounded by SMALL_BYTES_MAX',
  'webhooks/inbound/unverified-reads.ts #waitingOfAddress': 'large bodies that wait, bounded for each installation',
  'engine/expressions/circuit-breaker.ts #entries': 'ENTRIES_MAX',
  'engine/expressions/sandbox-pool.ts #members': 'processes of the pool',
  'engine/expressions/sandbox/dates.ts zones': 'ZONES_MAX',
  'engine/expressions/sandbox/evaluate.ts cache': 'CACHED_CHARACTERS_MAX',
  'foundation/secrets/key-ring.ts derived': 'purposes that are named in the sources',
  'engine/proxy/redaction.ts NONE': 'nothing is added',
  'foundation/redaction/redactor.ts #secrets': 'the secrets of one call',
  'sync/runs/executor.ts #held': 'runs under way',
  'foundation/queue/queue.ts #turns': 'queue groups of deliveries and inbound webhooks',
  'sync/runs/run-watch.ts #watched': 'runs with open streams',
  'sync/schedules/shard-cursors.ts #cursors': 'shards',
  'sync/jobs/run.ts #advancing': 'resources of one run',
  'foundation/telemetry/throttled-log.ts #repeated': 'KEYS_MAX, and a minute',
  'foundation/telemetry/metrics.ts #integrations': 'INTEGRATIONS_MAX',
  'foundation/telemetry/metrics.ts #operations': 'operations of the contract and routes',
  'platform/tenancy/authenticate.ts pending': 'writes under way',
  'tools/servers/record-calls.ts pending': 'writes under way',
  'tools/servers/tool-input.ts numbers': 'the tools of one list',
  'tools/servers/tool-input.ts taken': 'the tools of one list',
  'platform/subscriptions/activity.ts #collected': 'COLLECTED_MAX',
}

const TOP = /^(?:export )?(?:async )?(?:function\*? (\w+)|(?:abstract )?class (\w+)|const (\w+))/
/** A field of a class, or a variable at the top of a file or function. */
const EMPTY =
  /^( {0,2})(?:export |static |readonly |const |let )*(#?\w+)(?:\??:[^=]*)?\s*=\s*new (?:Map|Set)(?:<.*>)?\(\)/
/** Functions that make what lives on. */
const MAKES = /^(?:create|open|start|make)/

/** Maps and sets that outlive the call in which they are made. */
function longLived({ path, text }: (typeof SOURCES)[number]): readonly string[] {
  let top = { name: '', isClass: false }
  return text.split('\n').flatMap((line) => {
    const [, ofFunction, ofClass, ofConst] = TOP.exec(line) ?? []
    const name = ofFunction ?? ofClass ?? ofConst
    if (name !== undefined) top = { name, isClass: ofClass !== undefined }
    const [, indent, variable] = EMPTY.exec(line) ?? []
    if (variable === undefined) return []
    const isField = top.isClass && !/^\s+(?:const|let) /.test(line)
    return indent === '' || isField || MAKES.test(top.name) ? [`${path} ${variable}`] : []
  })
}

it('every map and set that lives as long as its process has something that bounds it', () => {
  expect(SOURCES.flatMap(longLived).toSorted()).toEqual(Object.keys(BOUNDS).toSorted())
})

it('a bound that is a constant exists in its file', () => {
  const missing = Object.entries(BOUNDS).filter(([key, bound]) => {
    const [constant] = /\b[A-Z]+_[A-Z_]+\b/.exec(bound) ?? []
    const source = SOURCES.find(({ path }) => key.startsWith(`${path} `))
    return constant !== undefined && source?.text.includes(`const ${constant} = `) !== true
  })
  expect(missing).toEqual([])
})

it('every cache has a number of entries, or a size', () => {
  const caches = SOURCES.flatMap(({ path, text }) =>
    [...text.matchAll(/new (?:LRUCache|TtlCache)\b[^(]*\(([^)]*)/g)].map(([, options = '']) => ({ path, options })),
  )
  expect(caches.length).toBeGreaterThan(20)
  expect(caches.filter(({ options }) => !/\bmax(?:Size)?\b|^options$/.test(options))).toEqual([])
})
