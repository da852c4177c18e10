import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, expect, it } from 'vitest'
import { execute } from '../../../../src/foundation/database/index.ts'
import { type Json, parseJson } from '../../../../src/foundation/json/index.ts'
import { startTestApp } from '../../../support/app.ts'
import { testDatabase } from '../../../support/database.ts'
import { NUMBERS_JSON, NUMBERS_JSONB } from '../../../support/json-numbers.ts'
import { expectJson } from '../../../support/rest.ts'
import { seedChain } from '../../../support/seed.ts'
import { type PagedUpstream, startPagedUpstream } from './support/paged-upstream.ts'
import { startDaemon } from './support/running-daemon.ts'

const app = await startTestApp({ PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' })
const { url: storeUrl } = await testDatabase()
const store = new pg.Pool({ connectionString: storeUrl, max: 2 })
const directory = mkdtempSync(join(tmpdir(), 'patchbay-store-'))
const token = app.first.environmentToken

afterAll(async () => {
  await store.end()
  rmSync(directory, { recursive: true })
})

const IDS = ['12345678901234567890', '12345678901234567891', '12345678901234567892']
const RECORDS = IDS.map((id) => `{"id":${id},"all":${NUMBERS_JSON}}`)
const CHILD = '{"id":1.10,"of":12345678901234567890}'

let groups = 0

/** A run of contacts and their notes by a daemon, with numbers in its arguments. */
async function runWith(address: string, schema: string): Promise<PagedUpstream & { readonly runId: string }> {
  groups++
  const group = `group-${groups}`
  const upstream = await startPagedUpstream({
    records: (path) => (path === '/contacts' ? RECORDS : [CHILD]).map((text): Json => parseJson(text)),
  })
  const { teamToken, environmentToken, environmentId } = app.first
  const tokens = { teamToken, environmentToken, environmentId }
  const chain = await seedChain({ url: app.url, ...tokens, upstreamUrl: upstream.url, name: `crm-${groups}` })
  await call('PATCH', `/environment-integration/${chain.environmentIntegrationId}`, {
    override: { pagination: { config: { limit: 2, total_path: 'total' } } },
  })
  await execute(app.database.pool, `update integrated_account set status = 'active' where id = :integratedAccountId`, {
    integratedAccountId: chain.integratedAccountId,
  })
  await call('PATCH', `/sync-job/${chain.syncJobId}`, {
    resources: [
      {
        resource: 'contacts',
        method: 'list',
        persist: true,
        loop_on: 'tenants',
        query: { tenant: '{{args.tenants}}' },
      },
      { resource: 'notes', method: 'list', depends_on: 'contacts', persist: true },
    ],
  })
  const fields = { sync_job_id: chain.syncJobId, integrated_account_id: chain.integratedAccountId }
  const { id } = await call('POST', '/sync-job-run', {
    ...fields,
    daemon_group_key: group,
    args: { tenants: [parseJson('98765432109876543210')] },
  })
  await using daemon = startDaemon({ url: app.url, token, group, store: address, schema })
  await daemon.logged('a run ended here', { run_id: id, outcome: 'completed' })
  return { ...upstream, runId: String(id) }
}

async function call(method: string, path: string, body?: object) {
  return await expectJson(method, `${app.url}${path}`, token, body)
}

it('a daemon keeps numbers in files equal as text, and records apart whose ids a double would merge', async () => {
  await using run = await runWith(`ndjson:${directory}`, 'public')
  expect(linesOf('contacts', run.runId).map((line) => line.replace(/,"record.*/, ''))).toEqual(
    IDS.map((id) => `{"_id":"${id}"`),
  )
  expect(linesOf('contacts', run.runId)).toEqual(IDS.map((id, index) => `{"_id":"${id}","record":${RECORDS[index]}}`))
  expect(linesOf('notes', run.runId)).toEqual(IDS.map(() => `{"_id":"1.10","record":${CHILD}}`))
  expect(run.requests.filter((path) => path.startsWith('/contacts?'))[0]).toContain('tenant=98765432109876543210')
  const parents = run.requests.filter((path) => !path.startsWith('/contacts?')).map((path) => path.split('/')[2])
  expect([...new Set(parents)].sort()).toEqual(IDS)
  const { resource_stats } = await call('GET', `/sync-job-run/${run.runId}`)
  expect(resource_stats).toMatchObject([{ resource: 'contacts', distinct: 3, duplicates: 0 }, { resource: 'notes' }])
})

it('a daemon keeps numbers in PostgreSQL with every digit', async () => {
  await using _run = await runWith(storeUrl, 'numbers')
  const { rows } = await store.query(`select record::text as record from numbers.contacts order by record->>'id'`)
  const texts = rows.map(({ record }) => record.replaceAll(' ', ''))
  expect(texts).toEqual(IDS.map((id) => `{"id":${id},"all":${NUMBERS_JSONB}}`))
})

function linesOf(resource: string, runId: string): readonly string[] {
  const files = readdirSync(join(directory, resource), { recursive: true, encoding: 'utf8' })
  const [file = ''] = files.filter((name) => name.endsWith(`${runId}.ndjson`))
  return readFileSync(join(directory, resource, file), 'utf8')
    .trimEnd()
    .split('\n')
}
