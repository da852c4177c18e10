import { describe, expect, it } from 'vitest'
import { compileTemplate } from '../../../../src/engine/expressions/index.ts'
import { renderText } from '../../../../src/engine/expressions/template.ts'
import { createRedaction } from '../../../../src/engine/proxy/index.ts'
import { newId } from '../../../../src/foundation/base/index.ts'
import type { Db } from '../../../../src/foundation/database/index.ts'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { updateIntegratedAccount } from '../../../../src/platform/accounts/account.ts'
import {
  findAccountsByContext,
  updateContextFromWebhook,
  updateCredentials,
} from '../../../../src/platform/accounts/index.ts'
import { resolveAccount } from '../../../../src/platform/accounts/resolved-account.ts'
import { CONTEXT_KEYS_MAX } from '../../../../src/platform/accounts/sql/webhook-context.ts'
import { CONTEXT_LENGTH_MAX } from '../../../../src/platform/accounts/stored-context.ts'
import { accountSecretRef } from '../../../../src/platform/accounts/stored-credentials.ts'
import { createTenant } from '../../../support/tenant.ts'
import { accountsFixture, CREDENTIALS } from './fixture.ts'

const fixture = await accountsFixture()
const { database, tx, own, other, secrets, accountDeps, addInstallation, connect, eventsOf } = fixture

async function apply(
  id: string,
  values: JsonObject,
  secretKeys: readonly string[] = [],
  inboundEventId = newId(),
): Promise<boolean> {
  const ref = { environmentId: own.environmentId, id }
  const change = { values, secretKeys, inboundEventId }
  return await database.transaction((each) => updateContextFromWebhook(accountDeps, each, ref, change))
}

async function read(id: string) {
  const account = await accountDeps.reader.read({ environmentId: own.environmentId, id })
  if (account === undefined) throw new Error('no account')
  const definition = await accountDeps.definitions.getVersion(tx, account.account)
  return resolveAccount(
    account.account,
    definition,
    await secrets.decryptAll(tx, accountSecretRef(account.account), account.secrets),
  )
}

describe('context keys from webhooks', () => {
  it('are merged into the context, with an event for each change and none for a repetition', async () => {
    const { id } = await connect({ context: { plan: 'gold', seats: 3 } })
    expect(await apply(id, { plan: 'silver', seats: null, installation: { id: 7 } })).toBe(true)
    expect(await apply(id, { plan: 'silver', installation: { id: 7 }, seats: null })).toBe(false)
    expect((await read(id)).account.context).toMatchObject({ plan: 'silver', installation: { id: 7 } })
    expect((await read(id)).account.context).not.toHaveProperty('seats')
    expect((await eventsOf(id)).map(({ name }) => name)).toEqual(['created', 'active', 'updated'])
  })

  it('are kept encrypted when they are secret, shown nowhere, masked in texts and kept by a reconnection', async () => {
    const { id } = await connect()
    expect(await apply(id, { hook_secret: 's3cret-of-the-hook', plan: 'gold' }, ['hook_secret'])).toBe(true)
    expect(await apply(id, { hook_secret: 's3cret-of-the-hook' }, ['hook_secret'])).toBe(false)
    expect(JSON.stringify(await eventsOf(id))).not.toContain('s3cret-of-the-hook')
    await database.transaction((each) => updateCredentials(accountDeps, each, own, { id, credentials: CREDENTIALS }))
    const { plan, access } = await read(id)
    expect(access.context).not.toHaveProperty('hook_secret')
    const scope = { account: access, call: {} }
    expect(renderText(compileTemplate('{{connection.webhook.hook_secret}}'), scope)).toBe('s3cret-of-the-hook')
    expect(createRedaction(plan, access).redactText('it is s3cret-of-the-hook')).not.toContain('s3cret')
    expect(await apply(id, { hook_secret: null }, ['hook_secret'])).toBe(true)
    expect((await read(id)).access.credentials).not.toHaveProperty('webhook')
  })

  it('are not overwritten by a request that was received earlier', async () => {
    const { id } = await connect()
    const [first, second] = [newId(), newId()]
    expect(await apply(id, { plan: 'gold', hook_secret: 'new-secret' }, ['hook_secret'], second)).toBe(true)
    expect(await apply(id, { plan: 'silver', hook_secret: 'old-secret', seats: 3 }, ['hook_secret'], first)).toBe(true)
    const { access } = await read(id)
    expect(access.context).toMatchObject({ plan: 'gold', seats: 3 })
    expect(access.connection?.webhook).toEqual({ hook_secret: 'new-secret' })
    expect(await apply(id, { plan: null }, [], second)).toBe(true)
    expect(await apply(id, { plan: 'silver' }, [], first)).toBe(false)
    expect((await read(id)).access.context).not.toHaveProperty('plan')
  })

  it.each([
    ['a name that the runtime owns', { oauth: {} }, 'CONTEXT_KEY_RESERVED'],
    ['the name of a credential', { api_key: 'x' }, 'CONTEXT_KEY_RESERVED'],
    ['a long key', { ['k'.repeat(513)]: 1 }, 'INVALID_FIELD'],
    ['too much', { much: 'x'.repeat(70_000) }, 'INVALID_FIELD'],
  ])('are rejected with %s', async (_, values, reason) => {
    const { id } = await connect()
    await expect(apply(id, values)).rejects.toMatchObject({ reason })
  })
})

