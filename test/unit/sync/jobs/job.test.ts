import { describe, expect, it } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import { execute } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { createUnifiedMappings } from '../../../../src/platform/unified-config/index.ts'
import {
  checkTriggerResources,
  createSyncJob,
  deleteSyncJob,
  getSyncJob,
  listSyncJobs,
  type SyncJobInput,
  updateSyncJob,
} from '../../../../src/sync/jobs/index.ts'
import { testDatabase } from '../../../support/database.ts'
import { fastClock } from '../../../support/fast-clock.ts'
import { countRows, rejectionOf, seedEnvironment, seedInstallation, seedTrigger } from '../../../support/seed-rows.ts'

const { database } = await testDatabase()
const clock = fastClock()
const environmentId = await seedEnvironment(database)
const otherTenant = await seedEnvironment(database)
await seedInstallation(
  ...([database, environmentId, 'github'] as const),
  { resources: { repos: { list: {} }, issues: { list: {} } } },
  { resources: { issues: { get: {} }, teams: { list: {} } } },
)

const mappings = createUnifiedMappings({ clock })

const RESOURCES: JsonObject[] = [
  { resource: 'repos', method: 'list', persist: true },
  { resource: 'issues', method: 'list', depends_on: 'repos', query: { repo: '{{resources.repos.name}}' } },
]

async function create(input: Partial<SyncJobInput> = {}, environment = environmentId) {
  clock.advance(1)
  const job = { label: 'Job', integrationName: 'github', resources: RESOURCES, ...input }
  return await database.transaction((tx) => createSyncJob({ clock, mappings }, tx, environment, job))
}

const update = (input: Parameters<typeof updateSyncJob>[3], environment = environmentId) =>
  database.transaction((tx) => updateSyncJob({ mappings }, tx, environment, input))

describe('creating a job', () => {
  it('stores it as given, with an empty schema and no check by default', async () => {
    const job = await create()
    expect(job).toMatchObject({
      environmentId,
      label: 'Job',
      integrationName: 'github',
      resources: RESOURCES,
      argsSchema: {},
      argsValidation: '',
      version: 1,
    })
    expect(await getSyncJob(database.pool, environmentId, job.id)).toEqual(job)
  })

  it('does not need the integration installed, and then cannot know its methods', async () => {
    const job = await create({ integrationName: 'later', resources: [{ resource: 'anything', method: 'list' }] })
    expect(job.integrationName).toBe('later')
  })

  it.each<{ name: string; input: Partial<SyncJobInput>; reason: string; fields: string[] }>([
    {
      name: 'a method the installed definition lacks, under its override',
      input: {
        resources: [
          { resource: 'teams', method: 'list' },
          { resource: 'repos', method: 'get' },
        ],
      },
      reason: 'RESOURCES_INVALID',
      fields: ['resources[1].method'],
    },
    {
      name: 'everything wrong at once',
      input: {
        resources: [{ resource: 'nope', method: 'list', depends_on: 'gone', loop_on: 'kinds' }],
        argsSchema: { properties: { kinds: { type: 'string' } }, oneOf: [] },
        argsValidation: 'a +',
      },
      reason: 'RESOURCES_INVALID',
      fields: [
        'resources[0].depends_on',
        'resources[0].loop_on',
        'resources[0].resource',
        'args_schema.oneOf',
        'args_validation',
      ],
    },
    {
      name: 'a schema that would not be held',
      input: { argsSchema: { not: {} } },
      reason: 'INVALID_FIELD',
      fields: ['args_schema.not'],
    },
    {
      name: 'a check that does not parse',
      input: { argsValidation: '$.(' },
      reason: 'EXPRESSION_FAILED',
      fields: ['args_validation'],
    },
    {
      name: 'a node that is no node',
      input: { resources: [{ resource: 'repos', method: 'list', persist: 'yes' }] },
      reason: 'RESOURCES_INVALID',
      fields: ['resources[0]'],
    },
  ])('is refused with $name', async ({ input, reason, fields }) => {
    const count = async () =>
      (await listSyncJobs(database.pool, environmentId, { before: undefined, limit: 1000 })).length
    const before = await count()
    expect(await rejectionOf(create(input))).toEqual({ reason, fields })
    expect(await count()).toBe(before)
  })
})

describe('what the path of a method needs', () => {
  it('is required of jobs that are made or changed, and of resources of a trigger', async () => {
    const labels = { labels: { list: { path: '/{{query.repo}}/labels' }, get: { path: '/labels/{{id}}' } } }
    await seedInstallation(database, environmentId, 'tracker', { resources: labels }, {})
    const lacking = ['list', 'get'].map((method) => ({ resource: 'labels', method }))
    const given = [{ resource: 'labels', method: 'list', query: { repo: '{{args.repo}}' } }]
    const rejected = { reason: 'RESOURCES_INVALID', fields: ['resources[0].query.repo', 'resources[1].id'] }

    expect(await rejectionOf(create({ integrationName: 'tracker', resources: lacking }))).toEqual(rejected)
    const { id } = await create({ integrationName: 'tracker', resources: given })
    expect(await rejectionOf(update({ id, resources: lacking }))).toEqual(rejected)
    const found = await checkTriggerResources(mappings, database.pool, environmentId, id, lacking)
    expect(found.map(({ field }) => field)).toEqual(rejected.fields)
  })
})

