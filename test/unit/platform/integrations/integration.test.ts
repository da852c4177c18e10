import { describe, expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import type { Db } from '../../../../src/foundation/database/index.ts'
import { query } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import {
  checkDefinition,
  createIntegration,
  createIntegrationGrant,
  deleteIntegration,
  deleteIntegrationGrant,
  deleteIntegrationsOfTeam,
  getIntegration,
  type IntegrationChange,
  listIntegrationGrants,
  listIntegrations,
  updateIntegration,
} from '../../../../src/platform/integrations/index.ts'
import { contendForRows } from '../../../support/row-contention.ts'
import { CONFIG, CONFIG_WITH_SECRET, FIRST_PAGE, integrationsFixture } from './fixture.ts'

const fixture = await integrationsFixture()
const { database, tx, deps, secrets, own, other, addIntegration, install, newScope } = fixture
const removed: string[] = []
const removalDeps = {
  ...deps,
  accounts: {
    deleteByInstallation: async (_: Db, environmentId: string, id: string) => {
      removed.push(`${environmentId} ${id}`)
      return 0
    },
    stopByInstallations: async () => {},
  },
}

const update = (change: IntegrationChange, teamId = own.teamId) =>
  database.transaction((each) => updateIntegration(deps, each, teamId, change))
const remove = (input: { id: string; version?: number; force?: boolean }, teamId = own.teamId) =>
  database.transaction((each) => deleteIntegration(removalDeps, each, teamId, input))
const secretsOf = (id: string, teamId = own.teamId) =>
  secrets.get(tx, { ownerId: teamId, subjectType: 'integration', subjectId: id })

describe('createIntegration', () => {
  it('answers with the definition, its team, and nothing shared', async () => {
    const made = await addIntegration({ name: 'a-full_one', category: 'crm', isBeta: true })
    expect(made).toMatchObject({ name: 'a-full_one', category: 'crm', isBeta: true, sharing: 'deny', config: CONFIG })
    expect(made).toMatchObject({ teamId: own.teamId, team: { id: own.teamId }, installedEnvironment: [], version: 1 })
  })

  it('keeps its secrets apart and answers with the mask', async () => {
    const { id, config } = await addIntegration({ config: CONFIG_WITH_SECRET })
    expect(config).toMatchObject({ authorization: { config: { header_name: 'x-key', header_value: '***' } } })
    expect(await secretsOf(id)).toEqual({ '/authorization/config/header_value': '"the-owners-secret"' })
  })

  it('rejects a name the team uses, naming its holder, and lets another team use it', async () => {
    const held = await addIntegration({ name: 'taken' })
    await expect(addIntegration({ name: 'taken' })).rejects.toMatchObject({
      reason: 'NAME_TAKEN',
      resource: { type: 'integration', id: held.id },
    })
    expect(await addIntegration({ name: 'taken' }, other)).toMatchObject({ teamId: other.teamId })
  })

  it.each([
    ['all findings at once', { base_url: 5, labl: 'x' }, 'DEFINITION_INVALID', ['config.base_url', 'config.labl']],
    ['the mask', { ...CONFIG, headers: { 'x-token': '***' } }, 'SECRET_MASKED', ['config.headers.x-token']],
    [
      'a forbidden address',
      { ...CONFIG, base_url: 'https://forbidden.example.com' },
      'URL_NOT_ALLOWED',
      ['config.base_url'],
    ],
  ])('rejects with fields under config, and stores nothing: %s', async (name, config, reason, fields) => {
    const failure = await addIntegration({ name, config }).catch((error) => error)
    expect(failure.reason).toBe(reason)
    expect(failure.violations.map(({ field }: { field: string }) => field).toSorted()).toEqual(fields)
    expect(await query(tx, 'select id from integration where name = :name', { name })).toEqual([])
  })
})

describe('getIntegration', () => {
  it.each([
    ['allow', 'found'],
    ['ask', 'found'],
    ['deny', 'RESOURCE_NOT_FOUND'],
  ] as const)('shows one that another team shares as %s: %s', async (sharing, outcome) => {
    const { id } = await addIntegration({ sharing, config: CONFIG_WITH_SECRET })
    const seen = getIntegration(tx, other.teamId, id)
    if (outcome === 'found')
      expect(await seen).toMatchObject({ id, config: { authorization: { config: { header_value: '***' } } } })
    else await expect(seen).rejects.toMatchObject({ reason: outcome })
  })

  it('answers the same for one not shared and an unknown one', async () => {
    const { id } = await addIntegration()
    const [foreign, unknown] = await Promise.all(
      [id, newId()].map((each) =>
        getIntegration(tx, other.teamId, each).catch((error) => error.publicMessage.replace(each, 'ID')),
      ),
    )
    expect(foreign).toBe(unknown)
  })

  it("names the environments of the asking team, and no other team's", async () => {
    const { id } = await addIntegration({ sharing: 'allow' })
    await install({ integrationId: id })
    await install({ integrationId: id }, other)
    expect((await getIntegration(tx, own.teamId, id)).installedEnvironment).toEqual([own.environmentId])
    expect((await getIntegration(tx, other.teamId, id)).installedEnvironment).toEqual([other.environmentId])
  })
})

describe('listIntegrations', () => {
  it('lists own and shared ones, newest first, page by page, with the config on request', async () => {
    const reader = await newScope()
    const hidden = await addIntegration()
    const shared = await addIntegration({ sharing: 'ask' })
    const mine = await addIntegration({}, reader)
    const list = (before?: string, view: 'basic' | 'full' = 'basic', limit = 100) =>
      listIntegrations(tx, reader.teamId, { before, limit, view })
    const ids = (await list()).map(({ id }) => id)
    expect(ids).toEqual(ids.toSorted().toReversed())
    expect(ids).toEqual(expect.arrayContaining([shared.id, mine.id]))
    expect(ids).not.toContain(hidden.id)
    expect((await list(ids[0], 'basic', 1)).map(({ id }) => id)).toEqual([ids[1]])
    expect((await list()).every(({ config }) => config === undefined)).toBe(true)
    expect((await list(undefined, 'full')).find(({ id }) => id === mine.id)).toEqual(mine)
  })
})

describe('updateIntegration', () => {
  it('changes what is given and keeps the rest', async () => {
    const { id } = await addIntegration({ category: 'crm' })
    const updated = await update({ id, sharing: 'allow', isBeta: true })
    expect(updated).toMatchObject({ category: 'crm', sharing: 'allow', isBeta: true, config: CONFIG, version: 2 })
  })

  it('changes nothing when nothing is given', async () => {
    const integration = await addIntegration()
    expect(await update({ id: integration.id })).toEqual(integration)
  })

  it.each([
    ['an object merges', { headers: { 'x-new': '1' } }, { headers: { 'x-app': 'patchbay', 'x-new': '1' } }],
    ['a scalar replaces', { label: 'New' }, { label: 'New' }],
    ['null removes', { headers: null, label: null }, { headers: undefined, label: undefined }],
    ['an empty patch keeps', {}, CONFIG],
  ])('merges config as RFC 7396: %s', async (_, config, expected) => {
    const { id } = await addIntegration()
    const updated = await update({ id, config, version: 1 })
    for (const [key, value] of Object.entries(expected)) expect(updated.config?.[key]).toEqual(value)
    expect(updated.config?.base_url).toBe(CONFIG.base_url)
  })

  it('keeps a secret that the patch leaves alone or sends back masked, and replaces one it sends', async () => {
    const { id } = await addIntegration({ config: CONFIG_WITH_SECRET })
    const patch = (headerValue: string) => ({ authorization: { config: { header_value: headerValue } } })
    await update({ id, config: { label: 'x' }, version: 1 })
    await update({ id, config: patch('***'), version: 2 })
    expect(Object.values(await secretsOf(id))).toEqual(['"the-owners-secret"'])
    const replaced = await update({ id, config: patch('new'), version: 3 })
    expect(replaced.config).toMatchObject(patch('***'))
    expect(Object.values(await secretsOf(id))).toEqual(['"new"'])
  })

  it('deletes a secret whose path the patch removes', async () => {
    const { id } = await addIntegration({ config: CONFIG_WITH_SECRET })
    await update({ id, config: { authorization: null }, version: 1 })
    expect(await secretsOf(id)).toEqual({})
  })

  it.each([
    ['config without the version it was made for', { config: {} }, 'ETAG_REQUIRED'],
    ['config for another version', { config: {}, version: 9 }, 'ETAG_MISMATCH'],
    ['fields for another version', { category: 'x', version: 9 }, 'ETAG_MISMATCH'],
    ['nothing, for another version', { version: 9 }, 'ETAG_MISMATCH'],
    ['a merged config that is wrong', { config: { base_url: 5 }, version: 1 }, 'DEFINITION_INVALID'],
    ['the mask in a new place', { config: { headers: { 'x-token': '***' } }, version: 1 }, 'SECRET_MASKED'],
    ['a forbidden address', { config: { base_url: 'https://forbidden.example.com' }, version: 1 }, 'URL_NOT_ALLOWED'],
    ['a name in use', { name: 'in-use' }, 'NAME_TAKEN'],
  ])('rejects %s', async (_, change, reason) => {
    await addIntegration({ name: 'in-use' }).catch(() => undefined)
    const { id, version } = await addIntegration()
    await expect(update({ id, ...change })).rejects.toMatchObject({ reason })
    expect(await getIntegration(tx, own.teamId, id)).toMatchObject({ config: CONFIG, version })
  })

  it('gives a name wanted by two at once to one of them', async () => {
    const made = [await addIntegration(), await addIntegration()]
    const ids = made.map(({ id }) => id)
    const renames = ids.map((id) => () => update({ id, name: 'wanted' }))
    const results = await contendForRows(database, 'integration', ids, renames)
    const refused = results.filter(({ status }) => status === 'rejected')
    expect(refused).toMatchObject([{ reason: { reason: 'NAME_TAKEN' } }])
  })

  it('of two changes for one version applies one', async () => {
    const { id } = await addIntegration()
    const changes = ['a', 'b'].map((label) => () => update({ id, config: { label }, version: 1 }))
    const results = await contendForRows(database, 'integration', [id], changes)
    expect(results.filter(({ status }) => status === 'rejected')).toMatchObject([
      { reason: { reason: 'ETAG_MISMATCH' } },
    ])
  })

  it('does not find one of another team, shared or not', async () => {
    const { id } = await addIntegration({ sharing: 'allow' })
    await expect(update({ id, category: 'x' }, other.teamId)).rejects.toMatchObject({
      reason: 'RESOURCE_NOT_FOUND',
    })
  })
})

describe('deleteIntegration', () => {
  it('deletes it with its secrets and grants', async () => {
    const { id } = await addIntegration({ config: CONFIG_WITH_SECRET, sharing: 'ask' })
    await createIntegrationGrant(tx, own.teamId, { integrationId: id, teamId: other.teamId })
    await remove({ id })
    await expect(remove({ id })).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
    expect(await secretsOf(id)).toEqual({})
    expect(await query(tx, 'select 1 from integration_grant where integration_id = :id', { id })).toEqual([])
  })

  it('is rejected while it is installed, and with force deletes the installations and their accounts too', async () => {
    const { id } = await addIntegration()
    const installation = await install({ integrationId: id, override: { environment_variables: { API_TOKEN: 's' } } })
    await expect(remove({ id })).rejects.toMatchObject({ reason: 'RESOURCE_IN_USE' })
    await remove({ id, force: true })
    expect(removed).toContain(`${own.environmentId} ${installation.id}`)
    expect(await query(tx, 'select 1 from secret where subject_id = :id', { id: installation.id })).toEqual([])
  })

  it('never reaches into another team, even by force', async () => {
    const { id } = await addIntegration({ sharing: 'allow' })
    const theirs = await install({ integrationId: id }, other)
    await expect(remove({ id, force: true })).rejects.toMatchObject({ reason: 'RESOURCE_IN_USE' })
    expect(removed).not.toContain(`${other.environmentId} ${theirs.id}`)
  })

  it.each([
    ['another version', { version: 9 }, 'ETAG_MISMATCH', () => own.teamId],
    ['one of another team', {}, 'RESOURCE_NOT_FOUND', () => other.teamId],
  ])('rejects %s', async (_, input, reason, teamId) => {
    const { id } = await addIntegration({ sharing: 'allow' })
    await expect(remove({ id, ...input }, teamId())).rejects.toMatchObject({ reason })
  })
})

describe('deleteIntegrationsOfTeam', () => {
  it('deletes all of a team, installed or not', async () => {
    const scope = await newScope()
    const { id } = await addIntegration({}, scope)
    await addIntegration({}, scope)
    await install({ integrationId: id }, scope)
    await database.transaction((each) => deleteIntegrationsOfTeam(removalDeps, each, scope.teamId))
    expect(await query(tx, 'select 1 from integration where team_id = :teamId', { teamId: scope.teamId })).toEqual([])
  })
})

const CHECK = {
  checkUrls: (config: JsonObject, path: string) =>
    config.base_url === 'http://10.0.0.1'
      ? [{ field: `${path}base_url`, description: 'is private', rule: 'url.not_allowed' }]
      : [],
}

describe('checkDefinition', () => {
  it('finds addresses that outbound calls may not reach', async () => {
    const findings = await checkDefinition(CHECK, { ...CONFIG, base_url: 'http://10.0.0.1' }, 'integration', {
      owner: 'one',
    })
    expect(findings).toMatchObject([{ field: 'base_url', rule: 'url.not_allowed' }])
  })

  it('finds nothing in a definition that would be stored', async () => {
    expect(await checkDefinition(CHECK, CONFIG, 'integration', { owner: 'one' })).toEqual([])
  })

  it('names findings by their path from the top, the mask included', async () => {
    const findings = await checkDefinition(
      CHECK,
      { ...CONFIG, labl: 'x', headers: { 'x-token': '***' } },
      'integration',
      { owner: 'one' },
    )
    expect(findings.map(({ field }) => field).toSorted()).toEqual(['headers.x-token', 'labl'])
  })

  it('checks an override key by key', async () => {
    expect(
      await checkDefinition(CHECK, { environment_variables: { A: 1 }, label: 'x' }, 'override', { owner: 'one' }),
    ).toEqual([])
    expect(await checkDefinition(CHECK, { environment_variables: {} }, 'integration', { owner: 'one' })).toHaveLength(1)
  })
})

describe('createIntegrationGrant', () => {
  it('returns the first grant when repeated', async () => {
    const { id } = await addIntegration({ sharing: 'ask' })
    const pair = { integrationId: id, teamId: other.teamId }
    const grant = await createIntegrationGrant(tx, own.teamId, pair)
    expect(grant).toMatchObject(pair)
    expect(await createIntegrationGrant(tx, own.teamId, pair)).toEqual(grant)
  })

  it('does not find an integration of another team, nor an unknown team', async () => {
    const { id } = await addIntegration({ sharing: 'allow' })
    const foreign = createIntegrationGrant(tx, other.teamId, { integrationId: id, teamId: own.teamId })
    await expect(foreign).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND', resource: { type: 'integration' } })
    const unknown = createIntegrationGrant(tx, own.teamId, { integrationId: id, teamId: newId() })
    await expect(unknown).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND', resource: { type: 'team' } })
  })
})

describe('listIntegrationGrants', () => {
  it('lists the newest first, page by page', async () => {
    const { id } = await addIntegration({ sharing: 'ask' })
    for (let n = 0; n < 3; n++)
      await createIntegrationGrant(tx, own.teamId, { integrationId: id, teamId: (await newScope()).teamId })
    const all = await listIntegrationGrants(tx, own.teamId, id, { after: undefined, limit: 9 })
    const times = all.map(({ createdAt }) => createdAt.getTime())
    expect(times).toEqual(times.toSorted((a, b) => b - a))
    expect(await listIntegrationGrants(tx, own.teamId, id, { after: all[0], limit: 9 })).toEqual(all.slice(1))
  })
})

describe('deleteIntegrationGrant', () => {
  it('revokes the grant and leaves installations', async () => {
    const { id } = await addIntegration({ sharing: 'ask' })
    const pair = { integrationId: id, teamId: other.teamId }
    await createIntegrationGrant(tx, own.teamId, pair)
    await install({ integrationId: id }, other)
    await deleteIntegrationGrant(tx, own.teamId, pair)
    await expect(deleteIntegrationGrant(tx, own.teamId, pair)).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
    expect((await getIntegration(tx, other.teamId, id)).installedEnvironment).toEqual([other.environmentId])
  })
})

it('creates nothing when the transaction it runs in is rolled back', async () => {
  const attempt = database.transaction(async (each) => {
    await createIntegration(deps, each, own.teamId, { name: 'rolled-back', config: CONFIG_WITH_SECRET })
    throw new Error('later')
  })
  await expect(attempt).rejects.toThrow('later')
  const listed = await listIntegrations(tx, own.teamId, { ...FIRST_PAGE, view: 'basic' })
  expect(listed.map(({ name }) => name)).not.toContain('rolled-back')
})
