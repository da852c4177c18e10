import { type DescField, type DescMethodUnary, getOption } from '@bufbuild/protobuf'
import { field as fieldRules } from '@bufbuild/protovalidate/gen/buf/validate/validate_pb.js'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { EventService } from '../../gen/patchbay/v1/event_service_pb.ts'
import { newId } from '../../src/foundation/base/index.ts'
import { execute } from '../../src/foundation/database/index.ts'
import type { Json, JsonObject } from '../../src/foundation/json/index.ts'
import { SCAN_ROWS_MAX } from '../../src/platform/call-log/sql.ts'
import { startTestApp } from '../support/app.ts'
import { caseCount, someCases } from '../support/case-count.ts'
import { testDatabase } from '../support/database.ts'
import { OPERATIONS } from '../support/operations.ts'
import { firstTenant, seedTenant } from '../support/seeded-tenant.ts'
import {
  addRowsLike,
  recordStatements,
  type SentStatement,
  type StatementCost,
  StatementCosts,
} from '../support/statement-costs.ts'
import { acceptableRequest, addHeldRun, addHistory, idLocations } from '../support/tenancy-matrix.ts'

const { database, url } = await testDatabase()
const app = await startTestApp({}, database)
const admin = app.client('connect', { token: app.first.teamToken, environment: app.first.environmentId })
const seeded = await addHeldRun(app.client('connect'), await seedTenant(app, firstTenant(app)))
const tenant = { ...seeded, ...(await addHistory(database, seeded)) }
const costs = new StatementCosts(url)
afterAll(() => costs[Symbol.asyncDispose]())

/** Rows of each list, where nothing else bounds them. */
const ROWS = caseCount(2_500, 5_000, 50_000)
/** What all rows of a list have but the oldest two, and no row that they refer to. */
const COMMON_ID = newId()
const COMMON_TEXT = 'common'
/** The first of the other jobs: a trigger shows what its job reads. */
const COMMON_JOB_ID = `${tenant.syncJobId.slice(0, 24)}000000000001`
const COMMON_EVENT = String((await admin.ok(EventService.method.getEvent, { id: tenant.eventId })).type)
const ABSENT_EVENT = 'link_token:completed'

/** Ids of the moment of the row that is repeated: above its own, in the same day. */
const numbered = (column: string) => `(left(source.${column}::text, 24) || lpad(to_hex(n), 12, '0'))::uuid`
const ids = (...columns: readonly string[]) => columns.map((column) => `'${column}', '${COMMON_ID}'`).join(', ')

interface ListTable {
  readonly table: string
  /** SQL: the condition of the row that is repeated. */
  readonly like: string
  /** SQL: what the others have instead. */
  readonly changes: string
  /** SQL: what the oldest of the others has. */
  readonly rare?: string
  /** There are never more for one environment or team. */
  readonly most?: number
}

