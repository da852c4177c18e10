import { Code, ConnectError } from '@connectrpc/connect'
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node'
import { describe, expect, it } from 'vitest'
import { unary } from './support/contract.ts'
import { startHarness, WIDGET_ID } from './support/harness.ts'
import { AS_ENVIRONMENT, http1, http2, JSON_BODY, rawConnection } from './support/http.ts'
import { ALL_WIRES } from './support/protocols.ts'

const RPC = '/widget.v1.WidgetService/Wait'
const body = JSON.stringify({ id: WIDGET_ID })

describe('the deadline of a client', () => {
  it.each([
    ['connect-timeout-ms', '40'],
    ['x-server-timeout', '0.04'],
    ['grpc-timeout', '40m'],
    ['grpc-timeout', '40000u'],
  ])('in %s: %s ends the call and aborts its signal', async (header, value) => {
    await using harness = await startHarness()
    const headers = { ...JSON_BODY, [header]: value }
    const answer = await http1(harness.baseUrl, `/widget/${WIDGET_ID}/wait`, { method: 'POST', headers, body: '{}' })
    expect(answer.status).toBe(504)
    expect(answer.text).toContain('"reason":"DEADLINE_EXCEEDED"')
    const { signal } = await harness.events.waiting.promise
    expect(signal.reason).toMatchObject({ reason: 'DEADLINE_EXCEEDED' })
  })

  it.each([
    ['gRPC', (baseUrl: string) => createGrpcTransport({ baseUrl })],
    ['gRPC-Web', (baseUrl: string) => createGrpcWebTransport({ baseUrl, httpVersion: '1.1' })],
    ['Connect', (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: '2' })],
  ])('travels over %s', async (_, createTransport) => {
    await using harness = await startHarness()
    const transport = createTransport(harness.baseUrl)
    const call = transport.unary(unary('Wait'), undefined, 60, AS_ENVIRONMENT, { id: WIDGET_ID } as never)
    const error = await call.then(
      () => undefined,
      (thrown) => ConnectError.from(thrown),
    )
    expect(error?.code).toBe(Code.DeadlineExceeded)
    const waiting = await harness.events.waiting.promise
    expect(waiting.timeoutMs()).toBeLessThan(60)
    await expect.poll(() => harness.observations[0]?.outcome).toMatch(/DEADLINE_EXCEEDED|CANCELLED/)
  })

  it('may be long, and is then cut to the longest allowed', async () => {
    await using harness = await startHarness({ limits: { deadlineMaxMs: 40 } })
    const headers = { ...JSON_BODY, 'connect-timeout-ms': '3600000' }
    const quick = await http1(harness.baseUrl, `/widget/${WIDGET_ID}`, { headers: { ...AS_ENVIRONMENT, ...headers } })
    expect(quick.status).toBe(200)
    expect((await http1(harness.baseUrl, RPC, { method: 'POST', headers, body })).status).toBe(504)
  })

  it.each([
    ['x-server-timeout', 'soon'],
    ['x-server-timeout', '-1'],
    ['connect-timeout-ms', '1.5'],
    ['grpc-timeout', '5x'],
    ['grpc-timeout', '123456789S'],
  ])('is rejected when malformed: %s: %s', async (header, value) => {
    await using harness = await startHarness()
    const headers = { ...AS_ENVIRONMENT, [header]: value }
    const answer = await http1(harness.baseUrl, `/widget/${WIDGET_ID}`, { headers })
    expect(answer.status).toBe(400)
    expect(answer.text).toContain(`"field":"${header}"`)
  })
})

it('a call without a deadline gets the default one', async () => {
  await using harness = await startHarness({ limits: { deadlineDefaultMs: 40 } })
  const answer = await http2(harness.baseUrl, RPC, { method: 'POST', headers: JSON_BODY, body })
  expect(answer.status).toBe(504)
})

it('a call knows how much time it has left', async () => {
  await using harness = await startHarness()
  const headers = { ...AS_ENVIRONMENT, 'x-server-timeout': '5' }
  await http1(harness.baseUrl, `/widget/${WIDGET_ID}`, { headers })
  const [call] = harness.events.calls
  expect(call?.timeoutMs()).toBeGreaterThan(3_000)
  expect(call?.timeoutMs()).toBeLessThanOrEqual(5_000)
})

it('the deadline covers authentication too', async () => {
  await using harness = await startHarness({ limits: { deadlineDefaultMs: 40 } })
  const headers = { authorization: 'Bearer slow' }
  expect((await http1(harness.baseUrl, `/widget/${WIDGET_ID}`, { headers })).status).toBe(504)
})

describe('a client that goes away', () => {
  it('aborts its call over HTTP/1.1', async () => {
    await using harness = await startHarness()
    const client = await rawConnection(harness.port)
    const headers = ['Host: x', 'Authorization: Bearer env', 'Content-Type: application/json', 'Content-Length: 45']
    client.socket.write(`POST ${RPC} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n${body}`)
    const { signal } = await harness.events.waiting.promise
    client.socket.destroy()
    await expect.poll(() => signal.aborted).toBe(true)
    expect(signal.reason).toMatchObject({ reason: 'CANCELLED' })
  })

  it('aborts its call over gRPC', async () => {
    await using harness = await startHarness()
    const aborter = new AbortController()
    const transport = createGrpcTransport({ baseUrl: harness.baseUrl })
    const call = transport.unary(unary('Wait'), aborter.signal, undefined, AS_ENVIRONMENT, { id: WIDGET_ID } as never)
    const { signal } = await harness.events.waiting.promise
    aborter.abort()
    await expect(call).rejects.toMatchObject({ code: Code.Canceled })
    await expect.poll(() => signal.aborted).toBe(true)
    expect(signal.reason).toMatchObject({ reason: 'CANCELLED' })
  })
})

it.each(ALL_WIRES)('$name answers a call that ends in time', async (wire) => {
  await using harness = await startHarness()
  const client = wire.connect(harness.baseUrl)
  const call = client.send(unary('Wait'), { id: WIDGET_ID }, AS_ENVIRONMENT)
  await harness.events.waiting.promise
  harness.events.release.resolve()
  expect(await call).toMatchObject({ ok: true })
  client.close()
})
