import { describe, expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { deleteAccountsByInstallation } from '../../../../src/platform/accounts/account.ts'
import { accountEventPayload } from '../../../../src/platform/accounts/account-events.ts'
import {
  type AccountFilter,
  type AccountStatus,
  deleteIntegratedAccount,
  findIntegratedAccount,
  getIntegratedAccount,
  listIntegratedAccountHistory,
  listIntegratedAccounts,
  loadAccountForCall,
  type ResolvedAccount,
} from '../../../../src/platform/accounts/index.ts'
import type { LoadPurpose } from '../../../../src/platform/accounts/load-account.ts'
import { changeAccountStatus } from '../../../../src/platform/accounts/status.ts'
import { updateEnvironmentIntegration } from '../../../../src/platform/integrations/index.ts'
import type { EnvironmentScope } from '../../../../src/platform/tenancy/index.ts'
import { contendForRows } from '../../../support/row-contention.ts'
import { seedWebhook } from '../../../support/seed-rows.ts'
import { FIRST_PAGE } from '../integrations/fixture.ts'
import { accountsFixture, FIELDS_CONFIG, triggersOfTests } from './fixture.ts'

const fixture = await accountsFixture()
const { database, tx, secrets, own, other, deps, accountDeps, addInstallation, connect, update, newScope } = fixture
const { addIntegration, install, eventsOf } = fixture
const removalDeps = { ...accountDeps, triggers: triggersOfTests }

const get = (id: string, scope: EnvironmentScope = own) => getIntegratedAccount(accountDeps, tx, scope, id)
const secretsOf = (id: string) =>
  secrets.get(tx, { ownerId: own.environmentId, subjectType: 'integrated_account', subjectId: id })

describe('getIntegratedAccount', () => {
  it('returns what creating it returned', async () => {
    const account = await connect()
    expect(await get(account.id)).toEqual(account)
  })

  it('answers the same for one of another environment and for an unknown one', async () => {
    const { id } = await connect()
    for (const each of [id, newId()])
      await expect(get(each, other)).rejects.toMatchObject({
        reason: 'RESOURCE_NOT_FOUND',
        resource: { type: 'integrated_account', id: each },
      })
  })
})

describe('listIntegratedAccounts', () => {
  it('filters by each field and by all at once', async () => {
    const scope = await newScope()
    const { id: environmentIntegrationId } = await addInstallation(undefined, scope)
    const one = await connect({ environmentIntegrationId, tenantId: 'one', region: 'eu' }, scope)
    const two = await connect({ tenantId: 'two', isSandbox: true }, scope)
    await database.transaction((tx) => changeAccountStatus(tx, two, 'refresh_failed'))
    const ids = async (filter: AccountFilter) =>
      (await listIntegratedAccounts(tx, scope, filter, { ...FIRST_PAGE, view: 'basic' })).map(({ id }) => id)
    expect((await ids({})).toSorted()).toEqual([one.id, two.id].toSorted())
    for (const filter of [
      { tenantId: 'one' },
      { status: 'active' },
      { environmentIntegrationId },
      { integrationName: one.integration.name },
      { isSandbox: false },
      { region: 'eu' },
    ] as const)
      expect(await ids(filter), JSON.stringify(filter)).toEqual([one.id])
    expect(
      await ids({ tenantId: 'one', status: 'active', environmentIntegrationId, isSandbox: false, region: 'eu' }),
    ).toEqual([one.id])
    expect(await ids({ tenantId: 'one', isSandbox: true })).toEqual([])
    expect(await ids({ environmentIntegrationId, integrationName: two.integration.name })).toEqual([])
    expect(await ids({ integrationName: 'not-installed' })).toEqual([])
  })

  it('finds the accounts of every installed integration of a name, whichever team shares it', async () => {
    const scope = await newScope()
    const owners = [scope, await newScope()]
    const accounts = []
    for (const owner of owners) {
      const { id: integrationId } = await addIntegration(
        { name: 'shared', sharing: 'allow', config: FIELDS_CONFIG },
        owner,
      )
      const { id } = await install({ integrationId }, scope)
      accounts.push(await connect({ environmentIntegrationId: id }, scope))
    }
    const filter = { integrationName: 'shared' }
    const found = await listIntegratedAccounts(tx, scope, filter, { ...FIRST_PAGE, view: 'basic' })
    expect(found.map(({ id }) => id)).toEqual(accounts.map(({ id }) => id).toReversed())
  })

  it('pages the newest first, and leaves configs out unless asked', async () => {
    const scope = await newScope()
    const { id: environmentIntegrationId } = await addInstallation(undefined, scope)
    for (let n = 0; n < 3; n++) await connect({ environmentIntegrationId }, scope)
    const all = await listIntegratedAccounts(tx, scope, {}, { ...FIRST_PAGE, view: 'full' })
    const ids = all.map(({ id }) => id)
    expect(ids).toEqual(ids.toSorted().toReversed())
    expect(await get(ids[0]!, scope)).toMatchObject({ ...all[0] })
    const rest = await listIntegratedAccounts(tx, scope, {}, { before: ids[0], limit: 1, view: 'basic' })
    expect(rest.map(({ id, integration }) => [id, integration.config])).toEqual([[ids[1], undefined]])
  })
})

describe('updateIntegratedAccount', () => {
  it.each<[string, JsonObject, JsonObject]>([
    ['a new key joins', { b: 1 }, { subdomain: 'acme', a: { x: 1 }, b: 1 }],
    ['a key given replaces the stored one whole', { a: { y: 2 } }, { subdomain: 'acme', a: { y: 2 } }],
    ['null removes a key', { a: null }, { subdomain: 'acme' }],
    ['null inside a key stays', { a: { x: null } }, { subdomain: 'acme', a: { x: null } }],
    ['an unknown key is removed from nothing', { zzz: null }, { subdomain: 'acme', a: { x: 1 } }],
    ['all at once', { a: null, b: [1, 'é', false], '': 0 }, { subdomain: 'acme', b: [1, 'é', false], '': 0 }],
  ])('merges context at the top level: %s', async (_, context, expected) => {
    const { id } = await connect({ context: { a: { x: 1 } } })
    expect(await update({ id, context })).toMatchObject({ version: 2, tenantId: 'acme' })
    expect((await get(id)).context).toEqual(expected)
  })

  it('changes the tenant and leaves everything else', async () => {
    const before = await connect({ context: { a: 1 } })
    const after = await update({ id: before.id, tenantId: 'new' })
    expect(after).toEqual({ ...before, tenantId: 'new', updatedAt: after.updatedAt, version: 2 })
    expect(after.updatedAt.getTime()).toBeGreaterThanOrEqual(before.updatedAt.getTime())
  })

  it('works on sandbox accounts', async () => {
    const { id } = await connect({ isSandbox: true })
    expect(await update({ id, tenantId: 'new' })).toMatchObject({ tenantId: 'new' })
  })

  it.each([
    ['nothing', {}],
    ['an empty context', { context: {} }],
  ])('changes nothing when given %s', async (_, change) => {
    const account = await connect()
    expect(await update({ id: account.id, ...change })).toEqual(account)
  })

  it('is one statement in the common case, which records the event too', async () => {
    const { id } = await connect()
    await update({ id, tenantId: 'warm' })
    const statements = await statementsOf(() => update({ id, context: { a: 1 }, tenantId: 'x', version: 2 }))
    expect(statements).toEqual([
      expect.stringMatching(/^with changed as \(\s+update integrated_account [\s\S]*insert into event /),
    ])
  })

  it('records the account as it is then, as changes in a transaction do', async () => {
    await seedWebhook(database, own.environmentId)
    const { id } = await connect({ context: { a: { x: 1 }, b: 2 } })
    await execute(
      tx,
      `update integrated_account set last_error = 'no', last_action_result = '{"validation": [1.50]}', external_id = '7',
         last_forbidden_error = '{"resource": "", "method": "get", "occurred_at": "2026-01-01T00:00:00Z"}',
         terms_url = 'https://example.com', terms_accepted_at = '2026-01-02T03:04:05.006Z', reauthorization_due_at = '2027-01-01'
       where id = :id`,
      { id },
    )
    await update({ id, context: { a: null, c: [1, 'é', 1.5] }, tenantId: 'next' })
    const stored = await findIntegratedAccount(tx, own.environmentId, id)
    if (stored === undefined) throw new Error('no account')
    const events = await eventsOf(id)
    expect(events.at(-1)).toEqual({ name: 'updated', payload: accountEventPayload(stored) })
    const [dispatch] = await query<{ n: number }>(
      tx,
      'select count(*)::int as n from event_dispatch join event on event.id = event_id where subject_id = :id',
      { id },
    )
    expect(dispatch?.n).toBe(events.length)
  })

  it('records a context that is too long for an event without it, also when it was stored before', async () => {
    const { id } = await connect()
    await update({ id, context: { long: 'x'.repeat(70_000) } })
    expect((await eventsOf(id)).at(-1)?.payload).not.toHaveProperty('context')
    expect(await update({ id, tenantId: 'next' })).toMatchObject({ tenantId: 'next', version: 3 })
    expect((await eventsOf(id)).at(-1)?.payload).not.toHaveProperty('context')
  })

  it('loses neither of two changes of different keys', async () => {
    const { id } = await connect()
    const changes = ['a', 'b', 'c', 'd'].map((key) => () => update({ id, context: { [key]: 1 } }))
    await contendForRows(database, 'integrated_account', [id], changes)
    expect((await get(id)).context).toEqual({ subdomain: 'acme', a: 1, b: 1, c: 1, d: 1 })
  })

  it('of two changes for one version applies one', async () => {
    const { id } = await connect()
    const changes = ['a', 'b'].map((tenantId) => () => update({ id, tenantId, version: 1 }))
    const results = await contendForRows(database, 'integrated_account', [id], changes)
    expect(results.filter(({ status }) => status === 'rejected')).toMatchObject([
      { reason: { reason: 'ETAG_MISMATCH' } },
    ])
  })

  it.each([
    ['another version', { tenantId: 'x', version: 9 }, 'ETAG_MISMATCH'],
    ['another version and no change', { version: 9 }, 'ETAG_MISMATCH'],
    ['a key of the runtime', { context: { env: {}, fine: 1 } }, 'CONTEXT_KEY_RESERVED'],
    ['the removal of a key of the runtime', { context: { oauth: null } }, 'CONTEXT_KEY_RESERVED'],
    ['the name of a credential', { context: { api_key: 'overheard' } }, 'CONTEXT_KEY_RESERVED'],
    [
      'the name of a credential for the right version',
      { context: { api_key: 'overheard' }, version: 1 },
      'CONTEXT_KEY_RESERVED',
    ],
  ])('refuses %s and changes nothing', async (_, change, reason) => {
    const account = await connect()
    await expect(update({ id: account.id, ...change })).rejects.toMatchObject({ reason })
    expect(await get(account.id)).toEqual(account)
  })

  it('does not find one of another environment', async () => {
    const { id } = await connect()
    for (const change of [{ tenantId: 'x' }, { context: { a: 1 } }, {}])
      await expect(update({ id, ...change }, other)).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })
})

describe('changeAccountStatus', () => {
  it('makes a step of the table with one row of history and one version', async () => {
    const account = await connect()
    const change = await database.transaction((tx) =>
      changeAccountStatus(tx, account, 'refresh_failed', 'invalid_grant'),
    )
    expect(change).toEqual({ kind: 'changed', from: 'active', to: 'needs_reauth' })
    expect(await get(account.id)).toMatchObject({ status: 'needs_reauth', lastError: 'invalid_grant', version: 2 })
    const [newest] = await listIntegratedAccountHistory(tx, own, account.id, FIRST_PAGE)
    expect(newest).toMatchObject({
      fromStatus: 'active',
      toStatus: 'needs_reauth',
      cause: 'refresh_failed',
      lastError: 'invalid_grant',
    })
  })

  it('says that a step is impossible, and writes nothing', async () => {
    const account = await connect()
    expect(await database.transaction((tx) => changeAccountStatus(tx, account, 'steps_repeated'))).toEqual({
      kind: 'impossible',
      from: 'active',
    })
    expect(await get(account.id)).toEqual(account)
    expect(await listIntegratedAccountHistory(tx, own, account.id, FIRST_PAGE)).toHaveLength(2)
  })

  it('records once what several report at once', async () => {
    const account = await connect()
    const reports = Array.from(
      { length: 4 },
      () => () => database.transaction((tx) => changeAccountStatus(tx, account, 'unauthorized')),
    )
    const changes = await contendForRows(database, 'integrated_account', [account.id], reports)
    const kinds = changes.map((change) => change.status === 'fulfilled' && change.value.kind)
    expect(kinds.toSorted()).toEqual(['changed', 'impossible', 'impossible', 'impossible'])
    expect(await listIntegratedAccountHistory(tx, own, account.id, FIRST_PAGE)).toHaveLength(3)
  })

  it('does not find an account of another environment', async () => {
    const { id } = await connect()
    const change = database.transaction((tx) =>
      changeAccountStatus(tx, { id, environmentId: other.environmentId }, 'unauthorized'),
    )
    await expect(change).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })
})

describe('listIntegratedAccountHistory', () => {
  it('pages the newest first, and does not find an account of another environment', async () => {
    const account = await connect()
    const [newest, oldest] = await listIntegratedAccountHistory(tx, own, account.id, FIRST_PAGE)
    const rest = await listIntegratedAccountHistory(tx, own, account.id, { before: newest!.id, limit: 1 })
    expect(rest).toEqual([oldest])
    const foreign = listIntegratedAccountHistory(tx, other, account.id, FIRST_PAGE)
    await expect(foreign).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })
})

describe('deleteIntegratedAccount', () => {
  const remove = (input: { id: string; version?: number; force?: boolean }, scope: EnvironmentScope = own) =>
    database.transaction((each) => deleteIntegratedAccount(removalDeps, each, scope, input))

  it('erases the credentials and the history with it', async () => {
    const { id } = await connect()
    await remove({ id })
    expect(await secretsOf(id)).toEqual({})
    expect(
      await query(tx, 'select 1 from integrated_account_history where integrated_account_id = :id', { id }),
    ).toEqual([])
    await expect(remove({ id })).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })

  it('is refused while triggers run for it, and with force takes them along', async () => {
    const { id } = await connect()
    await addTrigger(id)
    await expect(remove({ id })).rejects.toMatchObject({ reason: 'RESOURCE_IN_USE' })
    expect(Object.keys(await secretsOf(id))).toEqual(['api_key'])
    await remove({ id, force: true })
    expect(await query(tx, 'select 1 from sync_job_cron_trigger where integrated_account_id = :id', { id })).toEqual([])
  })

  it.each([
    ['another version', { version: 9 }, 'ETAG_MISMATCH', () => own],
    ['one of another environment', {}, 'RESOURCE_NOT_FOUND', () => other],
  ])('refuses %s', async (_, input, reason, scope) => {
    const { id } = await connect()
    await expect(remove({ id, ...input }, scope())).rejects.toMatchObject({ reason })
    expect(await get(id)).toMatchObject({ id })
  })
})

describe('removeAccountsOf', () => {
  it('removes every account of one installation, triggers included, and no other', async () => {
    const { id: environmentIntegrationId } = await addInstallation()
    const gone = [await connect({ environmentIntegrationId }), await connect({ environmentIntegrationId })]
    const kept = await connect()
    await addTrigger(gone[0]!.id)
    await database.transaction((each) =>
      deleteAccountsByInstallation(removalDeps, each, own.environmentId, environmentIntegrationId),
    )
    for (const { id } of gone) await expect(get(id)).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
    expect(await get(kept.id)).toEqual(kept)
  })
})

describe('loadAccountForCall', () => {
  const unchanged = async (resolved: ResolvedAccount) => resolved
  const loadDeps = { ...accountDeps, database, tokens: { ensureFresh: unchanged, refresh: unchanged } }
  const load = (id: string, scope: EnvironmentScope = own, purpose: LoadPurpose = 'sync') =>
    loadAccountForCall(loadDeps, scope.environmentId, id, purpose)

  it('hands out context, credentials and variables, and the compiled plan', async () => {
    const installation = await addInstallation()
    const override = { environment_variables: { API_TOKEN: 'variable-secret', N: 1 } }
    await database.transaction((each) =>
      updateEnvironmentIntegration(deps, each, own, { id: installation.id, override }),
    )
    const { id } = await connect({ environmentIntegrationId: installation.id, isSandbox: true })
    const ready = await load(id)
    expect(ready.integrationName).toBe(installation.integration.name)
    expect(ready.plan.resources.get('issues')?.has('list')).toBe(true)
    expect(ready.access).toEqual({
      id,
      environmentId: own.environmentId,
      environmentIntegrationId: installation.id,
      tenantId: 'acme',
      integrationName: installation.integration.name,
      context: { subdomain: 'acme' },
      credentials: { api_key: 'the-accounts-secret' },
      environmentVariables: { API_TOKEN: 'variable-secret', N: 1 },
      connection: {},
      isSandbox: true,
      cause: { kind: 'run' },
      unauthorizedSince: undefined,
    })
    expect((await load(id)).plan).toBe(ready.plan)
  })

  it.each<[LoadPurpose, AccountStatus[]]>([
    ['call', ['active', 'needs_reauth']],
    ['sync', ['active']],
    ['activation', ['connecting']],
  ])('loads for a %s only accounts that are %s', async (purpose, admitted) => {
    const { id } = await connect()
    for (const status of ['active', 'connecting', 'post_install_error', 'validation_error', 'needs_reauth'] as const) {
      await execute(tx, 'update integrated_account set status = :status where id = :id', { status, id })
      const loaded = load(id, own, purpose)
      if (admitted.includes(status)) expect((await loaded).account.status).toBe(status)
      else await expect(loaded).rejects.toMatchObject({ reason: 'ACCOUNT_NOT_ACTIVE', metadata: { status } })
    }
  })

  it('refuses a disabled installation at once', async () => {
    const account = await connect()
    await load(account.id)
    await database.transaction((tx) =>
      updateEnvironmentIntegration(deps, tx, own, { id: account.environmentIntegrationId, isEnabled: false }),
    )
    await expect(load(account.id)).rejects.toMatchObject({ reason: 'INTEGRATION_DISABLED' })
  })

  it('does not find one of another environment', async () => {
    const { id } = await connect()
    await expect(load(id, other)).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })
})

async function addTrigger(accountId: string): Promise<void> {
  const [jobId, e] = [newId(), own.environmentId]
  await execute(
    tx,
    `insert into sync_job (environment_id, id, label, integration_name, resources, args_schema)
     values (:e, :jobId, '', 'x', '[]', '{}')`,
    { e, jobId },
  )
  await execute(
    tx,
    `insert into sync_job_cron_trigger (environment_id, id, sync_job_id, integrated_account_id, cron_expression,
       daemon_group_key, args) values (:e, :environmentId, :jobId, :accountId, '* * * * *', 'g', '{}')`,
    { e, environmentId: newId(), jobId, accountId },
  )
}

/** The statements that one piece of work sends. */
async function statementsOf(work: () => Promise<unknown>): Promise<readonly string[]> {
  const statements: string[] = []
  const note = ({ sql }: { sql: string }) => statements.push(sql)
  const knex = tx.on('query', note)
  await work()
  knex.removeListener('query', note)
  return statements
}
