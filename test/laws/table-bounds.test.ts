import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { query } from '../../src/foundation/database/database.ts'
import { testDatabase } from '../support/database.ts'

const ROOT = join(import.meta.dirname, '../..')
const { database } = await testDatabase()

/** What keeps a table, or a document in one, from growing for ever. */
type Bound =
  /** Rows are deleted by this loop of the workers, or by this setting of days. */
  | { readonly kind: 'deleted'; readonly by: string; readonly after: string }
  /** Rows exist while work waits or is under way; this ends it. */
  | { readonly kind: 'work'; readonly endsBy: string }
  /** So many for each parent, with which they go; the test exceeds it. */
  | { readonly kind: 'bounded'; readonly most: string; readonly test: string }
  /** One for each parent: the primary key is a foreign key. */
  | { readonly kind: 'one'; readonly of: string }
  /** What people and applications set up, one call each. */
  | { readonly kind: 'configuration' }

const CONFIGURATION: Bound = { kind: 'configuration' }
const WHOLE_DAYS = 'so many whole days'
const days = (setting: string): Bound => ({ kind: 'deleted', by: setting, after: WHOLE_DAYS })
const loop = (by: string, after: string): Bound => ({ kind: 'deleted', by, after })
const work = (endsBy: string): Bound => ({ kind: 'work', endsBy })
const one = (of: string): Bound => ({ kind: 'one', of })
const bounded = (most: string, test: string): Bound => ({ kind: 'bounded', most, test })

/** Every table of the schema. A new one is entered with the mechanism that ends its rows. */
const TABLES: Readonly<Record<string, Bound>> = {
  account_removal: work('eight attempts, about a day'),
  account_token: one('integrated_account'),
  api_token: loop(
    'browser-tokens',
    'an hour after it expired, when it is of a page in a browser; others are configuration',
  ),
  audit_entry: days('auditRetentionDays'),
  call_hour: loop('call-hours', 'seven whole days'),
  call_log_drop: days('callLogRetentionDays'),
  call_log_entry: days('callLogRetentionDays'),
  connect_logo: loop('connect-logos', '30 days without use'),
  context_object: loop('context-object-deletions', 'an hour after it was replaced, or its account deleted'),
  daemon: loop('daemons', 'a day without a call'),
  data_key: CONFIGURATION,
  data_key_rotation: work('its last value, or the key of the owner'),
  delivery: days('deliveryRetentionDays'),
  delivery_attempt: days('deliveryAttemptRetentionDays'),
  delivery_lease: work('the reaper'),
  delivery_queue: work('ten attempts, three days'),
  environment: CONFIGURATION,
  environment_integration: CONFIGURATION,
  event: days('eventRetentionDays'),
  event_dispatch: work('a round of the dispatcher'),
  figure: bounded('one for each state, kind and day that is kept', 'test/laws/figures.test.ts'),
  figure_delta: work('a round of the loop that folds'),
  idempotency_key: loop('idempotency-keys', 'a day'),
  inbound_content: days('inboundContentRetentionDays'),
  inbound_dedupe: loop('inbound-cleaner', 'the window of the definition, at most 30 days'),
  inbound_event: days('inboundEventRetentionDays'),
  inbound_item: days('inboundEventRetentionDays'),
  inbound_lease: work('the reaper'),
  inbound_queue: work('its attempts'),
  inbound_short_lived: loop('inbound-cleaner', 'a day, and a number an hour for each address'),
  integrated_account: CONFIGURATION,
  integrated_account_history: bounded('ACCOUNT_HISTORY_MAX', 'test/unit/platform/accounts/account-signals.test.ts'),
  integration: CONFIGURATION,
  integration_grant: CONFIGURATION,
  key_encryption_key: CONFIGURATION,
  key_ring_process: loop('key-ring', 'an hour without an announcement'),
  link_session: loop('link-sessions', '30 days after its end, which its lifetime brings'),
  link_session_transition: loop('link-sessions', 'with the session'),
  missed_ticks: days('runRetentionDays'),
  previous_run: bounded('PREVIOUS_RUNS_MAX', 'test/unit/sync/runs/previous-run.test.ts'),
  request_budget: loop('budgets', 'two days without a request'),
  request_slot: loop('budgets', 'the lease of the slot'),
  run_checkpoint: loop('retention', 'with the day of the run'),
  run_lease: work('the reaper'),
  run_queue: work('five attempts, a trigger waits with one run at a time'),
  secret: CONFIGURATION,
  sync_hint: work('the start of its syncs'),
  sync_job: CONFIGURATION,
  sync_job_cron_trigger: CONFIGURATION,
  sync_job_run: days('runRetentionDays'),
  task: loop('task-retention', 'days after its end'),
  team: CONFIGURATION,
  token_host: loop('token-hosts', 'an hour without a request'),
  tool_server: CONFIGURATION,
  tool_server_call: days('toolCallRetentionDays'),
  trigger_schedule: one('sync_job_cron_trigger'),
  unified_mapping: CONFIGURATION,
  unified_model: CONFIGURATION,
  webhook: CONFIGURATION,
  webhook_activity: one('integrated_account'),
  webhook_context_key: bounded('CONTEXT_KEYS_MAX', 'test/unit/platform/accounts/webhook-context.test.ts'),
  webhook_failure: one('webhook'),
  webhook_subscription: bounded(
    'one for each event of the definition',
    'test/unit/platform/subscriptions/subscriber.test.ts',
  ),
  worker: loop('presence', 'a while without a heartbeat'),
}

