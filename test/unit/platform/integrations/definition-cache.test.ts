import { describe, expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import { execute } from '../../../../src/foundation/database/index.ts'
import {
  createDefinitionCache,
  createIntegrationCache,
  updateEnvironmentIntegration,
  updateIntegration,
} from '../../../../src/platform/integrations/index.ts'
import { CONFIG_WITH_SECRET, integrationsFixture } from './fixture.ts'

const { database, tx, deps, secrets, own, other, addIntegration, install } = await integrationsFixture()

const headerOf = (config: unknown) => (config as typeof CONFIG_WITH_SECRET).authorization

describe('the effective definition', () => {
  it('is the merged config with secrets of both layers in place, compiled', async () => {
    const { id: integrationId, name } = await addIntegration({ config: CONFIG_WITH_SECRET })
    const override = { base_url: 'https://eu.example.com', environment_variables: { API_TOKEN: 'v', N: 1 } }
    const { id } = await install({ integrationId, override })
    const found = await createDefinitionCache(secrets).get(tx, own.environmentId, id)
    expect(found).toMatchObject({ integrationName: name, isEnabled: true })
    expect(found.environmentVariables).toEqual({ API_TOKEN: 'v', N: 1 })
    expect(found.config).toMatchObject({ ...CONFIG_WITH_SECRET, ...override })
    expect(found.plan.resources.get('issues')?.get('list')?.verb).toBe('GET')
  })

  it('is compiled once per version, and anew after either layer changed', async () => {
    const { id: integrationId } = await addIntegration()
    const { id } = await install({ integrationId })
    const source = createDefinitionCache(secrets)
    const find = () => source.get(tx, own.environmentId, id)
    const first = await find()
    expect((await find()).plan).toBe(first.plan)
    await database.transaction((each) =>
      updateIntegration(deps, each, own.teamId, { id: integrationId, config: { label: 'v2' }, version: 1 }),
    )
    const second = await find()
    expect(second.config.label).toBe('v2')
    await database.transaction((each) =>
      updateEnvironmentIntegration(deps, each, own, { id, override: { label: 'v3' }, isEnabled: false }),
    )
    expect(await find()).toMatchObject({ config: { label: 'v3' }, isEnabled: false })
  })

  it('sees a secret that was replaced', async () => {
    const { id: integrationId } = await addIntegration({ config: CONFIG_WITH_SECRET })
    const { id } = await install({ integrationId })
    const source = createDefinitionCache(secrets)
    await source.get(tx, own.environmentId, id)
    const patch = { authorization: { config: { header_value: 'replaced' } } }
    await database.transaction((each) =>
      updateIntegration(deps, each, own.teamId, { id: integrationId, config: patch, version: 1 }),
    )
    const { config } = await source.get(tx, own.environmentId, id)
    expect(headerOf(config)).toMatchObject({ config: { header_value: 'replaced' } })
  })

  it("lets another team use the owner's secrets, but not take them elsewhere", async () => {
    const { id: integrationId } = await addIntegration({ sharing: 'allow' })
    const plain = await install({ integrationId }, other)
    const found = async () => (await createDefinitionCache(secrets).get(tx, other.environmentId, plain.id)).config
    const diverting = { id: plain.id, override: { base_url: 'https://mine.example.com' } }
    await database.transaction((each) => updateEnvironmentIntegration(deps, each, other, diverting))
    // The owner adds the secret after the override was accepted.
    const config = { authorization: null, headers: { 'x-token': 'the-owners-secret' } }
    await database.transaction((each) =>
      updateIntegration(deps, each, own.teamId, { id: integrationId, config, version: 1 }),
    )
    expect((await found()).headers).toEqual({ 'x-app': 'patchbay' })
    await database.transaction((each) =>
      updateEnvironmentIntegration(deps, each, other, { id: plain.id, override: { base_url: null } }),
    )
    expect((await found()).headers).toEqual({ 'x-app': 'patchbay', 'x-token': 'the-owners-secret' })
  })

  it.each([
    ['an unknown installation', async () => newId()],
    ['an installation of another environment', async () => (await installedElsewhere()).id],
  ])('rejects %s', async (_, id) => {
    const find = createDefinitionCache(secrets).get(tx, own.environmentId, await id())
    await expect(find).rejects.toMatchObject({ reason: 'RESOURCE_NOT_FOUND' })
  })

  it('rejects an override that no longer fits its integration', async () => {
    const { id: integrationId } = await addIntegration()
    const { id } = await install({ integrationId })
    const sql = `update environment_integration set override = '{"base_url": 5}' where id = :id`
    await execute(tx, sql, { id })
    const find = createDefinitionCache(secrets).get(tx, own.environmentId, id)
    await expect(find).rejects.toMatchObject({ reason: 'DEFINITION_INVALID' })
  })
})

describe('the integration cache', () => {
  it('returns one object per version, and the current state for a version it has not seen', async () => {
    const { id, version } = await addIntegration()
    const cache = createIntegrationCache()
    const first = await cache.find(tx, id, version)
    expect(await cache.find(tx, id, version)).toBe(first)
    await database.transaction((each) => updateIntegration(deps, each, own.teamId, { id, category: 'new' }))
    expect(await cache.find(tx, id, version + 1)).toMatchObject({ category: 'new' })
    expect(await cache.find(tx, newId(), 1)).toBeUndefined()
  })
})

async function installedElsewhere() {
  const { id: integrationId } = await addIntegration({ sharing: 'allow' })
  return await install({ integrationId }, other)
}
