import { describe, expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import type { Db } from '../../../../src/foundation/database/index.ts'
import { execute, query } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import {
  createIntegrationGrant,
  deleteEnvironmentIntegration,
  deleteSomeInstallations,
  type EnvironmentIntegrationChange,
  type EnvironmentIntegrationInput,
  getEnvironmentIntegration,
  listEnvironmentIntegrations,
  resolveEnvironmentIntegration,
  updateEnvironmentIntegration,
  updateIntegration,
} from '../../../../src/platform/integrations/index.ts'
import { createEnvironment, type EnvironmentScope } from '../../../../src/platform/tenancy/index.ts'
import { contendForRows } from '../../../support/row-contention.ts'
import { CONFIG, CONFIG_WITH_SECRET, FIRST_PAGE, integrationsFixture } from './fixture.ts'

const fixture = await integrationsFixture()
const { database, tx, deps, secrets, own, other, addIntegration, install, newScope } = fixture

const OVERRIDE: JsonObject = {
  description: 'ours',
  headers: { 'x-app': null },
  environment_variables: { API_TOKEN: 'variable-secret', REGION: 'eu' },
}
const MASKED = { ...OVERRIDE, environment_variables: { API_TOKEN: '***', REGION: 'eu' } }

const update = (change: EnvironmentIntegrationChange, scope: EnvironmentScope = own) =>
  database.transaction((each) => updateEnvironmentIntegration(deps, each, scope, change))
const secretsOf = ({ id, environmentId }: { id: string; environmentId: string }) =>
  secrets.get(tx, { ownerId: environmentId, subjectType: 'environment_integration', subjectId: id })

async function installed(override: JsonObject = OVERRIDE) {
  return await install({ integrationId: (await addIntegration()).id, override })
}

describe('createEnvironmentIntegration', () => {
  it('answers with the integration, its team and the environments of the caller', async () => {
    const integration = await addIntegration()
    const made = await install({ integrationId: integration.id })
    expect(made).toMatchObject({
      environmentId: own.environmentId,
      showInCatalog: false,
      isEnabled: true,
      override: {},
    })
    expect(made.integration).toEqual({ ...integration, installedEnvironment: [own.environmentId] })
  })

  it('stores the override as given, null included, its secrets apart and masked', async () => {
    const made = await installed()
    expect(made.override).toEqual(MASKED)
    expect(await secretsOf(made)).toEqual({ '/environment_variables/API_TOKEN': '"variable-secret"' })
  })

  const fields = { showInCatalog: true, isEnabled: false, override: OVERRIDE }
  const reordered = Object.fromEntries(Object.entries(OVERRIDE).reverse())
  const withKey = (token: string) => ({ ...OVERRIDE, environment_variables: { API_TOKEN: token, REGION: 'eu' } })

  it.each<[string, Omit<EnvironmentIntegrationInput, 'integrationId'>]>([
    ['nothing else', {}],
    ['everything again', fields],
    ['its flags', { showInCatalog: true, isEnabled: false }],
    ['its override with keys in another order', { override: reordered }],
    ['its override as it reads, with masks', { override: MASKED }],
  ])('returns the installation to a second one that asks for %s, and changes nothing', async (_, again) => {
    const { id: integrationId } = await addIntegration()
    const there = await install({ integrationId, ...fields })
    expect(await install({ integrationId, ...again })).toEqual(there)
    expect(await getEnvironmentIntegration(tx, own, there.id)).toEqual(there)
    expect(await secretsOf(there)).toEqual({ '/environment_variables/API_TOKEN': '"variable-secret"' })
  })

  it.each<[string, Omit<EnvironmentIntegrationInput, 'integrationId'>]>([
    ['another flag', { isEnabled: true }],
    ['another flag beside the same override', { ...fields, showInCatalog: false }],
    ['no override at all', { override: {} }],
    ['one key more', { override: { ...OVERRIDE, label: 'ours' } }],
    ['one key less', { override: { environment_variables: OVERRIDE.environment_variables ?? null } }],
    ['another value', { override: { ...OVERRIDE, description: 'theirs' } }],
    ['another secret', { override: withKey('another-secret') }],
  ])('rejects a second one that asks for %s, naming the first, and changes nothing', async (_, again) => {
    const { id: integrationId } = await addIntegration()
    const there = await install({ integrationId, ...fields })
    await expect(install({ integrationId, ...again })).rejects.toMatchObject({
      reason: 'ALREADY_INSTALLED',
      resource: { type: 'environment_integration', id: there.id },
    })
    expect(await getEnvironmentIntegration(tx, own, there.id)).toEqual(there)
    expect(await secretsOf(there)).toEqual({ '/environment_variables/API_TOKEN': '"variable-secret"' })
  })

  it.each([
    ['the same: both get the one installation', { override: OVERRIDE }, 'fulfilled'],
    ['something else: the later one is rejected', { override: withKey('another-secret') }, 'rejected'],
  ])('installs once when two first installations ask for %s', async (_, second, outcome) => {
    const { id: integrationId } = await addIntegration()
    const installs = [{ override: OVERRIDE }, second].map((each) => () => install({ integrationId, ...each }))
    const results = await contendForRows(database, 'integration', [integrationId], installs)
    expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', outcome].toSorted())
    const made = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value.id] : []))
    const page = { before: undefined, limit: 10, view: 'basic' } as const
    const listed = await listEnvironmentIntegrations(tx, own, { integrationId }, page)
    expect(new Set(made)).toEqual(new Set(listed.map(({ id }) => id)))
    expect(listed).toHaveLength(1)
  })

  it('lets two environments install one integration', async () => {
    const second = await createEnvironment(tx, own.teamId, { name: `second-${newId()}` })
    const { id: integrationId } = await addIntegration()
    await install({ integrationId })
    const made = await install({ integrationId }, { ...own, environmentId: second.id })
    expect(made.integration.installedEnvironment).toEqual([own.environmentId, second.id])
  })

  it.each([
    ['allow', false, 'installed'],
    ['ask', true, 'installed'],
    ['ask', false, 'INTEGRATION_GRANT_REQUIRED'],
    ['deny', true, 'RESOURCE_NOT_FOUND'],
    ['deny', false, 'RESOURCE_NOT_FOUND'],
  ] as const)('answers another team when sharing is %s, granted %s: %s', async (sharing, isGranted, outcome) => {
    const { id: integrationId } = await addIntegration({ sharing })
    if (isGranted) await createIntegrationGrant(tx, own.teamId, { integrationId, teamId: other.teamId })
    const attempt = install({ integrationId }, other)
    if (outcome === 'installed')
      expect(await attempt).toMatchObject({ integrationId, environmentId: other.environmentId })
    else await expect(attempt).rejects.toMatchObject({ reason: outcome })
  })

  it.each([
    ['all findings at once', { base_url: 5, labl: 'x' }, 'DEFINITION_INVALID', ['override.base_url', 'override.labl']],
    [
      'what only the merge shows',
      { authorization: { config: { token: '{{api_kex}}' } } },
      'DEFINITION_INVALID',
      undefined,
    ],
    ['the mask', { label: '***' }, 'SECRET_MASKED', ['override.label']],
    ['a forbidden address', { base_url: 'https://forbidden.example.com' }, 'URL_NOT_ALLOWED', ['override.base_url']],
  ])('rejects an override with fields under override, and stores nothing: %s', async (_, override, reason, fields) => {
    const { id: integrationId } = await addIntegration()
    const failure = await install({ integrationId, override }).catch((error) => error)
    expect(failure.reason).toBe(reason)
    const named = failure.violations.map(({ field }: { field: string }) => field).toSorted()
    if (fields !== undefined) expect(named).toEqual(fields)
    expect(named.every((field: string) => field.startsWith('override.'))).toBe(true)
    const stored = await query(tx, 'select 1 from environment_integration where integration_id = :integrationId', {
      integrationId,
    })
    expect(stored).toEqual([])
  })

  it("rejects another team's override that could exfiltrate secrets of the owner", async () => {
    const { id: integrationId } = await addIntegration({ sharing: 'allow', config: CONFIG_WITH_SECRET })
    const override = { base_url: 'https://mine.example.com' }
    await expect(install({ integrationId, override }, other)).rejects.toMatchObject({
      reason: 'DEFINITION_INVALID',
      violations: [{ field: 'override.base_url', rule: 'override.diverts_secrets' }],
    })
    expect(await install({ integrationId, override })).toMatchObject({ override })
  })
})

