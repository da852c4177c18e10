import { Agent, request as httpRequest, type OutgoingHttpHeaders } from 'node:http'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { caseCount } from '../../../support/case-count.ts'
import { startHarness, WIDGET_ID } from './support/harness.ts'
import { AS_ENVIRONMENT } from './support/http.ts'

const RUNS = caseCount(100, 1_000)

const VERBS = ['GET', 'POST', 'PATCH', 'PUT', 'DELETE', 'OPTIONS', 'HEAD']

const PATHS = [
  '/widget',
  `/widget/${WIDGET_ID}`,
  `/widget/${WIDGET_ID}/part`,
  '/widget.v1.WidgetService/Create',
  '/widget.v1.WidgetService/List',
  '/widget.v1.WidgetService/Watch',
  '/grpc.health.v1.Health/Check',
  '/%',
  '/find/%ff',
  '/*',
  '/:',
  '//',
]

const CONTENT_TYPES = [
  '',
  'application/json',
  'application/proto',
  'application/grpc',
  'application/grpc+json',
  'application/grpc-web',
  'application/connect+json',
  'application/connect+proto',
  'text/plain',
]

const FIELDS = ['name', 'attributes', 'tags', 'size', 'parts', 'isOn', 'made_at', 'group_key', 'webhook_id', 'anything']
const STRANGE_KEYS = ['__proto__', 'constructor', 'toString', '']

const value = fc.oneof(fc.jsonValue({ maxDepth: 4 }), fc.string({ unit: 'binary' }), fc.constantFrom(-0, 1e308, null))
const shaped = fc.dictionary(fc.constantFrom(...FIELDS, ...STRANGE_KEYS), value).map((json) => JSON.stringify(json))
const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 60 }).map((array) => Buffer.from(array)),
  shaped.map((text) => Buffer.from(text)),
  shaped.map((text) => {
    const prefix = Buffer.alloc(5)
    prefix.writeUInt32BE(Buffer.byteLength(text), 1)
    return Buffer.concat([prefix, Buffer.from(text)])
  }),
)
const query = fc.oneof(
  fc.constant(''),
  fc
    .tuple(fc.constantFrom('page_size', 'tags', 'part.name', 'part', 'message', 'base64', ''), fc.string())
    .map(([name, text]) => `?encoding=json&${name}=${encodeURIComponent(text)}`),
)

it('no request makes the API fail, hang or drop the connection', async () => {
  await using harness = await startHarness({ limits: { bodyIdleMs: 1_000 } })
  const agent = new Agent({ keepAlive: true, maxSockets: 4 })

  const statusOf = (verb: string, target: string, headers: OutgoingHttpHeaders, body: Buffer) =>
    new Promise<number>((resolve, reject) => {
      const options = { port: harness.port, method: verb, path: target, headers, agent, timeout: 60_000 }
      const request = httpRequest(options, (response) => {
        response.resume().once('end', () => resolve(response.statusCode ?? 0))
      })
      request.once('error', reject).once('timeout', () => request.destroy(new Error('no answer')))
      request.end(body)
    })

  const encoding = fc.constantFrom('identity', 'identity', 'gzip', 'br', 'snappy')
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...VERBS),
      fc.constantFrom(...PATHS),
      query,
      fc.constantFrom(...CONTENT_TYPES),
      encoding,
      bytes,
      async (verb, path, search, contentType, compression, body) => {
        const headers = {
          ...AS_ENVIRONMENT,
          'content-length': body.length,
          'content-type': contentType,
          'content-encoding': compression,
          'grpc-encoding': compression,
        }
        expect(await statusOf(verb, path + search, headers, body)).toBeLessThan(500)
      },
    ),
    { numRuns: RUNS },
  )
  agent.destroy()
  expect(harness.log.filter(({ level }) => level === 'error')).toEqual([])
})