describe('what an account holds', () => {
  const LONG = 'x'.repeat(60_000)
  const fill = async (id: string, secretKeys: (key: string) => readonly string[]) => {
    for (let n = 0; n < 40; n++) await apply(id, { [`k${n}`]: LONG }, secretKeys(`k${n}`))
  }

  it('is bounded, by whomever it is written: a further key is rejected, removing one is not', async () => {
    const { id } = await connect()
    await expect(fill(id, () => [])).rejects.toMatchObject({
      reason: 'INVALID_FIELD',
      violations: [{ field: 'context' }],
    })
    const { context } = (await read(id)).access
    expect(JSON.stringify(context).length).toBeLessThan(CONTEXT_LENGTH_MAX)
    const patch = { id, context: { more: LONG.slice(0, 59_000), evenMore: LONG } }
    const updating = database.transaction((each) => updateIntegratedAccount(accountDeps, each, own, patch))
    await expect(updating).rejects.toMatchObject({ violations: [{ field: 'context', rule: 'context.size' }] })
    expect(await apply(id, { k0: null, k1: null })).toBe(true)
    expect(await apply(id, { more: LONG })).toBe(true)
    const whole = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`k${n}`, LONG]))
    await expect(connect({ context: whole })).rejects.toMatchObject({ violations: [{ field: 'context' }] })
  })

  it('of secrets is bounded too', async () => {
    const { id } = await connect()
    await expect(fill(id, (key) => [key])).rejects.toMatchObject({ reason: 'INVALID_FIELD' })
    expect(await apply(id, { k0: null }, ['k0'])).toBe(true)
  })

  it('of the keys that webhooks have set is the last request of the newest', async () => {
    const { id } = await connect()
    const keys = (from: number) => Object.fromEntries(Array.from({ length: 700 }, (_, n) => [`key-${from + n}`, null]))
    await apply(id, keys(0))
    await apply(id, keys(700))
    const known = await query<{ key: string }>(
      tx,
      'select key from webhook_context_key where integrated_account_id = :id',
      { id },
    )
    expect(known).toHaveLength(CONTEXT_KEYS_MAX)
    expect(known.filter(({ key }) => Number(key.slice(4)) >= 700)).toHaveLength(700)
  })
})

describe('looking accounts up by their context', () => {
  it('finds a text, a number, and either in a list, in the installation alone', async () => {
    const installation = await addInstallation()
    const environmentIntegrationId = installation.id
    const text = await connect({ environmentIntegrationId, context: { team: 'T1' } })
    const number = await connect({ environmentIntegrationId, context: { team: 12_345 }, tenantId: 'globex' })
    const list = await connect({ environmentIntegrationId, context: { team: ['T1', 99], pages: [1] } })
    await connect({ environmentIntegrationId, context: { other: 'T1', team: { id: 'T1' }, flag: true } })
    await connect({ context: { team: 'T1' } })
    await connect({ context: { team: 'T1' } }, other)
    const found = await findAccountsByContext(
      tx,
      { environmentId: own.environmentId, environmentIntegrationId },
      'team',
      ['T1', '12345', '99', 'true', ''],
      10,
    )
    expect(found).toEqual([
      { value: '12345', id: number.id, tenantId: 'globex', isConfirmed: false },
      { value: '99', id: list.id, tenantId: 'acme', isConfirmed: false },
      { value: 'T1', id: text.id, tenantId: 'acme', isConfirmed: false },
      { value: 'T1', id: list.id, tenantId: 'acme', isConfirmed: false },
    ])
  })

  it('reads a handful of rows among 20 000 accounts', async () => {
    const tenant = await createTenant(database, 1)
    await execute(
      tx,
      `insert into integrated_account (environment_id, id, environment_integration_id, tenant_id, authentication_method,
         context, status, is_sandbox, region, object_store_context_fields)
       select :environmentId, uuidv7(), :installationId, 'acme', 'api_key',
         jsonb_build_object('team', 'T' || n, 'plan', 'gold', 'pages', jsonb_build_array(n, -n)), 'active', false, 'wnam', '{}'
       from generate_series(1, 20000) n`,
      { environmentId: tenant.environmentId, installationId: tenant.installationId },
    )
    await execute(tx, 'analyze integrated_account')
    const installation = { environmentId: tenant.environmentId, environmentIntegrationId: tenant.installationId }
    const values = ['T5', 'T17777', 'T99999999']
    const lookUp = (each: Db) => findAccountsByContext(each, installation, 'team', values, 1_000)
    const rows = await database.transaction(async (each) => {
      // Eight times, so that the prepared statement's generic plan is used at the end.
      for (let times = 0; times < 8; times++) expect(await lookUp(each)).toHaveLength(2)
      const before = await rowsRead(each)
      await lookUp(each)
      return (await rowsRead(each)) - before
    })
    expect(rows).toBeGreaterThan(0)
    expect(rows).toBeLessThan(20)
  })
})

/** Rows of the table that the transaction has read so far. */
async function rowsRead(each: Db): Promise<number> {
  const [row] = await query<{ readonly rows: number }>(
    each,
    `select (seq_tup_read + idx_tup_fetch)::float8 as rows from pg_stat_xact_user_tables where relname = 'integrated_account'`,
  )
  return Number(row?.rows)
}
