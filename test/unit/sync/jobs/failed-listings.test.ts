import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { CallLogService } from '../../../../gen/patchbay/v1/call_log_service_pb.ts'
import { EventService } from '../../../../gen/patchbay/v1/event_service_pb.ts'
import { SyncJobRunService } from '../../../../gen/patchbay/v1/sync_job_run_service_pb.ts'
import { WebhookService } from '../../../../gen/patchbay/v1/webhook_service_pb.ts'
import { runCommand } from '../../../../src/cli/commands/run-command.ts'
import { execute } from '../../../../src/foundation/database/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { startTestApp } from '../../../support/app.ts'
import { someCases } from '../../../support/case-count.ts'
import { findBodyProblem } from '../../../support/event-schemas.ts'
import { type ListeningLogger, listeningLogger } from '../../../support/listening-logger.ts'
import { expectJson, type JsonAnswer } from '../../../support/rest.ts'
import { startReceiver } from '../../../support/webhook-receiver.ts'
import { startDaemon } from '../../cli/daemon/support/running-daemon.ts'

/** How the children of one of two parents fail to be listed, and what a run says of it. */
interface FailingListing {
  /** The method of the children, beside path and base address. */
  readonly method?: JsonObject
  /** First part of the address of the third party for the failing parent, where it is another. */
  readonly host?: string
  /** The field that is missing from the failing parent. */
  readonly missing?: string
  /** What the third party answers; `response` is left alone when it does not. */
  readonly answer?: (response: ServerResponse) => void
  readonly reason: string
  readonly message: string
  /** Path of the request. Absent: that of the children. */
  readonly path?: string
  /** The run fails instead of passing over the listing. */
  readonly isFatal?: boolean
}

const json = (status: number, body: unknown) => (response: ServerResponse) =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
const SECRET = 'key-9d2f6a41c7'

/** Every kind of outcome of a request that ends a listing; rate limits postpone the run, and are no failure. */
const FAILURES: Readonly<Record<string, FailingListing>> = {
  'a placeholder without a value': {
    missing: 'region',
    reason: 'PLACEHOLDER_UNRESOLVED',
    message: '{{query.region}}',
    path: '/regions/{{query.region}}/orders/{{query.order}}/lines',
  },
  'an error of the third party': {
    answer: json(404, { message: `no such order for ${SECRET}` }),
    reason: 'UPSTREAM_ERROR',
    message: 'answered with status 404: no such order for ***',
  },
  'a transient error of the third party': {
    answer: json(503, { message: 'flaky' }),
    reason: 'UPSTREAM_ERROR',
    message: 'answered with status 503: flaky',
  },
  'an error that the definition finds': {
    method: { error_expression: 'body.problem ? {"status": 422, "message": body.problem}' },
    answer: json(200, { problem: 'closed' }),
    reason: 'UPSTREAM_ERROR',
    message: 'answered with status 422: closed',
  },
  'an expression that fails': {
    method: { error_expression: 'body.problem ? $error("unexpected problem")' },
    answer: json(200, { problem: 'closed' }),
    reason: 'EXPRESSION_FAILED',
    message: 'error_expression',
  },
  'an invalid response': {
    answer: (response) => void response.writeHead(200, { 'content-type': 'application/json' }).end('{"items":'),
    reason: 'UPSTREAM_INVALID_RESPONSE',
    message: 'JSON',
  },
  'a response of another shape': {
    answer: json(200, { items: 'none' }),
    reason: 'UPSTREAM_INVALID_RESPONSE',
    message: 'where records are expected',
  },
  'no response in time': {
    // The others answer within it, on a busy machine too.
    method: { timeout: 5 },
    answer: () => {},
    reason: 'DEADLINE_EXCEEDED',
    message: '127.0.0.1',
  },
  'a broken connection': {
    answer: (response) => void response.socket?.destroy(),
    reason: 'UPSTREAM_UNREACHABLE',
    message: '127.0.0.1',
  },
  'a list that makes no progress': {
    method: { pagination: { format: 'page', config: { page_key: 'page', limit_key: 'limit', limit: 1 } } },
    answer: json(200, { items: [{ id: 1 }] }),
    reason: 'PAGINATION_LOOP',
    message: 'no progress',
  },
  'a list that leads to another host': {
    method: { pagination: { format: 'cursor', config: { cursor_path: 'next', is_link: true } } },
    answer: json(200, { items: [{ id: 1 }], next: 'https://elsewhere.example.com/lines?page=2' }),
    reason: 'PAGINATION_ORIGIN',
    message: 'elsewhere.example.com',
    path: '/regions/{{query.region}}/orders/{{query.order}}/lines',
  },
  'an address that may not be called': {
    host: '10',
    reason: 'EGRESS_BLOCKED',
    message: '10.0.0.1',
    isFatal: true,
  },
  'credentials that are rejected': {
    answer: json(401, { message: 'token expired' }),
    reason: 'UPSTREAM_ERROR',
    message: 'answered with status 401: token expired',
    isFatal: true,
  },
}
const NAMES = someCases(Object.keys(FAILURES), 4)
const DESTINATIONS = ['webhook', 'daemon'] as const