describe('reading jobs', () => {
  it('does not tell a foreign id from an unknown one', async () => {
    const job = await create()
    for (const [environment, wanted] of [
      [otherTenant, job.id],
      [environmentId, newId()],
    ] as const)
      expect((await rejectionOf(getSyncJob(database.pool, environment, wanted))).reason).toBe('RESOURCE_NOT_FOUND')
  })

  it('lists the newest first, below an id, of one environment', async () => {
    const other = await seedEnvironment(database)
    const ids = [await create({}, other), await create({}, other), await create({}, other)]
      .map(({ id }) => id)
      .reverse()
    const list = async (before: string | undefined, limit: number) =>
      (await listSyncJobs(database.pool, other, { before, limit })).map(({ id }) => id)
    expect(await list(undefined, 2)).toEqual(ids.slice(0, 2))
    expect(await list(ids[1], 2)).toEqual(ids.slice(2))
  })
})

describe('changing a job', () => {
  it('changes the given fields alone and counts the version', async () => {
    const job = await create({ argsValidation: 'args.x' })
    const changed = await update({ id: job.id, label: 'New', version: 1 })
    expect(changed).toMatchObject({ label: 'New', resources: RESOURCES, argsValidation: 'args.x', version: 2 })
    const cleared = await update({ id: job.id, argsValidation: '', resources: [{ resource: 'repos', method: 'list' }] })
    expect(cleared).toMatchObject({
      argsValidation: '',
      resources: [{ resource: 'repos', method: 'list' }],
      version: 3,
    })
  })

  it('with nothing given changes nothing', async () => {
    const job = await create()
    expect(await update({ id: job.id, version: 1 })).toEqual(job)
  })

  it('checks new fields together with stored ones', async () => {
    const job = await create({ resources: [{ resource: 'repos', method: 'list', loop_on: 'kinds' }] })
    const rejection = await rejectionOf(
      update({ id: job.id, argsSchema: { properties: { kinds: { type: 'string' } } } }),
    )
    expect(rejection).toEqual({ reason: 'RESOURCES_INVALID', fields: ['resources[0].loop_on'] })
    expect(await getSyncJob(database.pool, environmentId, job.id)).toEqual(job)
  })

  it('is rejected with another version, of another environment, and with resources that make no plan', async () => {
    const { id } = await create()
    expect((await rejectionOf(update({ id, version: 2, label: 'x' }))).reason).toBe('ETAG_MISMATCH')
    expect((await rejectionOf(update({ id, label: 'x' }, otherTenant))).reason).toBe('RESOURCE_NOT_FOUND')
    expect((await rejectionOf(update({ id, resources: [] }))).reason).toBe('RESOURCES_INVALID')
  })

  it('twice with the same version at the same moment succeeds once', async () => {
    const { id } = await create()
    const results = await Promise.allSettled(['a', 'b', 'c'].map((label) => update({ id, label, version: 1 })))
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await getSyncJob(database.pool, environmentId, id)).toMatchObject({ version: 2 })
  })
})

describe('deleting a job', () => {
  const remove = (id: string, rest: { force?: boolean; version?: number } = {}, environment = environmentId) =>
    database.transaction((tx) => deleteSyncJob(tx, environment, { id, ...rest }))

  it('is done once', async () => {
    const { id } = await create()
    expect((await rejectionOf(remove(id, { version: 2 }))).reason).toBe('ETAG_MISMATCH')
    await remove(id, { version: 1 })
    expect((await rejectionOf(remove(id))).reason).toBe('RESOURCE_NOT_FOUND')
  })

  it('forgets where its syncs stood', async () => {
    const { id } = await create()
    const stood = 'environment_id = :environmentId and sync_job_id = :id'
    await execute(
      database.pool,
      "insert into previous_run (environment_id, sync_job_id, integrated_account_id, trigger_id, resource_key, started_at) values (:environmentId, :id, :integratedAccountId, :triggerId, 'key', now())",
      { environmentId, id, integratedAccountId: newId(), triggerId: newId() },
    )
    await remove(id)
    expect(await execute(database.pool, `select from previous_run where ${stood}`, { environmentId, id })).toBe(0)
  })

  it('is rejected while a trigger runs it, and with force deletes the trigger too', async () => {
    const { id } = await create()
    const trigger = await seedTrigger(database, environmentId, { syncJobId: id })
    expect((await rejectionOf(remove(id))).reason).toBe('RESOURCE_IN_USE')
    expect((await rejectionOf(remove(id, { force: true }, otherTenant))).reason).toBe('RESOURCE_NOT_FOUND')
    expect(await countRows(database, 'sync_job_cron_trigger', trigger)).toBe(1)
    await remove(id, { force: true })
    expect(await countRows(database, 'sync_job_cron_trigger', trigger)).toBe(0)
  })
})

describe('resources of a trigger', () => {
  it('are held to the same rules as those of its job', async () => {
    const job = await create()
    const find = (jobId: string, method: string) =>
      checkTriggerResources(mappings, database.pool, environmentId, jobId, [{ resource: 'issues', method }])
    expect(await find(job.id, 'delete')).toMatchObject([{ field: 'resources[0].method' }])
    expect(await find(job.id, 'get')).toEqual([])
    expect(await find(newId(), 'delete')).toEqual([])
  })
})
