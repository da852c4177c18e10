import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { listMappedIntegrations } from '../../../../src/engine/catalog/index.ts'
import { coerceExpanded } from '../../../../src/engine/unified/references.ts'
import { newId } from '../../../../src/foundation/base/index.ts'
import { execute } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { createModel, createUnifiedMappings } from '../../../../src/platform/unified-config/index.ts'
import { insertMapping } from '../../../../src/platform/unified-config/sql/mapping.ts'
import { manualClock } from '../../../support/manual-clock.ts'
import { integrationsFixture } from '../integrations/fixture.ts'

const { database, tx, own, other } = await integrationsFixture()
const INTEGRATION = listMappedIntegrations('ats')[0] ?? ''
const CANDIDATES = { model: 'ats', resource: 'candidates', method: 'get' }

type Scope = typeof own

async function store(
  scope: Scope,
  fields: {
    readonly config: JsonObject
    readonly isBase?: boolean
    readonly method?: string
    readonly name?: string
    readonly model?: string
    readonly resource?: string
  },
): Promise<void> {
  const { teamId, environmentId } = scope
  const { config, isBase = false, method = '*', name = INTEGRATION, model = 'ats', resource = 'candidates' } = fields
  const place = { teamId, environmentId: isBase ? null : environmentId, integratedAccountId: null }
  const inserted = await insertMapping(tx, {
    ...place,
    id: newId(),
    model,
    resource,
    integrationName: name,
    method,
    config,
  })
  if (inserted === undefined) throw new Error('the place is taken')
}

const field = (name: string, expression: string): JsonObject => ({ response: { fields: { [name]: expression } } })
const account = (scope: Scope, integrationName = INTEGRATION) => ({
  environmentId: scope.environmentId,
  integrationName,
})

/** How many statements a piece of work sends. */
async function statementsOf(work: () => Promise<unknown>): Promise<number> {
  let count = 0
  const onQuery = () => {
    count += 1
  }
  tx.on('query', onQuery)
  await work().finally(() => tx.removeListener('query', onQuery))
  return count
}

