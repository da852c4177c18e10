import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { EVENTUALLY } from '../../support/eventually.ts'
import { preparedDataDir } from '../../support/prepared-data-dir.ts'
import { removeDataDir, startProduct } from '../../support/product.ts'
import { expectJson } from '../../support/rest.ts'
import { seedChain } from '../../support/seed.ts'
import { type Received, startReceiver } from '../../support/webhook-receiver.ts'

const PAGE_SIZE = 2
const CONTACTS = Array.from({ length: 5 }, (_, index) => ({ id: `c${index + 1}` }))
const RESOURCES = [
  { resource: 'contacts', method: 'list', persist: true },
  { resource: 'notes', method: 'list', depends_on: 'contacts', persist: true },
]
/** The quick repetitions of one delivery and the first wait of a run take up to 12 s. */

/** Contacts with a total, and one note of each. */
async function startUpstream() {
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://upstream')
    const [, , contact] = pathname.split('/')
    const from = (Number(searchParams.get('page')) - 1) * PAGE_SIZE
    const all = contact === undefined ? CONTACTS : [{ id: `note of ${contact}` }]
    const answer = { data: all.slice(from, from + PAGE_SIZE), total: all.length }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('a triggered sync whose receiver fails in the middle', () => {
  it('waits, resumes by itself, and delivers every record and the outcome', async () => {
    let isDown = false
    const isNoteOfC2 = ({ body }: Received) => body.includes('note of c2')
    const receiver = await startReceiver((request) => {
      if (isNoteOfC2(request) && receiver.received.filter(isNoteOfC2).length === 1) isDown = true
      return isDown ? 'hang-up' : { status: 204 }
    })
    onTestFinished(() => receiver[Symbol.asyncDispose]())
    const dataDir = preparedDataDir()
    const product = await startProduct({ dataDir, environment: { PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' } })
    onTestFinished(async () => {
      await product.stop()
      removeDataDir(dataDir)
    })
    const { bootstrap, url } = product
    const rest = (method: string, path: string, body?: object) =>
      expectJson(method, `${url}${path}`, bootstrap.environment_token, body)
    const seed = await seedChain({
      url,
      teamToken: bootstrap.team_token,
      environmentToken: bootstrap.environment_token,
      environmentId: bootstrap.environment_id,
      upstreamUrl: await startUpstream(),
      webhookUrl: receiver.url,
    })
    const override = { pagination: { config: { limit: PAGE_SIZE, total_path: 'total' } } }
    await rest('PATCH', `/environment-integration/${seed.environmentIntegrationId}`, { override })
    await rest('PATCH', `/sync-job/${seed.syncJobId}`, { resources: RESOURCES })
    const account = () => rest('GET', `/integrated-account/${seed.integratedAccountId}`)
    await vi.waitFor(async () => expect(await account()).toMatchObject({ status: 'active' }), EVENTUALLY)

    const { id } = await rest('POST', `/sync-job-cron-trigger/${seed.triggerId}/run`, {})
    const run = () => rest('GET', `/sync-job-run/${id}`)
    await vi.waitFor(async () => expect(await run()).toMatchObject({ status: 'rate_limited' }), EVENTUALLY)
    expect(await run()).toMatchObject({
      attempt: 0,
      error: { reason: 'UPSTREAM_UNREACHABLE', message: expect.stringContaining('the webhook') },
      resource_stats: [{ delivered: 2 }, { delivered: 1 }],
    })
    isDown = false
    await vi.waitFor(async () => expect(await run()).toMatchObject({ status: 'completed' }), EVENTUALLY)

    const webhook = new Webhook(seed.webhookSecret)
    for (const { headers, body } of receiver.received) webhook.verify(body, headers as Record<string, string>)
    const byId = new Map(receiver.received.map(({ headers, body }) => [headers['webhook-id'], JSON.parse(body)]))
    expect([...byId.values()].map(({ event, payload }) => [event, payload.sequence, idsOf(payload.records)])).toEqual([
      ['sync_job_run:started', undefined, undefined],
      ['sync_job_run:record', 1, 'c1 c2'],
      ...[2, 3].map((sequence) => ['sync_job_run:record', sequence, `note of c${sequence - 1}`]),
      ['sync_job_run:record', 4, 'c3 c4'],
      ...[5, 6].map((sequence) => ['sync_job_run:record', sequence, `note of c${sequence - 2}`]),
      ['sync_job_run:record', 7, 'c5'],
      ['sync_job_run:record', 8, 'note of c5'],
      ['sync_job_run:completed', undefined, undefined],
    ])
    const verdict = {
      fetched: 5,
      delivered: 5,
      failed: 0,
      claimed_total: 5,
      distinct: 5,
      duplicates: 0,
      complete: true,
    }
    const stats = RESOURCES.map(({ resource }) => ({ resource, ...verdict }))
    expect((await run()).resource_stats).toMatchObject(stats)
    expect([...byId.values()].at(-1).payload.resource_stats).toMatchObject(stats)
    const repeated = receiver.received.filter(isNoteOfC2)
    expect(repeated.length).toBeGreaterThan(4)
    expect(new Set(repeated.map(({ headers }) => headers['webhook-id']))).toEqual(new Set([`evt_${id}_3`]))
  })
})

function idsOf(records: readonly { readonly id: string }[] | undefined): string | undefined {
  return records?.map(({ id }) => id).join(' ')
}
