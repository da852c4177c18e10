import { describe, expect, it, vi } from 'vitest'
import { SUPERUSER } from '../../../../src/foundation/database/embedded-identity.ts'
import { Database, execute, query, queryOne, startEmbeddedServer } from '../../../../src/foundation/database/index.ts'
import { parseTimestamp } from '../../../../src/foundation/database/parse-timestamp.ts'
import { testDatabase } from '../../../support/database.ts'
import { preparedDataDir } from '../../../support/prepared-data-dir.ts'
import { removeDataDir } from '../../../support/product.ts'
import { startPooler } from '../../cli/daemon/support/pooler.ts'

const { database: admin, target, url } = await testDatabase()
const names = await queryOne<{ database: string; role: string }>(
  admin.pool,
  'select current_database() as database, current_user as role',
)
const PLACES = [`database ${names?.database}`, `role ${names?.role} in database ${names?.database}`]
const SETTINGS = {
  datestyle: 'German',
  intervalstyle: 'sql_standard',
  timezone: 'Asia/Kolkata',
  bytea_output: 'escape',
  extra_float_digits: '0',
  client_encoding: 'LATIN1',
  standard_conforming_strings: 'off',
  array_nulls: 'off',
  transform_null_equals: 'on',
  default_transaction_isolation: 'serializable',
  search_path: 'nowhere',
  row_security: 'off',
  synchronous_commit: 'off',
  statement_timeout: '100min',
  lock_timeout: '1ms',
  idle_in_transaction_session_timeout: '1ms',
  idle_session_timeout: '10s',
}

const SESSION_SQL = `select name, setting from pg_settings where name ilike any(:names) order by name`
const PROBE = `select '2026-01-31 08:00:00.123+00'::timestamptz as time, '\\xff00'::bytea as bytes, '–' as text,
  0.1::float8 + 0.2::float8 as number, array_length('{NULL}'::text[], 1) as "nulls", 'a\\b' as literal,
  (select count(*) from environment) as found`

async function readSession() {
  await using database = new Database({ target, poolMax: 1 })
  const settings = await query(database.pool, SESSION_SQL, { names: Object.keys(SETTINGS) })
  return [settings, await query(database.pool, PROBE)]
}

describe('a connection is what the product needs', () => {
  const expected = readSession()

  it.each(PLACES)('whatever is set for the %s', async (place) => {
    for (const [name, value] of Object.entries(SETTINGS))
      await execute(admin.pool, `alter ${place} set ${name} = '${value}'`)
    const found = await readSession()
    await execute(admin.pool, `alter ${place} reset all`)
    expect(found).toEqual(await expected)
  })

  it('whatever the machine’s variables for other programs are', async () => {
    vi.stubEnv('PGOPTIONS', '-c datestyle=German -c search_path=nowhere')
    for (const name of ['PGSSLMODE', 'PGHOST', 'PGPORT', 'PGUSER', 'PGPASSWORD', 'PGDATABASE', 'PGSSLNEGOTIATION'])
      vi.stubEnv(name, 'direct')
    expect(await readSession()).toEqual(await expected)
  })

  it('through a pooler that takes few parameters of a startup', async () => {
    await using pooler = await startPooler(url)
    await using database = new Database({ target: { kind: 'url', url: pooler.address }, poolMax: 1 })
    expect(await query(database.pool, PROBE)).toEqual((await expected)[1])
  })

  it('in the schema that its address names', async () => {
    await execute(admin.pool, 'create schema chosen')
    const options = encodeURIComponent('-c search_path=chosen')
    await using database = new Database({ target: { kind: 'url', url: `${url}&options=${options}` }, poolMax: 1 })
    expect(await queryOne(database.pool, 'select current_schema() as schema')).toEqual({ schema: 'chosen' })
  })
})

it('the embedded server hears nothing of the machine’s variables', async () => {
  const dataDir = preparedDataDir()
  for (const [name, value] of Object.entries({ PGSSLMODE: 'require', PGOPTIONS: '-c nothing=1', PGPORT: '1' }))
    vi.stubEnv(name, value)
  const server = await startEmbeddedServer({ dataDir })
  const { host, port } = server
  const socket = { kind: 'socket', host, port, user: SUPERUSER, database: 'postgres' } as const
  {
    await using database = new Database({ target: socket, poolMax: 1 })
    expect(await queryOne(database.pool, 'select 1 as one')).toEqual({ one: 1 })
  }
  await server.stop()
  removeDataDir(dataDir)
})

describe('a time that cannot be read', () => {
  it.each(['31.01.2026 08:00:00 UTC', '01/31/2026 08:00:00 UTC', 'Sat Jan 31 08:00:00 2026 UTC', ''])(
    'is an error and no absent time: %s',
    (text) => {
      expect(() => parseTimestamp(text)).toThrow(/cannot be read: DateStyle/)
    },
  )

  it('fails the statement that reads it', async () => {
    await using database = new Database({ target, poolMax: 1 })
    await execute(database.pool, `set datestyle = 'German'`)
    await expect(query(database.pool, 'select now()')).rejects.toThrow(/DateStyle/)
    await expect(database.pool.select(database.pool.fn.now())).rejects.toThrow(/DateStyle/)
  })
})