describe('the effective mapping', () => {
  it('of an account without stored layers is what ships', async () => {
    const { merged, plan } = await createUnifiedMappings({ clock: manualClock() }).find(tx, account(other), CANDIDATES)
    expect(new Set(merged.layers.values())).toEqual(new Set(['shipped']))
    expect(plan.method).toBe('get')
  })

  it('costs one statement, and none within half a second', async () => {
    const clock = manualClock()
    const mappings = createUnifiedMappings({ clock })
    const find = () => mappings.find(tx, account(other), CANDIDATES)
    expect(await statementsOf(find)).toBe(1)
    expect(await statementsOf(() => Promise.all([find(), mappings.list(tx, account(other), 'ats')]))).toBe(0)
    clock.move(501)
    expect(await statementsOf(find)).toBe(1)
  })

  it('is compiled once for all accounts with the same layers', async () => {
    const clock = manualClock()
    const mappings = createUnifiedMappings({ clock })
    const first = await mappings.find(tx, account(other), CANDIDATES)
    const same = await mappings.find(tx, { ...account(other), integratedAccountId: newId() }, CANDIDATES)
    clock.move(501)
    const later = await mappings.find(tx, account(other), CANDIDATES)
    expect([same.plan === first.plan, later.plan === first.plan]).toEqual([true, true])
  })

  it('of a process that is told of a change sees it at once, of another within a second', async () => {
    const clock = manualClock()
    const [here, there] = [createUnifiedMappings({ clock }), createUnifiedMappings({ clock })]
    const titleBy = async (mappings: typeof here) => {
      const { merged } = await mappings.find(tx, account(own), CANDIDATES)
      return merged.layers.get('response.fields.source')
    }
    const before = [await titleBy(here), await titleBy(there)]
    await store(own, { config: field('source', "'ours'") })
    here.invalidate()
    expect([await titleBy(here), await titleBy(there)]).toEqual(['environment', before[1]])
    clock.move(999)
    expect(await titleBy(there)).toBe('environment')
  })

  it('does not keep what a read that began before a change brings after it', async () => {
    const mappings = createUnifiedMappings({ clock: manualClock() })
    const slow = mappings.find(tx, account(own), CANDIDATES)
    await store(own, { config: field('company', "'after'"), method: 'get' })
    mappings.invalidate()
    await slow
    const { merged } = await mappings.find(tx, account(own), CANDIDATES)
    expect(merged.layers.get('response.fields.company')).toBe('environment')
  })

  it('of a layer that has changed since is not kept', async () => {
    const name = 'changing'
    const clock = manualClock()
    const mappings = createUnifiedMappings({ clock })
    await store(own, { name, config: { resource: 'people', method: 'get', ...field('id', 'id') }, method: 'get' })
    const read = async () => {
      const { model, merged, plan } = await mappings.find(tx, account(own, name), CANDIDATES)
      return [model, merged, plan].map((part) => new WeakRef(part))
    }
    const superseded = await read()
    const change = 'update unified_mapping set version = version + 1 where integration_name = :name'
    await execute(tx, change, { name })
    clock.move(501)
    const current = await read()
    setFlagsFromString('--expose-gc')
    await new Promise(setImmediate)
    runInNewContext('gc')()
    const isKept = (parts: typeof current) => parts.map((part) => part.deref() !== undefined)
    expect([isKept(superseded), isKept(current)]).toEqual([
      [false, false, false],
      [true, true, true],
    ])
  })

  it('merges the layers of the method that is asked for alone', async () => {
    const reads = new Map<string, number>()
    const rows = ['get', 'list'].map((method) => ({
      ...{ kind: 'environment', id: newId(), version: 1, resource: 'candidates', method },
      config: {
        ...{ resource: 'people', method },
        get response() {
          reads.set(method, (reads.get(method) ?? 0) + 1)
          return { fields: { id: 'id' } }
        },
      },
    }))
    const client = {
      acquireConnection: async () => ({ query: async () => ({ rows }) }),
      releaseConnection: async () => {},
      emit: () => true,
    }
    const stored = { client, userParams: tx.userParams } as unknown as typeof tx
    await createUnifiedMappings({ clock: manualClock() }).find(stored, account(own, 'lazy'), CANDIDATES)
    expect([reads.get('get')! > 1, reads.get('list')]).toEqual([true, 1])
  })

  it('merges base under environment, what all methods share under the method, and only of its own team', async () => {
    const name = 'layered'
    const shared = { resource: 'people', method: 'get' }
    await store(own, { name, isBase: true, config: { ...shared, ...field('id', 'id') }, method: 'get' })
    await store(own, { name, isBase: true, config: field('title', 'base') })
    await store(own, { name, config: field('title', 'ours') })
    await store(own, { name, config: field('company', 'firm'), method: 'get' })
    const { merged } = await createUnifiedMappings({ clock: manualClock() }).find(tx, account(own, name), CANDIDATES)
    expect(merged.config).toEqual({ ...shared, response: { fields: { id: 'id', title: 'ours', company: 'firm' } } })
    expect(Object.fromEntries(merged.layers)).toEqual({
      resource: 'base',
      method: 'base',
      'response.fields.id': 'base',
      'response.fields.title': 'environment',
      'response.fields.company': 'environment',
    })
    await expect(
      createUnifiedMappings({ clock: manualClock() }).find(tx, account(other, name), CANDIDATES),
    ).rejects.toMatchObject({ reason: 'UNIFIED_NOT_MAPPED' })
  })

  it('takes the rules of what its expanded references show, of any model, as they are stored', async () => {
    const name = 'referring'
    const clock = manualClock()
    const mappings = createUnifiedMappings({ clock })
    const load = (fields: JsonObject) => ({ resource: 'people', method: 'get', ids: 'x', fields })
    const loads = { job: load({ name: 'n', status: 's' }), credited_to: load({ username: 'u' }) }
    const applications = { resource: 'applications', method: 'get', ...field('id', 'id'), expand: loads }
    const jobs = {
      resource: 'jobs',
      method: 'list',
      ...field('id', 'id'),
      enums: { status: { map: { live: 'open' } } },
    }
    await store(own, { name, resource: 'applications', method: 'get', config: applications })
    await store(own, { name, resource: 'jobs', method: 'list', config: jobs })
    const find = () => mappings.find(tx, account(own, name), { ...CANDIDATES, resource: 'applications' })
    const expanded = async (reference: string, given: JsonObject) => {
      const plan = (await find()).plan.expansions.get(reference)?.value
      return plan && coerceExpanded(plan, given, { warnings: undefined, includeSensitive: false })
    }

    expect(await statementsOf(find)).toBe(2)
    expect(await statementsOf(find)).toBe(0)
    expect((await find()).plan).toBe((await find()).plan)
    expect(await expanded('job', { status: 'live' })).toEqual({ status: 'open', status_raw: 'live' })
    expect(await expanded('credited_to', { username: 7 })).toEqual({ username: '7' })

    const sensitive = { properties: { username: { 'x-sensitive': true } } }
    await database.transaction((tx) =>
      createModel(tx, own.teamId, { name: 'directory', config: { resources: { users: { schema: sensitive } } } }),
    )
    clock.move(501)
    expect(await expanded('credited_to', { username: 7 })).toEqual({})
  })

  it('whose layers do not fit together fails alone, and is left out of the list', async () => {
    const name = 'broken'
    const whole = { resource: 'people', method: 'get', ...field('id', 'id') }
    await store(own, { name, config: whole, method: 'get' })
    await store(own, { name, config: { ...whole, filters: 1 }, method: 'list' })
    const mappings = createUnifiedMappings({ clock: manualClock() })
    await expect(mappings.find(tx, account(own, name), { ...CANDIDATES, method: 'list' })).rejects.toMatchObject({
      reason: 'DEFINITION_INVALID',
    })
    expect((await mappings.list(tx, account(own, name), 'ats')).map(({ method }) => method)).toEqual(['get'])
    const { resources } = await mappings.describe(tx, account(own, name), 'ats', 'candidates')
    const problems = resources[0]?.methods.map(({ name: method, problems: all }) => [method, all.length])
    expect(problems).toEqual([
      ['get', 0],
      ['list', 1],
    ])
  })

  it.each([
    ['resources of the model', 'hubspot', { model: 'crm', resource: 'leads', method: 'get' }, 'crm/contacts'],
    ['models', 'github', CANDIDATES, 'mapped are ticketing'],
    ['nothing', 'elsewhere', CANDIDATES, 'none is mapped'],
  ])('of a resource without one fails and names the %s that are mapped', async (_, name, ref, text) => {
    await expect(
      createUnifiedMappings({ clock: manualClock() }).find(tx, account(other, name), ref),
    ).rejects.toMatchObject({ reason: 'UNIFIED_NOT_MAPPED', publicMessage: expect.stringContaining(text) })
  })

  it.each([
    ['model', { ...CANDIDATES, model: 'crn' }, 'did you mean crm? There are accounting, ats'],
    ['resource', { ...CANDIDATES, resource: 'candidate' }, 'candidates'],
    ['method', { ...CANDIDATES, method: 'hire' }, 'get'],
  ])('of an unknown %s fails and names what there is', async (_, ref, text) => {
    const mappings = createUnifiedMappings({ clock: manualClock() })
    await expect(mappings.find(tx, account(own), ref)).rejects.toMatchObject({
      reason: 'UNIFIED_NOT_MAPPED',
      publicMessage: expect.stringContaining(text),
    })
  })
})
