import type { DescMethodUnary } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { EnvironmentIntegrationService } from '../../gen/patchbay/v1/environment_integration_service_pb.ts'
import { IntegratedAccountService } from '../../gen/patchbay/v1/integrated_account_service_pb.ts'
import { SyncJobService } from '../../gen/patchbay/v1/sync_job_service_pb.ts'
import { WebhookService } from '../../gen/patchbay/v1/webhook_service_pb.ts'
import { Failure, newId } from '../../src/foundation/base/index.ts'
import { execute, jsonb, mapDatabaseError, query } from '../../src/foundation/database/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { caseCount, runSeed } from '../support/case-count.ts'
import { testDatabase } from '../support/database.ts'
import { fastClock } from '../support/fast-clock.ts'
import { interleavings, type Lane } from '../support/interleavings.ts'
import { laneCalls } from '../support/lane-calls.ts'
import { KINDS, type ResourceKind } from '../support/operations.ts'
import { EXAMPLE_CONFIG, type SeededTenant } from '../support/seeded-tenant.ts'
import { createTenant } from '../support/tenant.ts'

const { target, database } = await testDatabase()
const app = await startTestApp({}, database)
const { expectAlways } = interleavings(target, fastClock())
const call = laneCalls(app)
const alone: Lane = { database, clock: fastClock(), step: async () => {} }

/** A team with what the creations below refer to. */
type World = Pick<
  SeededTenant,
  | 'teamId'
  | 'environmentId'
  | 'integrationId'
  | 'environmentIntegrationId'
  | 'integratedAccountId'
  | 'syncJobId'
  | 'webhookId'
>

async function arrange(): Promise<World> {
  const { environmentId, installationId, accountIds, ...rest } = await createTenant(database)
  const [found] = await query<{ readonly teamId: string; readonly integrationId: string }>(
    database.pool,
    `select team_id, integration_id from environment join environment_integration installation
       on installation.environment_id = environment.id where environment.id = :environmentId`,
    { environmentId },
  )
  if (found === undefined) throw new Error('the tenant has no installation')
  await execute(database.pool, 'update integration set config = :config::jsonb where team_id = :teamId', {
    config: jsonb(EXAMPLE_CONFIG),
    teamId: found.teamId,
  })
  const integratedAccountId = accountIds[0] ?? ''
  return {
    ...rest,
    ...found,
    environmentId,
    integratedAccountId,
    environmentIntegrationId: installationId,
  }
}

/** Requests that differ from those of the table of kinds, whose requests make what they need by calls. */
const REQUESTS: Readonly<Record<string, (world: World) => JsonObject>> = {
  link_token: ({ integratedAccountId }) => ({ integrated_account_id: integratedAccountId }),
  sync_job_cron_trigger: ({ syncJobId, integratedAccountId, webhookId }) => ({
    sync_job_id: syncJobId,
    integrated_account_id: integratedAccountId,
    webhook_id: webhookId,
    cron_expression: '0 0 1 1 *',
  }),
  sync_job_run: ({ syncJobId, integratedAccountId, webhookId }) => ({
    sync_job_id: syncJobId,
    integrated_account_id: integratedAccountId,
    webhook_id: webhookId,
  }),
}

async function requestOf(kind: ResourceKind, world: World): Promise<JsonObject> {
  const request = REQUESTS[kind.noun]?.(world)
  return request ?? (await kind.createRequest(world as World & SeededTenant, app.client('connect')))
}

/** A deletion by force. */
interface Deletion {
  readonly method: DescMethodUnary
  readonly idOf: (world: World) => string
  /** Kinds that are created below it. */
  readonly below: readonly string[]
}