/** The tables of all lists. The seeded row, the oldest, and the next one have what no other has. */
const TABLES: readonly ListTable[] = [
  { table: 'team', like: `id = '${tenant.teamId}'`, changes: `'id', ${numbered('id')}, 'is_operator', false` },
  {
    table: 'environment',
    like: `id = '${tenant.environmentId}'`,
    changes: `'id', ${numbered('id')}, 'name', 'e' || n`,
    most: 1_000,
  },
  {
    table: 'api_token',
    like: `id = '${tenant.apiTokenId}'`,
    changes: `'id', ${numbered('id')}, 'token_hash', sha256(n::text::bytea)`,
  },
  {
    table: 'integration',
    like: `id = '${tenant.integrationId}'`,
    changes: `'id', ${numbered('id')}, 'name', 'i' || n, 'config', '{}'::jsonb`,
    most: 1_000,
  },
  {
    table: 'integration_grant',
    like: `integration_id = '${tenant.integrationId}'`,
    changes: `'team_id', gen_random_uuid(), 'created_at', source.created_at + n * interval '1 second'`,
  },
  {
    table: 'environment_integration',
    like: `id = '${tenant.environmentIntegrationId}'`,
    changes: `'id', ${numbered('id')}, 'integration_id', left('${tenant.integrationId}', 24) || lpad(to_hex(n), 12, '0')`,
    rare: 'is_enabled = false, show_in_catalog = true',
    most: 1_000,
  },
  {
    table: 'integrated_account',
    like: `id = '${tenant.integratedAccountId}'`,
    changes: `'id', ${numbered('id')}, 'tenant_id', '${COMMON_TEXT}', 'status', 'active',
      'environment_integration_id', left('${tenant.environmentIntegrationId}', 24) || lpad(to_hex(2), 12, '0')`,
    rare: `status = 'needs_reauth', is_sandbox = true, region = 'eu', credential = 'rare'`,
  },
  {
    table: 'link_session',
    like: `id = '${tenant.linkTokenId}'`,
    changes: `'id', ${numbered('id')}, 'tenant_id', '${COMMON_TEXT}', 'status', 'completed', ${ids('integrated_account_id')}`,
    rare: `status = 'failed'`,
  },
  { table: 'sync_job', like: `id = '${tenant.syncJobId}'`, changes: `'id', ${numbered('id')}` },
  {
    table: 'sync_job_cron_trigger',
    like: `id = '${tenant.syncJobCronTriggerId}'`,
    changes: `'id', ${numbered('id')}, 'sync_job_id', '${COMMON_JOB_ID}', ${ids('integrated_account_id')}`,
  },
  {
    table: 'trigger_schedule',
    like: `trigger_id = '${tenant.syncJobCronTriggerId}'`,
    changes: `'trigger_id', ${numbered('trigger_id')}`,
  },
  {
    table: 'sync_job_run',
    like: `id = '${tenant.syncJobRunId}'`,
    changes: `'id', ${numbered('id')}, 'status', 'completed', 'trigger_id', '${COMMON_ID}',
      'scheduled_for', source.scheduled_for + n * interval '1 millisecond', 'sync_job_id', '${COMMON_JOB_ID}',
      ${ids('integrated_account_id')}`,
    rare: `status = 'failed'`,
  },
  {
    table: 'missed_ticks',
    like: `trigger_id = '${tenant.syncJobCronTriggerId}'`,
    changes: `'last_at', source.last_at + n * interval '1 second'`,
  },
  {
    table: 'daemon',
    like: `id = '${tenant.daemonId}'`,
    changes: `'id', ${numbered('id')}, 'group_key', '${COMMON_TEXT}'`,
    most: 1_000,
  },
  { table: 'webhook', like: `id = '${tenant.webhookId}'`, changes: `'id', ${numbered('id')}`, most: 1_000 },
  {
    table: 'delivery',
    like: `id = '${tenant.deliveryId}'`,
    changes: `'id', ${numbered('id')}, 'state', 'delivered', 'finished_at', now(), 'next_attempt_at', null,
      'event_type', '${COMMON_EVENT}', ${ids('event_id', 'webhook_id', 'integrated_account_id')}`,
    rare: `state = 'failed'`,
  },
  {
    table: 'event',
    like: `id = '${tenant.eventId}'`,
    changes: `'id', ${numbered('id')}, ${ids('subject_id', 'integrated_account_id')}`,
  },
  {
    table: 'inbound_event',
    like: `id = '${tenant.inboundEventId}'`,
    changes: `'id', ${numbered('id')}, ${ids('source_id', 'integrated_account_id')}`,
    rare: `state = 'unrouted'`,
  },
  {
    table: 'inbound_item',
    like: `inbound_event_id = '${tenant.inboundEventId}'`,
    changes: `'inbound_event_id', ${numbered('inbound_event_id')}, 'lookup_value', '${COMMON_TEXT}', ${ids('integrated_account_id')}`,
  },
  {
    table: 'task',
    like: `id = '${tenant.taskId}'`,
    changes: `'id', ${numbered('id')}, 'state', 'completed'`,
    rare: `state = 'failed'`,
  },
  {
    table: 'unified_model',
    like: `team_id = '${tenant.teamId}'`,
    changes: `'id', ${numbered('id')}, 'name', 'm' || n`,
    most: 50,
  },
  {
    table: 'unified_mapping',
    like: `id = '${tenant.unifiedMappingId}'`,
    changes: `'id', ${numbered('id')}, 'model', '${COMMON_TEXT}', 'integration_name', '${COMMON_TEXT}', 'resource', 'r' || n`,
    most: 5_000,
  },
  {
    table: 'tool_server',
    like: `id = '${tenant.toolServerId}'`,
    changes: `'id', ${numbered('id')}, ${ids('integrated_account_id')}`,
    most: 1_000,
  },
  {
    table: 'tool_server_call',
    like: `tool_server_id = '${tenant.toolServerId}'`,
    changes: `'id', ${numbered('id')}`,
    rare: `error_type = 'validation'`,
  },
  {
    table: 'call_log_entry',
    like: `id = '${tenant.callLogEntryId}'`,
    changes: `'id', ${numbered('id')}, 'resource', '${COMMON_TEXT}', 'cause', 'call', 'cause_id', '${COMMON_TEXT}', 'class', 'success',
      ${ids('integrated_account_id', 'environment_integration_id')}`,
    rare: `class = 'error', cause = 'run', resource = 'rare'`,
  },
  {
    table: 'audit_entry',
    like: `target_id = '${tenant.webhookId}'`,
    changes: `'id', ${numbered('id')}, 'method', '${COMMON_TEXT}', 'target_id', '${COMMON_TEXT}', ${ids('actor_id')}`,
  },
]

/** Many rows take minutes. */
const SEEDING_MS = 900_000