describe('getEnvironmentIntegration', () => {
  it('answers the same for one of another environment and for an unknown one', async () => {
    const { id } = await installed()
    for (const each of [id, newId()])
      await expect(getEnvironmentIntegration(tx, other, each)).rejects.toMatchObject({
        reason: 'RESOURCE_NOT_FOUND',
        resource: { type: 'environment_integration', id: each },
      })
  })

  it("never shows another team the owner's secrets or environments", async () => {
    const { id: integrationId } = await addIntegration({ sharing: 'allow', config: CONFIG_WITH_SECRET })
    await install({ integrationId })
    const { id } = await install({ integrationId }, other)
    const seen = JSON.stringify(await getEnvironmentIntegration(tx, other, id))
    expect(seen).not.toContain('the-owners-secret')
    expect(seen).not.toContain(own.environmentId)
  })
})

describe('listEnvironmentIntegrations', () => {
  it('filters, pages, and leaves configs out unless asked', async () => {
    const scope = await newScope()
    const [first, second] = [await addIntegration({}, scope), await addIntegration({}, scope)]
    const plain = await install({ integrationId: first.id, showInCatalog: true }, scope)
    const off = await install({ integrationId: second.id, isEnabled: false }, scope)
    const idsOf = async (filter: Parameters<typeof listEnvironmentIntegrations>[2]) =>
      (await listEnvironmentIntegrations(tx, scope, filter, { ...FIRST_PAGE, view: 'basic' })).map(({ id }) => id)
    expect((await idsOf({})).toSorted()).toEqual([plain.id, off.id].toSorted())
    expect(await idsOf({ isEnabled: false })).toEqual([off.id])
    expect(await idsOf({ showInCatalog: true })).toEqual([plain.id])
    expect(await idsOf({ integrationId: first.id })).toEqual([plain.id])
    expect(await idsOf({ integrationId: first.id, isEnabled: false })).toEqual([])
    const [newest] = await listEnvironmentIntegrations(tx, scope, {}, { before: undefined, limit: 1, view: 'basic' })
    const rest = await listEnvironmentIntegrations(tx, scope, {}, { before: newest!.id, limit: 9, view: 'full' })
    expect(newest!.integration.config).toBeUndefined()
    expect(rest.map(({ integration }) => integration.config)).toEqual([CONFIG])
  })
})

