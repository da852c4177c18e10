import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { execute, queryOne } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { findIntegratedAccount } from '../../../../src/platform/accounts/index.ts'
import { accountsFixture } from './fixture.ts'

const { database, own, connect } = await accountsFixture()
const MIGRATION = join(import.meta.dirname, '../../../../src/foundation/database/migrations/0005-accounts.sql')

/** What a definition and an override offered, the method of an account that was stored before, and the key it is given. */
const ROWS: readonly (readonly [string, JsonObject, JsonObject, string, string | null])[] = [
  ['a key', { api_key: {} }, {}, 'api_key', null],
  ['a consent beside a JWT', { oauth2: {}, jwt: {} }, {}, 'oauth2', null],
  ['vendor_oauth of a map', { vendor_oauth: {}, api_key: {} }, {}, 'vendor_oauth', 'vendor_oauth'],
  ['vendor_oauth alone', { format: 'vendor_oauth', config: {} }, {}, 'vendor_oauth', 'vendor_oauth'],
  ['OAuth 1 of a map', { oauth1: {}, api_key: {} }, {}, 'vendor_oauth', 'oauth1'],
  ['OAuth 1 alone', { format: 'oauth1', config: {} }, {}, 'vendor_oauth', 'oauth1'],
  ['a JWT of a map', { api_key: {}, jwt: {} }, {}, 'vendor_oauth', 'jwt'],
  ['a JWT alone', { format: 'jwt', config: {} }, {}, 'vendor_oauth', 'jwt'],
  ['a JWT that the override adds', { api_key: {} }, { jwt: {} }, 'vendor_oauth', 'jwt'],
  ['a JWT that the override alone has', {}, { format: 'jwt', config: {} }, 'vendor_oauth', 'jwt'],
  ['a method that the definition no longer has', { api_key: {} }, {}, 'vendor_oauth', null],
]

it('accounts of the version before are given the key of their credential', async () => {
  const { pool } = database
  const ids: string[] = []
  for (const [, credentials, override, method] of ROWS) {
    const { id, environmentIntegrationId } = await connect()
    const row = { id, environmentIntegrationId, method }
    await execute(pool, 'update integrated_account set authentication_method = :method where id = :id', row)
    await execute(
      pool,
      `with changed as (
         update environment_integration set override = jsonb_build_object('credentials', :override::jsonb)
         where id = :environmentIntegrationId returning integration_id)
       update integration set config = jsonb_build_object('credentials', :credentials::jsonb)
       from changed where integration.id = changed.integration_id`,
      { environmentIntegrationId, override: JSON.stringify(override), credentials: JSON.stringify(credentials) },
    )
    ids.push(id)
  }
  for (const table of ['integrated_account', 'link_session'])
    await execute(pool, `alter table ${table} drop column credential`)
  await pool.raw(readFileSync(MIGRATION, 'utf8'))

  const found = await Promise.all(
    ids.map((id) =>
      queryOne<{ readonly credential: string | null }>(
        pool,
        'select credential from integrated_account where id = :id',
        { id },
      ),
    ),
  )
  expect(ROWS.map(([name], at) => [name, found[at]?.credential])).toEqual(ROWS.map(([name, , , , key]) => [name, key]))
  // Null is read as the method.
  const first = await findIntegratedAccount(pool, own.environmentId, ids[0] ?? '')
  expect(first).toMatchObject({ authenticationMethod: 'api_key', credential: 'api_key' })
})