const OF_ACCOUNT = ['link_token', 'sync_job_cron_trigger', 'sync_job_run', 'tool_server']
const DELETIONS: readonly Deletion[] = [
  {
    method: EnvironmentIntegrationService.method.deleteEnvironmentIntegration,
    idOf: ({ environmentIntegrationId }) => environmentIntegrationId,
    below: ['integrated_account', ...OF_ACCOUNT],
  },
  {
    method: IntegratedAccountService.method.deleteIntegratedAccount,
    idOf: ({ integratedAccountId }) => integratedAccountId,
    below: OF_ACCOUNT,
  },
  {
    method: SyncJobService.method.deleteSyncJob,
    idOf: ({ syncJobId }) => syncJobId,
    below: ['sync_job_cron_trigger', 'sync_job_run'],
  },
  {
    method: WebhookService.method.deleteWebhook,
    idOf: ({ webhookId }) => webhookId,
    below: ['sync_job_cron_trigger', 'sync_job_run'],
  },
]

const cases = DELETIONS.flatMap((deletion) =>
  deletion.below.map((noun) => ({
    deletion,
    kind: KINDS.find((kind) => kind.noun === noun) as ResourceKind,
    what: deletion.method.name,
  })),
)

function callerOf({ teamId, environmentId }: World) {
  return { kind: 'team', tokenId: newId(), teamId, environmentId, isOperator: false, scopes: undefined } as const
}

/** Every column with an id, by table. */
const COLUMNS_OF_IDS = `select table_name as "table", column_name as "column" from information_schema.columns
  where table_schema = 'public' and data_type = 'uuid' and table_name not in (select relname from pg_class where relispartition)`

interface IdColumn {
  readonly table: string
  readonly column: string
}

let idColumns: readonly IdColumn[] | undefined

/** Where an id is still found, as `table.column`. */
async function placesOf(id: string): Promise<readonly string[]> {
  idColumns ??= await query<IdColumn>(database.pool, COLUMNS_OF_IDS)
  const sql = idColumns
    .map(
      ({ table, column }) => `(select '${table}.${column}' as place from "${table}" where "${column}" = :id limit 1)`,
    )
    .join(' union all ')
  return (await query<{ readonly place: string }>(database.pool, sql, { id })).map(({ place }) => place)
}

/** The error as a caller sees it. */
function failureOf(error: unknown): unknown {
  return mapDatabaseError(error) ?? error
}

/** Some of them, others with each seed, or all. */
function sampleOf<Case>(all: readonly Case[]): readonly Case[] {
  const step = Math.ceil(all.length / caseCount(2, 12, all.length))
  return all.filter((_, index) => (index + runSeed()) % step === 0)
}

/** One of the cases, on a state of its own. */
interface State {
  readonly world: World
  readonly request: JsonObject
}

describe('beside a creation', () => {
  it.each(sampleOf(cases))(
    '$what leaves what it leaves when one comes after the other: $kind.noun',
    async ({ deletion, kind }) => {
      const prepare = async (): Promise<State> => {
        const world = await arrange()
        return { world, request: await requestOf(kind, world) }
      }
      const creation = ({ world, request }: State) => call(kind.create, request, callerOf(world))
      const removal = ({ world }: State) =>
        call(deletion.method, { id: deletion.idOf(world), force: true }, callerOf(world))
      const left = ({ world }: State) => placesOf(deletion.idOf(world))
      // Records such as events outlive what they are about.
      const records = new Set<string>()
      for (const order of [
        [creation, removal],
        [removal, creation],
      ] as const) {
        const state = await prepare()
        for (const each of order) await each(state)(alone).catch(() => {})
        for (const place of await left(state)) records.add(place)
      }
      await expectAlways<State>({
        arrange: prepare,
        operations: (state) => [creation(state), removal(state)],
        async check(state, [created, removed]) {
          expect(removed).toMatchObject({ status: 'fulfilled' })
          if (created?.status === 'rejected') expect(failureOf(created.reason)).toBeInstanceOf(Failure)
          expect((await left(state)).filter((place) => !records.has(place))).toEqual([])
        },
      })
    },
  )
})