describe('updateEnvironmentIntegration', () => {
  it('changes flags and keeps the override with its secrets', async () => {
    const made = await installed()
    const updated = await update({ id: made.id, isEnabled: false, showInCatalog: true })
    expect(updated).toEqual({
      ...made,
      isEnabled: false,
      showInCatalog: true,
      updatedAt: updated.updatedAt,
      version: 2,
    })
    expect(Object.keys(await secretsOf(made))).toHaveLength(1)
  })

  it('changes nothing when nothing is given', async () => {
    const made = await installed()
    expect(await update({ id: made.id, replaceOverride: true })).toEqual(made)
  })

  it.each<[string, JsonObject, boolean, JsonObject]>([
    ['a new key joins', { tags: ['a'] }, false, { ...MASKED, tags: ['a'] }],
    [
      'objects merge',
      { environment_variables: { ZONE: 1 } },
      false,
      { ...MASKED, environment_variables: { ...MASKED.environment_variables, ZONE: 1 } },
    ],
    [
      'null removes from the override',
      { description: null, headers: null },
      false,
      { environment_variables: MASKED.environment_variables },
    ],
    ['an empty patch keeps', {}, false, MASKED],
    ['a replacement replaces, null included', { headers: { 'x-app': null } }, true, { headers: { 'x-app': null } }],
    ['an empty replacement empties', {}, true, {}],
    [
      'a replacement may keep secrets by their mask',
      { environment_variables: { API_TOKEN: '***' } },
      true,
      { environment_variables: { API_TOKEN: '***' } },
    ],
  ])('merges override as RFC 7396: %s', async (_, override, replaceOverride, expected) => {
    const made = await installed()
    const updated = await update({ id: made.id, override, replaceOverride })
    expect(updated).toMatchObject({ version: 2 })
    expect(updated.override).toEqual(expected)
    const keeps = JSON.stringify(expected).includes('***')
    expect(Object.values(await secretsOf(made))).toEqual(keeps ? ['"variable-secret"'] : [])
  })

  it.each([
    ['another version', { isEnabled: false, version: 9 }, 'ETAG_MISMATCH'],
    ['another version of the override', { override: {}, version: 9 }, 'ETAG_MISMATCH'],
    ['a wrong result of the merge', { override: { base_url: 5 } }, 'DEFINITION_INVALID'],
    ['the mask in a new place', { override: { label: '***' } }, 'SECRET_MASKED'],
    ['a forbidden address', { override: { base_url: 'https://forbidden.example.com' } }, 'URL_NOT_ALLOWED'],
  ])('rejects %s and changes nothing', async (_, change, reason) => {
    const made = await installed()
    await expect(update({ id: made.id, ...change })).rejects.toMatchObject({ reason })
    expect(await getEnvironmentIntegration(tx, own, made.id)).toEqual(made)
  })

  it('loses neither of two merges of different keys', async () => {
    const made = await installed({})
    const merges = ['A', 'B'].map(
      (key) => () => update({ id: made.id, override: { environment_variables: { [key]: 1 } } }),
    )
    await contendForRows(database, 'environment_integration', [made.id], merges)
    const { override } = await getEnvironmentIntegration(tx, own, made.id)
    expect(override).toEqual({ environment_variables: { A: 1, B: 1 } })
  })

  it('does not find one of another environment', async () => {
    const { id } = await installed()
    for (const change of [{ isEnabled: false }, { override: {} }, {}])
      await expect(update({ id, ...change }, other)).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })
})

