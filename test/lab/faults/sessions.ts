/**
 * Settings of the role and of the database, and variables of the machine, that change what a session of PostgreSQL does: under
 * each of them `patchbay start` begins, answers simultaneous calls, rejects an expired token, fires ticks and completes runs, on
 * a server of `DATABASE_URL` and, for the variables, on the embedded one too. What stops writes is reported in one line instead.
 */

import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Database, execute, query } from '../../../src/foundation/database/index.ts'
import { generateKeyRingText } from '../../../src/foundation/secrets/index.ts'
import { createDatabase } from '../../support/database.ts'
import { startDurableDatabase } from '../../support/durable-database.ts'
import { type RunningProduct, removeDataDir, startProduct, temporaryDataDir } from '../../support/product.ts'
import { seedChain } from '../../support/seed.ts'
import { reportAtLeast, reportAtMost } from '../bench/support/report.ts'
import { startPageEndpoints } from './support/page-endpoints.ts'

/** Each is a setting that a role or a database may have, and that is no default. */
const SETTINGS: readonly (readonly [string, string])[] = [
  ['DateStyle', 'German'],
  ['row_security', 'off'],
  ['synchronous_commit', 'off'],
  ['DateStyle', 'SQL, DMY'],
  ['DateStyle', 'Postgres'],
  ['IntervalStyle', 'sql_standard'],
  ['TimeZone', 'Asia/Kolkata'],
  ['bytea_output', 'escape'],
  ['extra_float_digits', '0'],
  ['client_encoding', 'LATIN1'],
  ['standard_conforming_strings', 'off'],
  ['array_nulls', 'off'],
  ['transform_null_equals', 'on'],
  ['default_transaction_isolation', 'serializable'],
  ['default_transaction_isolation', 'repeatable read'],
  ['default_transaction_deferrable', 'on'],
  ['search_path', ''],
  ['search_path', 'nowhere'],
  ['statement_timeout', '20ms'],
  ['lock_timeout', '1ms'],
  ['idle_in_transaction_session_timeout', '5ms'],
  ['idle_session_timeout', '500ms'],
  ['transaction_timeout', '20ms'],
]
const PLACES = ['role', 'database', 'environment'] as const
/** Variables that the driver or the tools of the embedded server would take. */
const VARIABLES: readonly NodeJS.ProcessEnv[] = [
  { PGSSLMODE: 'require' },
  { PGSSLMODE: 'nonsense', PGSSLNEGOTIATION: 'nonsense' },
  { PGHOST: 'nowhere.invalid', PGPORT: '1', PGUSER: 'unknown', PGDATABASE: 'nowhere', PGPASSWORD: 'x' },
  {
    PGOPTIONS: '-c nonsense=1',
    PGAPPNAME: 'other',
    PGCLIENTENCODING: 'LATIN1',
    PGTZ: 'Asia/Kolkata',
    PGDATESTYLE: 'German',
  },
  { PGDATA: '/nowhere', PGSERVICE: 'nowhere', PGPASSFILE: '/nowhere', PGCONNECT_TIMEOUT: '1' },
]
const CREATES = 12
const WITHIN_MS = 60_000
const POLL_MS = 100
/** Longer than a busy machine needs to create the token. */
const EXPIRES_MS = 8_000

await using server = await startDurableDatabase()
await using endpoints = await startPageEndpoints({ records: 150, delayMs: [0, 0], acceptMs: [0, 0] })
let failures = 0
let cases = 0

// Side by side, as most of the time of each is waiting.
for (const [name, value] of SETTINGS)
  await Promise.all(
    PLACES.map((place) => tryCase(`${name} = '${value}' of the ${place}`, (url) => begin(url, place, name, value))),
  )
for (const variables of VARIABLES)
  await Promise.all([
    tryCase(JSON.stringify(variables), async () => variables),
    tryCase(`${JSON.stringify(variables)}, embedded`, async () => ({ ...variables, DATABASE_URL: '' })),
  ])
await Promise.all([tryReadOnly('role'), tryReadOnly('database')])
reportAtLeast('sessions/cases', cases, 'starts', 70)
reportAtMost('sessions/failures', failures, 'failures', 0)

function fail(problem: string): void {
  failures++
  process.stderr.write(`${problem}\n`)
}

async function newDatabase(): Promise<string> {
  return await createDatabase(server.url, `s_${randomBytes(6).toString('hex')}`)
}