const app = await startTestApp({ PATCHBAY_EGRESS_ALLOW: '127.0.0.0/8' })
const client = app.client('rest')
const token = app.first.environmentToken
const call = (path: string, body: object): Promise<JsonAnswer> => expectJson('POST', `${app.url}${path}`, token, body)
const directory = mkdtempSync(join(tmpdir(), 'patchbay-failed-'))

/** Orders of which the second fails to list its lines, as the number in the path says. */
const upstream = createServer((request, response) => {
  const [, , region, order] = /^(\/regions\/(\w+)\/orders)?\/([\w-]+)/.exec(request.url ?? '') ?? []
  if (region === undefined) return json(200, { items: ordersOf(Number(order)) })(response)
  const [, number] = /^o-(\d+)-2$/.exec(/orders\/([\w-]+)/.exec(request.url ?? '')?.[1] ?? '') ?? []
  const failing = number === undefined ? undefined : FAILURES[NAMES[Number(number)] ?? '']
  if (failing?.answer === undefined)
    return json(200, { items: request.url?.includes('page=2') ? [] : [{ id: 1 }] })(response)
  failing.answer(response)
})

function ordersOf(number: number): readonly JsonObject[] {
  const { host, missing } = FAILURES[NAMES[number] ?? ''] ?? {}
  const order = (at: number): Record<string, string> => {
    return { id: `o-${number}-${at}`, region: 'eu', host: '127' }
  }
  const failing: Record<string, string> = { ...order(2), ...(host === undefined ? {} : { host }) }
  if (missing !== undefined) delete failing[missing]
  return [order(1), failing]
}

interface StartedRun {
  readonly id: string
  readonly failure: FailingListing
  readonly order: string
}

const runs = new Map<string, StartedRun>()
const bodies: string[] = []
const receiver = await startReceiver(({ body }) => {
  bodies.push(body)
  return { status: 204 }
})
const workerLog: ListeningLogger = listeningLogger()
let daemon: ReturnType<typeof startDaemon>

