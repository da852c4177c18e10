import { expect, it } from 'vitest'
import { query } from '../../../../src/foundation/database/index.ts'
import { updateIntegratedAccount } from '../../../../src/platform/accounts/account.ts'
import {
  createIntegration,
  updateEnvironmentIntegration,
  updateIntegration,
} from '../../../../src/platform/integrations/index.ts'
import { createApiToken } from '../../../../src/platform/tenancy/index.ts'
import { CONFIG } from '../integrations/fixture.ts'
import { CREDENTIALS } from './fixture.ts'
import { tokensFixture } from './token-fixture.ts'

const fixture = await tokensFixture()
const { database, tx, own, deps, accountDeps, addInstallation, connect, install, addConsent, server, process } = fixture

/** Every value of every column of every table as text, bytes too as the text they would spell. */
async function everythingStored(): Promise<string> {
  const columns = await query<{ name: string; column: string; type: string }>(
    tx,
    `select format('%I.%I', table_schema, table_name) as name, column_name as column, data_type as type
     from information_schema.columns join information_schema.tables using (table_schema, table_name)
     where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')`,
  )
  const texts: string[] = []
  for (const { name, column, type } of columns) {
    const value = type === 'bytea' ? `encode("${column}", 'escape')` : `"${column}"::text`
    const found = await query<{ value: string | null }>(tx, `select ${value} as value from ${name}`)
    texts.push(...found.map((row) => `${name}.${column}: ${row.value}`))
  }
  return texts.join('\n')
}

it('stores no plain text of any secret in any column of any table', async () => {
  const canaries = {
    authorization: 'canary-in-authorization',
    header: 'canary-in-a-header',
    replaced: 'canary-after-an-update',
    variable: 'canary-in-a-variable',
    overridden: 'canary-in-an-override',
    account: 'canary-of-an-account',
    imported: 'canary-access-token',
    refresh: 'canary-refresh-token',
    obtained: 'canary-obtained-token',
  }
  const config = {
    ...CONFIG,
    authorization: { format: 'header', config: { header_name: 'x-key', header_value: canaries.authorization } },
    headers: { 'x-api-key': canaries.header },
  }
  const integration = await database.transaction((each) =>
    createIntegration(deps, each, own.teamId, { name: 'canary', config }),
  )
  const override = { environment_variables: { API_TOKEN: canaries.variable } }
  const installation = await install({ integrationId: integration.id, override })
  const change = { id: integration.id, config: { headers: { 'x-api-key': canaries.replaced } }, version: 1 }
  await database.transaction((each) => updateIntegration(deps, each, own.teamId, change))
  const more = { id: installation.id, override: { headers: { 'x-api-key': canaries.overridden } } }
  await database.transaction((each) => updateEnvironmentIntegration(deps, each, own, more))
  const { id: environmentIntegrationId } = await addInstallation()
  const credentials = { ...CREDENTIALS, api_key: canaries.account }
  const { id } = await connect({ environmentIntegrationId, credentials, context: { marker: 'not-a-secret' } })
  const overheard = database.transaction((tx) =>
    updateIntegratedAccount(accountDeps, tx, own, { id, context: { api_key: canaries.account } }),
  )
  await expect(overheard).rejects.toMatchObject({ reason: 'CONTEXT_KEY_RESERVED' })
  await addConsent({ access_token: canaries.imported })
  const consenting = await addConsent({ access_token: 'old', refresh_token: canaries.refresh, expires_in: 0 })
  server.answer({ access_token: canaries.obtained, api_domain: canaries.obtained, user: { id: canaries.refresh } })
  await process().load(consenting)
  const operator = { teamId: own.teamId, isOperator: true, scopes: undefined }
  const { token } = await database.transaction((tx) =>
    createApiToken(tx, operator, { kind: 'team', name: 'canary', scopes: { preset: 'full' } }),
  )

  const stored = await everythingStored()
  expect(stored, 'the scan sees what is not secret').toContain('not-a-secret')
  for (const canary of [...Object.values(canaries), token]) expect(stored).not.toContain(canary)
})
