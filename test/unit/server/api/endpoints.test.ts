import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createClient } from '@connectrpc/connect'
import { createGrpcTransport } from '@connectrpc/connect-node'
import { describe, expect, it } from 'vitest'
import {
  Health as HealthService,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from '../../../../gen/grpc/health/v1/health_pb.ts'
import { ServerReflection } from '../../../../gen/grpc/reflection/v1/reflection_pb.ts'
import { Failure } from '../../../../src/foundation/base/index.ts'
import { environmentIdOf } from '../../../../src/server/api/caller.ts'
import type { HttpRoute } from '../../../../src/server/api/http/routes.ts'
import { documentRoute } from '../../../../src/server/api/http/routes.ts'
import { ENVIRONMENT_ID, startHarness, WIDGET_ID } from './support/harness.ts'
import { AS_ENVIRONMENT, http1, http2, JSON_BODY, rawConnection } from './support/http.ts'

const run = promisify(execFile)
const BUF = join(import.meta.dirname, '../../../../node_modules/.bin/buf')
const HEALTH = '/grpc.health.v1.Health/Check'

/** `buf curl` with nothing but the address. */
async function bufCurl(...args: readonly string[]): Promise<string> {
  const { stdout } = await run(BUF, ['curl', '--http2-prior-knowledge', ...args])
  return stdout
}

describe('reflection', () => {
  it.each(['grpc', 'grpcweb', 'connect'])(
    'lets buf call the API over %s knowing only its address',
    async (protocol) => {
      await using harness = await startHarness()
      const url = `${harness.baseUrl}/widget.v1.WidgetService/Get`
      const flags = ['--protocol', protocol, '--reflect', '-H', 'Authorization: Bearer env']
      const answer = await bufCurl(...flags, '-d', JSON.stringify({ id: WIDGET_ID }), url)
      expect(JSON.parse(answer)).toMatchObject({ id: WIDGET_ID, etag: 'v1' })
    },
  )

  it.each(['grpc-v1', 'grpc-v1alpha'])('speaks %s', async (version) => {
    await using harness = await startHarness()
    const answer = await bufCurl('--reflect-protocol', version, '--list-services', harness.baseUrl)
    expect(answer.trim().split('\n')).toEqual([
      'grpc.health.v1.Health',
      'grpc.reflection.v1.ServerReflection',
      'grpc.reflection.v1alpha.ServerReflection',
      'widget.v1.WidgetService',
    ])
  })

  it.each([
    ['a message', { case: 'fileContainingSymbol', value: 'widget.v1.Widget' }, 'widget/v1/widget.proto'],
    ['a method', { case: 'fileContainingSymbol', value: 'widget.v1.WidgetService.Get' }, 'widget/v1/widget.proto'],
    ['a field', { case: 'fileContainingSymbol', value: 'widget.v1.Widget.name' }, 'widget/v1/widget.proto'],
    [
      'an error detail',
      { case: 'fileContainingSymbol', value: 'google.rpc.ErrorInfo' },
      'google/rpc/error_details.proto',
    ],
    ['a file', { case: 'fileByFilename', value: 'google/api/http.proto' }, 'google/api/http.proto'],
    [
      'an extension',
      {
        case: 'fileContainingExtension',
        value: { containingType: 'google.protobuf.MethodOptions', extensionNumber: 72295728 },
      },
      'google/api/annotations.proto',
    ],
  ] as const)('finds the file of %s', async (_, messageRequest, file) => {
    await using harness = await startHarness()
    const answer = await ask(harness.baseUrl, messageRequest)
    const files = answer?.case === 'fileDescriptorResponse' ? answer.value.fileDescriptorProto : []
    expect(files.some((bytes) => Buffer.from(bytes).includes(file))).toBe(true)
  })

  it('lists the numbers of extensions', async () => {
    await using harness = await startHarness()
    const answer = await ask(harness.baseUrl, {
      case: 'allExtensionNumbersOfType',
      value: 'google.protobuf.MethodOptions',
    })
    expect(answer).toMatchObject({ value: { extensionNumber: expect.arrayContaining([72295728]) } })
  })

  it('says what it cannot find and goes on', async () => {
    await using harness = await startHarness()
    const answer = await ask(harness.baseUrl, { case: 'fileContainingSymbol', value: 'nothing.Here' })
    expect(answer).toMatchObject({ case: 'errorResponse', value: { errorCode: 5 } })
  })

  type Asked = { readonly case: string; readonly value: unknown }

  async function ask(baseUrl: string, messageRequest: Asked) {
    const client = createClient(ServerReflection, createGrpcTransport({ baseUrl }))
    const questions = (async function* () {
      yield { messageRequest } as never
    })()
    for await (const { messageResponse } of client.serverReflectionInfo(questions)) return messageResponse
    return undefined
  }
})

describe('health', () => {
  it('needs no token and answers for the whole and for each service', async () => {
    await using harness = await startHarness()
    const check = (service: string) =>
      http1(harness.baseUrl, HEALTH, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ service }),
      })
    expect((await check('')).json).toEqual({ status: 'SERVING' })
    expect((await check('widget.v1.WidgetService')).json).toEqual({ status: 'SERVING' })
    expect((await check('nothing')).json).toMatchObject({ code: 'not_found' })
    harness.health.set('widget.v1.WidgetService', { reason: 'GONE', message: 'its upstream is gone' })
    expect((await check('widget.v1.WidgetService')).json).toEqual({ status: 'NOT_SERVING' })
    expect((await check('')).json).toEqual({ status: 'SERVING' })
  })

  it('lists everything', async () => {
    await using harness = await startHarness()
    const client = createClient(HealthService, createGrpcTransport({ baseUrl: harness.baseUrl }))
    const { statuses } = await client.list({})
    expect(Object.keys(statuses)).toEqual(['', 'widget.v1.WidgetService'])
  })

  it('can be watched', async () => {
    await using harness = await startHarness()
    const client = createClient(HealthService, createGrpcTransport({ baseUrl: harness.baseUrl }))
    const seen: ServingStatus[] = []
    for await (const { status } of client.watch({ service: 'later' })) {
      seen.push(status)
      if (seen.length === 3) break
      harness.health.set('later', seen.length === 1 ? undefined : { reason: 'CLOSED', message: 'closed' })
    }
    expect(seen).toEqual([ServingStatus.SERVICE_UNKNOWN, ServingStatus.SERVING, ServingStatus.NOT_SERVING])
  })
})

