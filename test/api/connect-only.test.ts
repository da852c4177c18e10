import type { DescMessage } from '@bufbuild/protobuf'
import { Code, ConnectError, type Transport } from '@connectrpc/connect'
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node'
import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../src/base/index.ts'
import { serverStream, unary } from './support/contract.ts'
import { startHarness, WIDGET_ID } from './support/harness.ts'
import { AS_ENVIRONMENT } from './support/http.ts'
import { refusedOutcome } from './support/protocols.ts'

/** A call that goes on for this long hangs. */
const HANG_MS = 60_000

const TRANSPORTS: readonly (readonly [name: string, createTransport: (baseUrl: string) => Transport])[] = [
  ['gRPC', (baseUrl) => createGrpcTransport({ baseUrl })],
  ['gRPC-Web', (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: '1.1' })],
  ['Connect JSON', (baseUrl) => createConnectTransport({ baseUrl, httpVersion: '1.1' })],
  ['Connect binary', (baseUrl) => createConnectTransport({ baseUrl, httpVersion: '2', useBinaryFormat: true })],
]

const start = () => startHarness({ isConnectOnly: true })

/** The answer of a unary call, or what it failed with. */
async function call(
  transport: Transport,
  name: string,
  request: JsonObject,
  { headers = AS_ENVIRONMENT as Record<string, string>, timeoutMs = 5_000 } = {},
) {
  try {
    const answer = await transport.unary<DescMessage, DescMessage>(
      unary(name),
      undefined,
      timeoutMs,
      headers,
      request as never,
    )
    return { message: answer.message as unknown as { name: string }, header: answer.header, error: undefined }
  } catch (error) {
    return { message: undefined, header: undefined, error: ConnectError.from(error) }
  }
}

describe.each(TRANSPORTS)('the same services by connect-node alone over %s', (_, createTransport) => {
  it('answer, with the request id among the headers', async () => {
    await using harness = await start()
    const transport = createTransport(harness.baseUrl)
    const headers = { ...AS_ENVIRONMENT, 'x-request-id': 'only-1' }
    const { message, header, error } = await call(transport, 'Create', { name: 'a' }, { headers })
    expect([message?.name, header?.get('x-request-id'), error]).toEqual(['a', 'only-1', undefined])
    await expect.poll(() => harness.observations).toMatchObject([{ outcome: 'OK' }])
  })

  it('enforce the access rule of the contract', async () => {
    await using harness = await start()
    const transport = createTransport(harness.baseUrl)
    const denied = async (name: string, headers: Record<string, string>) => {
      const { error } = await call(transport, name, { id: WIDGET_ID }, { headers })
      return error === undefined ? 'OK' : refusedOutcome(error)
    }
    expect(await denied('Get', {})).toMatchObject({ error: { reason: 'TOKEN_MISSING' } })
    expect(await denied('Get', { authorization: 'Bearer team' })).toMatchObject({
      error: { reason: 'ENVIRONMENT_REQUIRED' },
    })
    expect(await denied('TeamOnly', AS_ENVIRONMENT)).toMatchObject({ error: { reason: 'TEAM_TOKEN_REQUIRED' } })
    expect(await denied('Open', {})).toBe('OK')
  })

  it('validate requests, by the rules and by the checks of the operation', async () => {
    await using harness = await start()
    const transport = createTransport(harness.baseUrl)
    const { error } = await call(transport, 'Create', { name: 'x'.repeat(21), parts: [{ name: '', count: -1 }] })
    expect(error && refusedOutcome(error)).toMatchObject({
      error: {
        reason: 'INVALID_FIELD',
        violations: [{ field: 'name' }, { field: 'parts[0].name' }, { field: 'parts[0].count' }],
      },
    })
    const taken = await call(transport, 'Create', { name: 'forbidden' })
    expect(taken.error && refusedOutcome(taken.error)).toMatchObject({ error: { reason: 'NAME_TAKEN' } })
  })

  it('fail with reason and details', async () => {
    await using harness = await start()
    const { error } = await call(createTransport(harness.baseUrl), 'Fail', { how: 'busy' })
    expect(error && refusedOutcome(error)).toMatchObject({ error: { code: 'RESOURCE_EXHAUSTED' } })
    await expect.poll(() => harness.observations).toMatchObject([{ outcome: 'RESOURCE_EXHAUSTED' }])
  })

  it('end at their deadline', async () => {
    await using harness = await start()
    const { error } = await call(createTransport(harness.baseUrl), 'Wait', { id: WIDGET_ID }, { timeoutMs: 60 })
    expect(error?.code).toBe(Code.DeadlineExceeded)
  })

  it('stream', async () => {
    await using harness = await start()
    const requests = (async function* () {
      yield { count: 2 } as never
    })()
    const { message } = await createTransport(harness.baseUrl).stream(
      serverStream('Watch'),
      undefined,
      HANG_MS,
      AS_ENVIRONMENT,
      requests,
    )
    const names: unknown[] = []
    for await (const widget of message) names.push(Reflect.get(widget, 'name'))
    expect(names).toEqual(['0', '1'])
  })
})
