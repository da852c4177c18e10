import { readFileSync } from 'node:fs'
import { getOption, hasOption } from '@bufbuild/protobuf'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { http } from '../../gen/google/api/annotations_pb.ts'
import { newId, PollLoop, systemClock } from '../../src/foundation/base/index.ts'
import { findPostgresPackage } from '../../src/foundation/database/embedded-placement.ts'
import { Database, logLoopErrors, query } from '../../src/foundation/database/index.ts'
import { silentLogger } from '../../src/foundation/telemetry/logger.ts'
import { bootstrap } from '../../src/platform/tenancy/index.ts'
import { testDatabase } from '../support/database.ts'
import { FaultyPostgres } from '../support/faulty-postgres.ts'
import { startHealthApp } from '../support/health-app.ts'
import { OPERATIONS } from '../support/operations.ts'
import { EXAMPLE_CONFIG, freshName } from '../support/seeded-tenant.ts'

const real = await testDatabase()
const first = await bootstrap(real.database)
const faulty = await FaultyPostgres.start(real.url)
afterAll(() => faulty[Symbol.asyncDispose]())
const app = await startHealthApp({ kind: 'url', url: faulty.urlOf(real.url) })
afterEach(async () => {
  faulty.fault = undefined
  app.elapse(10_000)
  await app.watch.check()
  expect(await app.healthz()).toEqual({ status: 'SERVING' })
})

/** What an operator's environment brings about, by SQLSTATE: classes, or single codes of a class that has others. */
const CONDITIONS: readonly (readonly [codes: RegExp, reason: string])[] = [
  [/^(08|57)/, 'DATABASE_UNAVAILABLE'],
  [/^25P0[34]/, 'DATABASE_UNAVAILABLE'],
  [/^53100/, 'DATABASE_DISK_FULL'],
  [/^53/, 'DATABASE_OVERLOADED'],
  [/^25006/, 'DATABASE_READ_ONLY'],
  [/^(28|3D|F0)|^42501/, 'DATABASE_ACCESS_DENIED'],
  [/^58|^XX00[12]/, 'DATABASE_DAMAGED'],
]
/** A statement that was cancelled because it took too long, by its own timeout. */
const TIMEOUT = '57014'

/** Every error that PostgreSQL knows, by its own list, and that is such a condition. */
const CODES = [
  ...readFileSync(`${findPostgresPackage().nativeDir}/share/postgresql/errcodes.txt`, 'utf8').matchAll(
    /^(\w{5})\s+E\s+\w+\s+(\w+)/gm,
  ),
]
  .map(([, code = '', name = '']) => ({ code, name, reason: CONDITIONS.find(([codes]) => codes.test(code))?.[1] }))
  .flatMap(({ reason, ...each }) => (reason === undefined || each.code === TIMEOUT ? [] : [{ ...each, reason }]))

const CREDENTIALS = { authorization: `Bearer ${first?.teamToken}`, 'patchbay-environment': first?.environmentId ?? '' }

async function call(verb: string, path: string, body?: object) {
  const answer = await fetch(`${app.url}${path}`, {
    method: verb,
    headers: { ...CREDENTIALS, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const { error } = (await answer.json()) as {
    error?: { message: string; details: { reason?: string; metadata?: object; retry_delay?: string }[] }
  }
  return { status: answer.status, retryAfter: Number(answer.headers.get('retry-after')), error }
}

describe('a condition of the database', () => {
  it('is looked for in the whole list of PostgreSQL', () => {
    expect(CODES.length).toBeGreaterThan(30)
  })

  it.each(CODES)('$code $name is $reason for a read, a write, /healthz and a loop', async ({ code, reason }) => {
    faulty.fault = { sqlState: code, except: /api_token/ }
    const before = app.log.length
    const read = await call('GET', '/integration')
    const write = await call('POST', '/integration', { name: freshName('integration'), config: EXAMPLE_CONFIG })
    for (const { status, retryAfter, error } of [read, write]) {
      expect([status, error?.details[0]?.reason]).toEqual([503, reason])
      expect(error?.details[0]?.metadata).toEqual({ sqlstate: code })
      expect(error?.details[1]?.retry_delay).toBe(`${retryAfter}s`)
    }
    await app.watch.check()
    await app.watch.check()
    expect(await app.healthz()).toEqual({ status: 'NOT_SERVING', reason, message: write.error?.message })
    expect(await app.metric(`patchbay_health_problem{reason="${reason}"}`)).toBe(1)
    expect(await app.metric(`patchbay_database_errors_total{reason="${reason}"}`)).toBeGreaterThan(1)
    expect(app.log.slice(before)).toEqual([[{ reason }, write.error?.message]])
    expect(await failedRound()).toEqual({ loop: 'round', reason })
  })
})

it.each(CODES)(
  'a statement that is sent once another failed of $code says so too, though the connection ends',
  async ({ code }) => {
    await using database = new Database({ target: { kind: 'url', url: faulty.urlOf(real.url) } })
    await query(database.pool, 'select 1')
    faulty.fault = { sqlState: code }
    const failed = () => expect(query(database.pool, 'select 1')).rejects.toMatchObject({ code })
    await failed()
    await failed()
  },
)

/** What is logged of a failed round of a loop; at level debug, since the health check has said it. */
async function failedRound(): Promise<Readonly<Record<string, unknown>>> {
  const logged = Promise.withResolvers<Readonly<Record<string, unknown>>>()
  const onError = logLoopErrors({
    ...silentLogger,
    debug: (fields) => logged.resolve(fields),
    error: (fields) => logged.reject(new Error(JSON.stringify(fields))),
  })
  const runOnce = async () => (await query(app.database.pool, 'select 1')).length === 0
  await using loop = new PollLoop(
    { clock: systemClock, random: Math.random, onError },
    { name: 'round', intervalMs: 1_000, runOnce },
  )
  loop.start()
  return await logged.promise
}

/** Every REST address without a body, whose statements begin at once. */
const ADDRESSES = OPERATIONS.filter((method) => hasOption(method, http)).flatMap((method) => {
  const { pattern, body } = getOption(method, http)
  const isTried = pattern.case !== undefined && pattern.case !== 'custom' && body === ''
  return isTried ? [{ verb: pattern.case.toUpperCase(), pattern: String(pattern.value) }] : []
})

describe('every operation', () => {
  it.each(CONDITIONS.map(([, reason]) => CODES.find((each) => each.reason === reason)))(
    'answers 503 under $reason, and never 500',
    async (found) => {
      faulty.fault = { sqlState: found?.code ?? '', except: /from api_token/ }
      const answers = await Promise.all(
        ADDRESSES.map(async ({ verb, pattern }) => {
          const { status, error } = await call(
            verb,
            pattern.replace(/\{\w+\}/g, () => newId()),
          )
          return `${verb} ${pattern} ${status} ${error?.details[0]?.reason}`
        }),
      )
      const expected = ADDRESSES.map(({ verb, pattern }) => `${verb} ${pattern} 503 ${found?.reason}`)
      expect(answers).toEqual(expected)
    },
  )
})