describe('an HTTP route', () => {
  const text = (path: string, access: HttpRoute['access'], rest: Partial<HttpRoute> = {}) =>
    ({
      scope: undefined,
      verbs: ['GET', 'POST'],
      path,
      access,
      readsBody: 'after_authentication',
      async handle({ response, context }) {
        response.writeHead(200, { ...context.responseHeaders, 'content-type': 'text/plain' })
        response.end(path)
      },
      ...rest,
    }) as HttpRoute
  const routes: readonly HttpRoute[] = [
    documentRoute('/openapi.json', () => ({ openapi: '3.1.0' })),
    text('/metrics', 'public'),
    text('/raw/', 'environment', { isPrefix: true }),
    text('/raw/deep/', 'public', { isPrefix: true }),
    text('/whose', 'environment', {
      async handle({ response, context }) {
        response.writeHead(200, context.responseHeaders)
        response.end(environmentIdOf(context))
      },
    }),
    text('/refuses', 'public', {
      async handle() {
        throw new Failure('UPSTREAM_ERROR', 'the upstream said 418')
      },
    }),
    text('/breaks', 'public', {
      async handle({ response }) {
        response.writeHead(200, { 'content-length': 1_000 })
        response.write('half')
        throw new Error('in the middle')
      },
    }),
    text('/breaks-off', 'public', {
      async handle({ response }) {
        response.writeHead(200, {})
        response.write('half')
        throw new Error('in the middle')
      },
    }),
    text('/waits', 'public', {
      deadlineDefaultMs: 30,
      handle: () => new Promise(() => {}),
    }),
  ]
  const start = () => startHarness({ extraRoutes: routes })

  it('serves documents to anyone', async () => {
    await using harness = await start()
    const answer = await http1(harness.baseUrl, '/openapi.json', { headers: {} })
    expect([answer.status, answer.json]).toEqual([200, { openapi: '3.1.0' }])
    expect((await http1(harness.baseUrl, '/openapi.json', { method: 'HEAD', headers: {} })).text).toBe('')
  })

  it('is found by its path, else by the longest prefix', async () => {
    await using harness = await start()
    expect((await http1(harness.baseUrl, '/raw/a/b')).text).toBe('/raw/')
    expect((await http1(harness.baseUrl, '/raw/deep/c', { headers: {} })).text).toBe('/raw/deep/')
    expect((await http1(harness.baseUrl, '/metrics/x')).status).toBe(404)
  })

  it.each(['/raw/a', '//raw/a', '///raw/a', '/pb/raw/a', '/pb//raw/a'])(
    'is found below the path of the public address, and without it: %s',
    async (path) => {
      await using harness = await startHarness({ extraRoutes: routes, basePath: '/pb' })
      expect((await http1(harness.baseUrl, path)).text).toBe('/raw/')
    },
  )

  it('passes the gate and knows its caller', async () => {
    await using harness = await start()
    expect((await http1(harness.baseUrl, '/whose', { headers: {} })).status).toBe(401)
    expect((await http2(harness.baseUrl, '/whose')).text).toBe(ENVIRONMENT_ID)
  })

  it('fails like REST', async () => {
    await using harness = await start()
    const answer = await http1(harness.baseUrl, '/refuses')
    expect([answer.status, answer.text]).toEqual([502, expect.stringContaining('"reason":"UPSTREAM_ERROR"')])
    expect((await http1(harness.baseUrl, '/waits')).status).toBe(504)
    expect((await http1(harness.baseUrl, '/metrics', { method: 'PUT' })).headers.get('allow')).toBe(
      'GET, HEAD, OPTIONS, POST',
    )
  })

  it('that breaks in the middle of an answer without a length does not look complete to HTTP/1.0', async () => {
    await using harness = await start()
    const { socket } = await rawConnection(harness.port)
    const failed = new Promise((resolve) => socket.once('error', resolve))
    socket.write('GET /breaks-off HTTP/1.0\r\n\r\n')
    expect(await failed).toMatchObject({ code: 'ECONNRESET' })
  })

  it('that breaks in the middle does not look complete', async () => {
    await using harness = await start()
    await expect(http1(harness.baseUrl, '/breaks')).rejects.toThrow()
    await expect(http2(harness.baseUrl, '/breaks')).rejects.toThrow()
    expect(harness.log.filter(({ level }) => level === 'error')).toHaveLength(2)
    expect((await http1(harness.baseUrl, '/metrics')).status).toBe(200)
  })

  it('does not hide the contract', async () => {
    await using harness = await start()
    expect((await http1(harness.baseUrl, `/widget/${WIDGET_ID}`)).status).toBe(200)
    const headers = { ...JSON_BODY, ...AS_ENVIRONMENT }
    expect((await http1(harness.baseUrl, '/widget', { method: 'POST', headers, body: '{"name":"a"}' })).status).toBe(
      200,
    )
  })
})