/** Sets it in that place. @returns variables of the process */
async function begin(
  url: string,
  place: (typeof PLACES)[number],
  name: string,
  value: string,
): Promise<NodeJS.ProcessEnv> {
  if (place === 'environment') return { PGOPTIONS: `-c ${name}=${value.replaceAll(' ', '\\ ')}` }
  await using database = new Database({ target: { kind: 'url', url }, poolMax: 1 })
  const [{ of } = { of: '' }] = await query<{ of: string }>(
    database.pool,
    `select ${place === 'role' ? `format('role %I in database %I', current_user, current_database())` : `format('database %I', current_database())`} as of`,
  )
  await execute(database.pool, `alter ${of} set ${name} = '${value}'`)
  return {}
}

async function tryCase(name: string, prepare: (url: string) => Promise<NodeJS.ProcessEnv>): Promise<void> {
  cases++
  const url = await newDatabase()
  const dataDir = temporaryDataDir()
  try {
    const product = await startProduct({ dataDir, environment: { ...settingsOf(url), ...(await prepare(url)) } })
    const found = await problemsOf(product).catch((error: unknown) => [String(error)])
    for (const problem of found) fail(`${name}: ${problem}`)
    if ((await product.stop()) !== 0) fail(`${name}: did not end with 0`)
  } catch (error) {
    fail(`${name}: ${error}`)
  }
  removeDataDir(dataDir)
}

function settingsOf(url: string): NodeJS.ProcessEnv {
  return {
    DATABASE_URL: url,
    PATCHBAY_ENCRYPTION_KEYS: generateKeyRingText('sessions'),
    PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8',
    PATCHBAY_RATE_LIMIT: '0',
    PATCHBAY_RATE_LIMIT_ADDRESS: '0',
  }
}

async function problemsOf(product: RunningProduct): Promise<readonly string[]> {
  const { url, bootstrap } = product
  const { team_token: teamToken, environment_token: environmentToken, environment_id: environmentId } = bootstrap
  const expiresAt = new Date(Date.now() + EXPIRES_MS)
  const expiring = await post(`${url}/api-token`, teamToken, {
    kind: 'environment',
    name: 'expiring',
    environment_id: environmentId,
    preset: 'read',
    expires_at: expiresAt.toISOString(),
  })
  const created = await Promise.all(
    Array.from({ length: CREATES }, (_, index) =>
      post(`${url}/webhook`, environmentToken, { target_url: `http://127.0.0.1:9/${index}`, event_types: ['*'] }),
    ),
  )
  const problems = [expiring, ...created].flatMap(({ status, body }) =>
    status === 200 ? [] : [`a create was answered ${status} ${JSON.stringify(body)}`],
  )
  const { upstreamUrl, receiverUrl: webhookUrl } = endpoints
  const chain = { url, teamToken, environmentToken, environmentId, upstreamUrl, webhookUrl }
  await seedChain({ ...chain, cronExpression: '* * * * * *' })
  const get = async (path: string, token: string) =>
    await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${token}` } })
  const isCompleted = async () =>
    (await (await get('/sync-job-run?status=completed', environmentToken)).text()).includes('"finished_at"')
  if (!(await until(isCompleted))) problems.push('no run of a tick is completed')
  await sleep(Math.max(0, expiresAt.getTime() + 1 - Date.now()))
  const { status } = await get('/webhook', String(expiring.body.token))
  if (status !== 401) problems.push(`an expired token is answered ${status}`)
  const health = await fetch(`${url}/healthz`)
  if (health.status !== 200) problems.push(`health is ${await health.text()}`)
  const errors = product
    .output()
    .split('\n')
    .filter((line) => line.includes('"level":"error"'))
  return [...problems, ...errors]
}

async function post(url: string, token: string, body: object) {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
}

async function until(isTrue: () => Promise<boolean>): Promise<boolean> {
  for (const end = Date.now() + WITHIN_MS; Date.now() < end; await sleep(POLL_MS)) if (await isTrue()) return true
  return false
}

/** What an operator or a provider sets so that nothing is written is not overruled. */
async function tryReadOnly(place: 'role' | 'database'): Promise<void> {
  cases++
  const url = await newDatabase()
  const dataDir = temporaryDataDir()
  await begin(url, place, 'default_transaction_read_only', 'on')
  const outcome = await startProduct({ dataDir, environment: settingsOf(url) }).then(
    async (product) => `started: ${await product.stop()}`,
    String,
  )
  const isReported = /ended with 1:\npatchbay: the database takes no writes: .*default_transaction_read_only\n?$/.test(
    outcome,
  )
  if (!isReported) fail(`read-only of the ${place}: ${outcome}`)
  removeDataDir(dataDir)
}