describe('deleteEnvironmentIntegration', () => {
  const connect = (environmentId: string, installationId: string) =>
    execute(
      tx,
      `insert into integrated_account (environment_id, id, environment_integration_id, tenant_id, authentication_method,
         context, status, is_sandbox, region, object_store_context_fields)
       values (:environmentId, :environmentId2, :installationId, 't', 'api_key', '{}', 'active', false, 'wnam', '{}')`,
      { environmentId, environmentId2: newId(), installationId },
    )
  const accounts = {
    deleteByInstallation: async (each: Db, environmentId: string, id: string) => {
      const sql =
        'delete from integrated_account where environment_id = :environmentId and environment_integration_id = :id'
      return await execute(each, sql, { environmentId, id })
    },
    stopByInstallations: async () => {},
  }
  const remove = (input: { id: string; version?: number; force?: boolean }, scope: EnvironmentScope = own) =>
    database.transaction((each) => deleteEnvironmentIntegration({ secrets, accounts }, each, scope, input))

  it('removes it with its secrets', async () => {
    const made = await installed()
    await remove({ id: made.id })
    expect(await secretsOf(made)).toEqual({})
    await expect(remove({ id: made.id })).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })

  it('is rejected while accounts exist, and with force deletes them too', async () => {
    const { id } = await installed()
    await connect(own.environmentId, id)
    await expect(remove({ id })).rejects.toMatchObject({ reason: 'RESOURCE_IN_USE' })
    await remove({ id, force: true })
    expect(await query(tx, 'select 1 from integrated_account where environment_integration_id = :id', { id })).toEqual(
      [],
    )
  })

  it.each([
    ['another version', { version: 9 }, 'ETAG_MISMATCH', () => own],
    ['one of another environment', {}, 'RESOURCE_NOT_FOUND', () => other],
  ])('rejects %s', async (_, input, reason, scope) => {
    const { id } = await installed()
    await expect(remove({ id, ...input }, scope())).rejects.toMatchObject({ reason })
  })

  it('removes all of an environment when that is emptied', async () => {
    const scope = await newScope()
    const { id } = await install({ integrationId: (await addIntegration({}, scope)).id }, scope)
    await connect(scope.environmentId, id)
    await database.transaction((each) =>
      deleteSomeInstallations({ secrets, accounts }, each, { environment_id: scope.environmentId }),
    )
    const left = await query(tx, 'select 1 from environment_integration where environment_id = :environmentId', {
      environmentId: scope.environmentId,
    })
    expect(left).toEqual([])
  })
})

describe('resolveEnvironmentIntegration', () => {
  it('shows the merged config with masks, and the layer of each leaf', async () => {
    const { id: integrationId } = await addIntegration({ config: CONFIG_WITH_SECRET })
    const { id } = await install({ integrationId, override: { ...OVERRIDE, label: 'Ours' } })
    const { config, layers } = await resolveEnvironmentIntegration(tx, own, id)
    expect(config).toMatchObject({ label: 'Ours', base_url: CONFIG.base_url, headers: {} })
    expect(config).toMatchObject({ authorization: { config: { header_value: '***' } } })
    expect(config.environment_variables).toEqual({ API_TOKEN: '***', REGION: 'eu' })
    expect(layers).toMatchObject({
      label: 'override',
      base_url: 'integration',
      'environment_variables.REGION': 'override',
    })
  })

  it('sees a change of the integration at once', async () => {
    const { id: integrationId } = await addIntegration()
    const { id } = await install({ integrationId })
    await database.transaction((each) =>
      updateIntegration(deps, each, own.teamId, { id: integrationId, config: { label: 'Changed' }, version: 1 }),
    )
    expect((await resolveEnvironmentIntegration(tx, own, id)).config.label).toBe('Changed')
  })

  it('does not find one of another environment', async () => {
    const { id } = await installed()
    const foreign = resolveEnvironmentIntegration(tx, other, id)
    await expect(foreign).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })
})