/** Every document: a column of JSON. `whole`: a write replaces it, and the body of one request bounds it. */
const DOCUMENTS: Readonly<Record<string, string>> = {
  'account_token.error': 'whole: kind and message of the last error, cut',
  'api_token.limits': 'written once, at most 200 names',
  'audit_entry.changes': 'written once, a field of the request each, values cut',
  'delivery_attempt.request_headers': 'written once',
  'delivery_attempt.response_headers': 'written once, the egress client bounds headers',
  'environment_integration.override': 'whole',
  'event.payload': 'written once, at most 256 KiB (limitPayload)',
  'inbound_content.headers': 'written once, the server bounds headers',
  'inbound_content.payload': 'written once, bounded as the body',
  'inbound_event.error': 'whole',
  'inbound_event.trace': 'whole: one entry a step',
  'integrated_account.context': 'merged: CONTEXT_LENGTH_MAX',
  'integrated_account.last_action_result': 'merged: one entry a step, cut',
  'integrated_account.last_forbidden_error': 'whole',
  'integration.config': 'whole',
  'link_session.context': 'whole',
  'link_session.form_values': 'whole',
  'run_checkpoint.checkpoint': 'whole',
  'run_checkpoint.ending': 'whole',
  'run_checkpoint.resource_stats': 'whole: one entry a node',
  'sync_hint.items': 'appended: the first items (ITEMS_MAX)',
  'sync_job.args_schema': 'whole',
  'sync_job.resources': 'whole',
  'sync_job_cron_trigger.args': 'whole',
  'sync_job_cron_trigger.resources': 'whole',
  'sync_job_run.args': 'whole',
  'sync_job_run.error': 'whole',
  'sync_job_run.resource_stats': 'whole: one entry a node',
  'sync_job_run.resources': 'whole',
  'task.cursor': 'whole',
  'task.params': 'written once',
  'task.result': 'whole: counts',
  'tool_server.filter': 'whole',
  'unified_mapping.config': 'whole, and together bounded for each scope',
  'unified_model.config': 'whole',
  'webhook.filter': 'whole',
  'webhook_subscription.external_id': 'whole: one value of an answer',
  'webhook_subscription.replaced_id': 'whole: one value of an answer',
}

const SOURCES = globSync('src/**/*.ts', { cwd: ROOT }).map((path) => readFileSync(join(ROOT, path), 'utf8'))
const WORKER = readFileSync(join(ROOT, 'src/server/worker-process.ts'), 'utf8')
const isInSources = (text: string) => SOURCES.some((source) => source.includes(text))

it('every table has something that ends its rows', async () => {
  const tables = await query<{ readonly name: string }>(
    database.pool,
    `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
       and not relispartition and relname not like 'patchbay_migrations%' order by 1`,
  )
  expect(tables.map(({ name }) => name)).toEqual(Object.keys(TABLES))
})

it.each(Object.entries(TABLES))('%s is bounded by what it says', async (table, bound) => {
  switch (bound.kind) {
    case 'deleted': {
      const isRead =
        bound.after === WHOLE_DAYS
          ? WORKER.includes(`config.${bound.by}`) ||
            new RegExp(`\\{.*\\b${bound.by}\\b.*\\} = config$`, 'm').test(WORKER)
          : isInSources(`name: '${bound.by}'`)
      expect(isRead, bound.by).toBe(true)
      if (bound.after === WHOLE_DAYS) expect(isInSources(`name: '${table}'`), 'it is partitioned by days').toBe(true)
      return
    }
    case 'bounded':
      expect(existsSync(join(ROOT, bound.test))).toBe(true)
      if (/^[A-Z_]+$/.test(bound.most)) {
        expect(isInSources(`const ${bound.most} = `)).toBe(true)
        expect(readFileSync(join(ROOT, bound.test), 'utf8')).toContain(bound.most)
      }
      return
    case 'one': {
      const keys = await query<{ readonly columns: readonly string[]; readonly kind: string; readonly parent: string }>(
        database.pool,
        `select contype as kind, confrelid::regclass::text as parent, array(
           select attname::text from unnest(conkey) column_number
           join pg_attribute on attrelid = conrelid and attnum = column_number order by 1) as columns
         from pg_constraint where conrelid = :table::regclass and contype in ('p', 'f')`,
        { table },
      )
      const primary = keys.find(({ kind }) => kind === 'p')?.columns ?? []
      const foreign = keys.find(({ kind, parent }) => kind === 'f' && parent === bound.of)?.columns ?? []
      expect(foreign).toEqual(expect.arrayContaining([...primary]))
      return
    }
  }
})

it('every document has something that bounds it', async () => {
  const columns = await query<{ readonly name: string }>(
    database.pool,
    `select relname || '.' || attname as name from pg_class join pg_attribute on attrelid = pg_class.oid
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition
       and atttypid in ('json'::regtype, 'jsonb'::regtype) and attnum > 0 and not attisdropped order by relname, attname`,
  )
  expect(columns.map(({ name }) => name)).toEqual(Object.keys(DOCUMENTS))
})