afterAll(async () => {
  await daemon?.[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
  upstream.closeAllConnections()
  upstream.close()
  rmSync(directory, { recursive: true })
})

beforeAll(async () => {
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
  const { port } = upstream.address() as AddressInfo
  const hook = { target_url: receiver.url, event_types: ['record:*'] }
  const webhookId = (await client.ok(WebhookService.method.createWebhook, hook)).id
  // Events of runs are recorded where a webhook asks for them.
  await client.ok(WebhookService.method.createWebhook, { ...hook, event_types: ['sync_job_run:*'] })
  const definition = {
    base_url: `http://127.0.0.1:${port}`,
    credentials: {
      format: 'api_key',
      config: { fields: [{ name: 'api_key', label: 'API key', type: 'password', required: true }] },
    },
    authorization: { format: 'bearer', config: { token: '{{api_key}}' } },
    retry: { max_attempts: 1 },
    resources: Object.fromEntries(
      NAMES.flatMap((name, index) => [
        [`orders_${index}`, { list: { method: 'get', path: `/${index}`, response_path: 'items' } }],
        [
          `lines_${index}`,
          {
            list: {
              method: 'get',
              base_url: `http://{{query.host}}.0.0.1:${port}`,
              path: '/regions/{{query.region}}/orders/{{query.order}}/lines',
              response_path: 'items',
              ...FAILURES[name]?.method,
            },
          },
        ],
      ]),
    ),
  }
  const team = { name: 'failing', config: definition }
  const integration = await expectJson('POST', `${app.url}/integration`, app.first.teamToken, team)
  const installation = await call('/environment-integration', { integration_id: integration.id })
  for (const [index, name] of NAMES.entries()) {
    const place = (field: string) => `{{resources.orders_${index}.${field}}}`
    const query = { order: place('id'), region: place('region'), host: place('host') }
    const resources = [
      { resource: `orders_${index}`, method: 'list' },
      { resource: `lines_${index}`, method: 'list', depends_on: `orders_${index}`, persist: true, query },
    ]
    const job = await call('/sync-job', { label: name, integration_name: 'failing', resources })
    for (const destination of DESTINATIONS) {
      const account = await call('/integrated-account', {
        environment_integration_id: installation.id,
        tenant_id: `${destination}-${index}`,
        credentials: { api_key: SECRET },
      })
      await execute(app.database.pool, `update integrated_account set status = 'active' where id = :id`, account)
      const target = destination === 'webhook' ? { webhook_id: webhookId } : { daemon_group_key: 'failing' }
      const subject = { sync_job_id: job.id, integrated_account_id: account.id }
      const { id } = await client.ok(SyncJobRunService.method.createSyncJobRun, { ...subject, ...target })
      const failure = FAILURES[name] ?? { reason: '', message: '' }
      runs.set(`${destination} ${name}`, { id, failure, order: `o-${index}-2` })
    }
  }
  // Transient errors are retried four times before their listing has failed.
  await execute(app.database.pool, 'update run_queue set attempt = 4')
  app.startWorker({ PATCHBAY_WORKER_CONCURRENCY: '16' }, undefined, workerLog.logger)
  daemon = startDaemon({ url: app.url, token, group: 'failing', store: `ndjson:${directory}`, capacity: 16 })
  const ended = [...runs].map(([key, { id }]) =>
    key.startsWith('webhook')
      ? workerLog.logged('a run ended here', { run_id: id })
      : daemon.logged('a run ended here', { run_id: id }),
  )
  await Promise.all(ended)
})

describe.each(DESTINATIONS)('the run of a %s', (destination) => {
  describe.each(NAMES)('that meets %s', (name) => {
    const found = () => {
      const run = runs.get(`${destination} ${name}`)
      if (run === undefined) throw new Error('no such run')
      const { failure, order } = run
      const [index] = order.match(/\d+/) ?? []
      const path = failure.path ?? `/regions/eu/orders/${order}/lines`
      return {
        ...run,
        path,
        isFatal: failure.isFatal === true,
        error: {
          reason: failure.reason,
          message: expect.stringContaining(failure.message),
          resource: `lines_${index}`,
          method: 'list',
          parent: { resource: `orders_${index}`, id: order, path: `orders_${index}/${order}` },
          request: `GET ${path}`,
          // What could not be built was not sent.
          ...(failure.missing === undefined ? { log_id: expect.any(String) } : {}),
        },
      }
    }

    it('says so on the run', async () => {
      const { id, error, isFatal } = found()
      const run = await client.ok(SyncJobRunService.method.getSyncJobRun, { id })
      expect(run).toMatchObject(
        isFatal
          ? { status: 'failed', error }
          : {
              status: 'partially_completed',
              resource_stats: [{ errors: [] }, { failed: 1, errors: [error], errors_omitted: 0 }],
            },
      )
      expect(JSON.stringify(run)).not.toContain(SECRET)
    })

    it('leads to the entry of the failed request, which names the run', async () => {
      const { id, order, isFatal, failure } = found()
      if (failure.missing !== undefined) return
      const run = await client.ok(SyncJobRunService.method.getSyncJobRun, { id })
      const [, stats] = run.resource_stats as readonly { readonly errors: readonly JsonObject[] }[]
      const error = isFatal ? (run.error as JsonObject) : stats?.errors[0]
      const logId = String(error?.log_id)
      const entry = await client.ok(CallLogService.method.getCallLogEntry, { id: logId })
      expect(entry).toMatchObject({
        cause: 'run',
        cause_id: id,
        url: expect.stringContaining(`/orders/${order}/lines`),
      })
    })

    it('says so in the event of its end', async () => {
      const { id, error, isFatal } = found()
      const types = isFatal ? 'sync_job_run:failed' : 'sync_job_run:completed'
      const { events } = await client.ok(EventService.method.listEvents, { subject_id: id, types: [types] })
      const payload = isFatal ? { error } : { resource_stats: [{}, { errors: [error] }] }
      expect(events).toMatchObject([{ type: types, payload }])
    })

    it('says so in the log', () => {
      const { id, error, isFatal } = found()
      const { log } = destination === 'webhook' ? workerLog : daemon
      const message = isFatal ? 'a run ended here' : 'a listing failed'
      const lines = log.filter((line) => line.fields.run_id === id && line.message === message)
      expect(lines).toMatchObject([{ level: 'warn', fields: error }])
    })

    it('says so on the command line', async () => {
      const { id, error, order, path, failure } = found()
      let printed = ''
      vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
        printed += text
        return true
      })
      await runCommand(['run', '--follow', id], { PATCHBAY_TOKEN: token, PATCHBAY_PUBLIC_URL: app.url })
      vi.restoreAllMocks()
      const line = printed.split('\n').find((each) => each.includes(`${error.reason}: `))
      expect(line).toEqual(error.message)
      expect(line).toContain(`(of ${error.parent.path}, GET ${path}${failure.missing === undefined ? ', log ' : ')'}`)
      expect(printed).not.toContain('no_cursor')
      expect(line).toContain(order)
    })

    if (destination === 'webhook')
      it('says so to its receiver', () => {
        const { id, error, isFatal } = found()
        const events = bodies.map((body) => JSON.parse(body)).filter(({ id: event }) => event.startsWith(`evt_${id}_`))
        const names = events.map(({ event }) => event.split(':')[1])
        const payloadOf = (event: string) => events[names.indexOf(event)]?.payload
        if (isFatal) expect(payloadOf('failed')).toMatchObject({ error })
        else {
          expect(payloadOf('record_error')).toMatchObject({ error })
          expect(payloadOf('completed')).toMatchObject({ complete: false, resource_stats: [{}, { errors: [error] }] })
        }
      })
  })
})

it('every event is described by its schema, and none has a secret', () => {
  expect(bodies.flatMap((body) => findBodyProblem(body) ?? [])).toEqual([])
  expect(bodies.join('')).not.toContain(SECRET)
  expect(JSON.stringify([workerLog.log, daemon.log])).not.toContain(SECRET)
})
