import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const ROOT = join(import.meta.dirname, '..')
const SOURCES = globSync('src/**/*.ts', { cwd: ROOT })
  .toSorted()
  .map((path) => ({ path: path.slice('src/'.length), text: readFileSync(join(ROOT, path), 'utf8') }))

/**
 * Every map and set that starts empty and may live as long as its process, `file name`, with what bounds it. Caches are not here:
 * `LRUCache` and `TtlCache` are made with a number of entries.
 */
const BOUNDS: Readonly<Record<string, string>> = {
  'accounts/refresh-token.ts inFlight': 'token requests under way',
  'api/listener/listener.ts #sessions': 'open HTTP/2 sessions',
  'api/listener/listener.ts #sockets': 'open sockets',
  'api/listener/protocol-detection.ts undecided': 'open sockets',
  'api/messages/codec.ts formatters': 'messages of the contract',
  'api/messages/free-form.ts byKey': 'messages of the contract',
  'api/messages/free-form.ts freeFormFieldsByType': 'messages of the contract',
  'api/messages/rules.ts patterns': 'patterns of the contract',
  'api/messages/storable.ts validators': 'messages of the contract',
  'api/pipeline/rate-limiter.ts #current': 'the requests of a window: a new map follows',
  'api/pipeline/rate-limiter.ts #previous': 'the requests of a window',
  'api/pipeline/token-look-ups.ts #byKey': 'requests that wait for a look-up, bounded for each address',
  'api/request-context.ts #held': 'one request',
  'api/services/health.ts #problems': 'services of the contract',
  'api/services/integrated-account.ts NO_CONTEXT_ERRORS': 'nothing is added',
  'api/services/shape.ts conversions': 'messages of the contract',
  'base/fair-queue.ts #lines': 'owners with something that waits',
  'base/fair-slots.ts #held': 'owners with work under way',
  'base/fair-semaphore.ts #held': 'owners with work under way',
  'base/lazy-map.ts #values': 'the keys it was made with',
  'api/pipeline/audit.ts nouns': 'RPCs of the contract',
  'base/long-poll-hub.ts #waiters': 'open requests',
  'base/worker-threads.ts #threads': 'the threads of the limits',
  'base/worker-threads.ts #waitingBytes': 'owners with tasks that wait',
  'call-log/watch.ts #seen': 'entries of the last LATE_MS',
  'call-log/writer.ts #bytesOf': 'environments with entries that wait',
  'call-log/writer.ts #droppedOf': 'COUNTED_OWNERS_MAX',
  'catalog/logos.ts logos': 'files of the catalogue',
  'catalog/unified.ts documents': 'files of the catalogue',
  'cli/run-lines.ts #printed': 'nodes of one run',
  'cli/run-lines.ts #problems': 'problems of one run, which the service bounds',
  'cli/run-screen.ts #rates': 'nodes of one run',
  'daemon-runner/ndjson-store.ts #files': 'resources of one run',
  'daemon-runner/postgres-store.ts #tables': 'resources that the daemon stores',
  'daemon-runner/postgres-store.ts #views': 'resources that the daemon stores',
  'database/health-check.ts #errorCounts': 'reasons of errors',
  'database/prepared-statements.ts #statements': 'STATEMENTS_MAX',
  'deliveries/in-flight.ts #prompt': 'attempts under way',
  'deliveries/in-flight.ts #promptOf': 'queue groups',
  'deliveries/in-flight.ts #shares': 'webhooks with leases',
  'deliveries/in-flight.ts #slow': 'attempts under way',
  'deliveries/in-flight.ts #states': 'webhooks with attempts in the last hour (FORGET_MS)',
  'due-work/leased-work.ts #underWay': 'work on the leases that a process has claimed',
  'egress/connection-slots.ts #origins': 'origins with calls under way',
  'egress/connector.ts inFlight': 'look-ups of names under way',
  'inbound-webhooks/unverified-reads.ts #reading': 'LARGE_MAX',
  'inbound-webhooks/unverified-reads.ts #smallOfAddress': 'small bodies that are read, bounded by SMALL_BYTES_MAX',
  'inbound-webhooks/unverified-reads.ts #waitingOfAddress': 'large bodies that wait, bounded for each installation',
  'expressions/circuit-breaker.ts #entries': 'ENTRIES_MAX',
  'expressions/sandbox-pool.ts #members': 'processes of the pool',
  'expressions/sandbox/dates.ts zones': 'ZONES_MAX',
  'expressions/sandbox/evaluate.ts cache': 'CACHED_CHARACTERS_MAX',
  'secrets/key-ring.ts derived': 'purposes that are named in the sources',
  'proxy/redaction.ts NONE': 'nothing is added',
  'redaction/redactor.ts #secrets': 'the secrets of one call',
  'runs/executor.ts #held': 'runs under way',
  'runs/queue.ts #turns': 'queue groups of deliveries and inbound webhooks',
  'runs/run-watch.ts #watched': 'runs with open streams',
  'schedules/shard-cursors.ts #cursors': 'shards',
  'syncs/run.ts #advancing': 'resources of one run',
  'telemetry/throttled-log.ts #repeated': 'KEYS_MAX, and a minute',
  'telemetry/metrics.ts #integrations': 'INTEGRATIONS_MAX',
  'telemetry/metrics.ts #operations': 'operations of the contract and routes',
  'tenancy/authenticate.ts pending': 'writes under way',
  'tool-servers/record-calls.ts pending': 'writes under way',
  'tool-servers/tool-input.ts numbers': 'the tools of one list',
  'tool-servers/tool-input.ts taken': 'the tools of one list',
  'webhook-subscriptions/activity.ts #collected': 'COLLECTED_MAX',
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