/** Rows that no call of `seedTenant` makes. */
async function seedOthers(): Promise<void> {
  const own = { environmentId: tenant.environmentId, id: newId() }
  await execute(
    database.pool,
    `insert into integration_grant (integration_id, team_id) values ('${tenant.integrationId}', '${tenant.teamId}')`,
  )
  await execute(
    database.pool,
    `insert into missed_ticks (environment_id, trigger_id, first_at, last_at, count)
     values (:environmentId, :id, now(), now(), 1)`,
    { ...own, id: tenant.syncJobCronTriggerId },
  )
  await execute(
    database.pool,
    `insert into inbound_item (environment_id, inbound_event_id, index, state, is_replay, integrated_account_id, lookup_value)
     values (:environmentId, :id, 0, 'unrouted', false, :accountId, 'rare')`,
    { ...own, id: tenant.inboundEventId, accountId: tenant.integratedAccountId },
  )
  await execute(
    database.pool,
    `insert into unified_model (id, team_id, name, config) values (:id, '${tenant.teamId}', 'rare', '{}')`,
    { id: newId() },
  )
  await execute(
    database.pool,
    `insert into tool_server_call (environment_id, id, tool_server_id, tool, token_hint, error_type, duration_ms, result_bytes, is_dry_run)
     values (:environmentId, :id, '${tenant.toolServerId}', 'tool', '', '', 1, 1, false)`,
    own,
  )
}

beforeAll(async () => {
  await costs.connect()
  await seedOthers()
  for (const { table, like, changes, rare, most = ROWS } of TABLES)
    await addRowsLike(url, { table, like, changes, rare, count: Math.min(most, ROWS) })
}, SEEDING_MS)

/** Every list of rows; form options are read from third parties. */
const LISTS = OPERATIONS.filter(
  ({ name, input }) => input.fields.some((field) => field.name === 'page_token') && name !== 'ListFormOptions',
)
/** Fields of a list's request that select no rows. */
const NO_FILTERS = ['page_size', 'page_token', 'view', 'include_counts']
const KEY_OF_ID = new Map(idLocations().map(({ name, key }) => [name, key]))

/** Values of a filter: one that no row has, one of the oldest rows, and the one of all others. */
function valuesOf({ name }: DescMethodUnary, field: DescField): readonly Json[] {
  const key = KEY_OF_ID.get(`${name}.${field.name}`)
  if (key !== undefined) return [newId(), tenant[key], key === 'syncJobId' ? COMMON_JOB_ID : COMMON_ID]
  if (field.fieldKind === 'message') return ['2000-01-01T00:00:00Z', '2100-01-01T00:00:00Z']
  if (field.fieldKind === 'list')
    return field.name === 'types' ? [[ABSENT_EVENT], [COMMON_EVENT], ['link_token:*']] : [['absent']]
  const { type } = getOption(field, fieldRules)
  if (type.case === 'string' && type.value.in.length > 0) return type.value.in.filter((each) => each !== '')
  if (type.case === undefined || type.case === 'bool') return [true, false]
  if (field.name === 'type' || field.name === 'event_type') return [ABSENT_EVENT, COMMON_EVENT]
  return ['absent', 'rare', 'acme', COMMON_TEXT]
}

interface ListCall {
  readonly name: string
  readonly method: DescMethodUnary
  readonly request: JsonObject
}

/** Each list without filters, and with each filter alone in each of its values. */
const CALLS: readonly ListCall[] = LISTS.flatMap((method) => {
  const base = acceptableRequest(method, tenant)
  const filters = method.input.fields.filter(({ name }) => !NO_FILTERS.includes(name) && !Object.hasOwn(base, name))
  const alone = filters.flatMap((field) =>
    valuesOf(method, field).map((value) => ({
      name: `${method.name} ${field.name}=${JSON.stringify(value)}`,
      method,
      request: { ...base, [field.name]: value },
    })),
  )
  return [{ name: method.name, method, request: base }, ...alone]
})

/** Pages of 8 KiB and rows that a list may read beyond those of its answer: a table that is bounded, never one that grows. */
const FREE = { pages: 250, rows: 1_100 }
/** A team has so many mappings at most, read in a few pages; a text is compared with so many entries for a page. */
const FREE_ROWS_OF: Readonly<Record<string, number>> = {
  ListUnifiedMappings: 5_100,
  'ListCallLogEntries path_contains': SCAN_ROWS_MAX + 100,
}
/** Pages and rows that a row of the answer may cost: those it refers to, by key. */
const PER_ROW = { pages: 12, rows: 8 }

it.each(someCases(CALLS, 40))('$name reads its page alone', async ({ name, method, request }) => {
  const sent: SentStatement[] = []
  const page = async (token?: Json) => {
    let next: Json | undefined
    const also = token === undefined ? {} : { page_token: token }
    const statements = await recordStatements(async () => {
      next = (await admin.ok(method, { ...request, ...also })).next_page_token
    })
    sent.push(...statements)
    return next
  }
  const next = await page()
  if (typeof next === 'string' && next !== '') await page(next)
  const rowsMax = FREE_ROWS_OF[method.name] ?? FREE_ROWS_OF[name.split('=', 1)[0] ?? ''] ?? FREE.rows
  expect(sent).not.toEqual([])
  const measured: StatementCost[] = []
  for (const statement of sent) measured.push(...(await costs.measure(statement)))
  const excess = measured.filter(
    ({ pages, rowsRead, rowsReturned }) =>
      pages > FREE.pages + rowsReturned * PER_ROW.pages || rowsRead > rowsMax + rowsReturned * PER_ROW.rows,
  )
  expect(excess).toEqual([])
})
