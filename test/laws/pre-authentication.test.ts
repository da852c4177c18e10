import { globSync, readFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { sendResponse } from '../../src/server/api/exchange.ts'
import { readBody } from '../../src/server/api/pipeline/body.ts'
import { startTestApp } from '../support/app.ts'
import { startHarness } from '../unit/server/api/support/harness.ts'
import { http1 } from '../unit/server/api/support/http.ts'
import { unauthenticatedEndpoints, unauthenticatedRoutes } from './untrusted/body-endpoints.ts'

const app = await startTestApp()
const SRC = join(import.meta.dirname, '../../src')

/** Sends a head that announces a body, and none of it. @returns the status, as soon as it is there */
function sendHead(url: string, method: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers: { 'content-type': 'application/json', 'content-length': 1_000 } })
    sent.once('response', ({ statusCode = 0 }) => {
      resolve(statusCode)
      sent.destroy()
    })
    sent.once('error', reject)
    sent.flushHeaders()
  })
}

describe('an endpoint that reads bodies', () => {
  it('before authentication is in the list that is attacked', () => {
    expect(unauthenticatedEndpoints()).toEqual(expect.arrayContaining([...unauthenticatedRoutes(app.routes)]))
    expect(unauthenticatedRoutes(app.routes).length).toBeGreaterThanOrEqual(8)
  })

  const after = app.routes.filter(({ readsBody }) => readsBody === 'after_authentication')
  it.each(after)('after authentication answers others before a byte of it: $path', async ({ path, verbs }) => {
    const verb = verbs.find((each) => each === 'POST') ?? verbs[0] ?? ''
    expect(await sendHead(`${app.url}${path}${path.endsWith('/') ? 'x' : ''}`, verb)).toBe(401)
  })

  it('reads them in one of two places, which know when', () => {
    const files = globSync('server/{api,page}/**/*.ts', { cwd: SRC }).filter((file) =>
      /request\.on\('data'|request\.pipe\(|request\.read\(|of (?:exchange\.)?request\)|pipeline\(request|request\[Symbol/.test(
        readFileSync(join(SRC, file), 'utf8'),
      ),
    )
    expect(files.sort()).toEqual(['server/api/http/proxy-request.ts', 'server/api/pipeline/body.ts'])
  })

  it('fails when its route does not say when', async () => {
    const route = { verbs: ['POST'], path: '/reads', access: 'public', readsBody: 'never' } as const
    await using harness = await startHarness({
      extraRoutes: [
        { ...route, handle: async (exchange) => void (await readBody(exchange, exchange.server.limits, 10)) },
      ],
    })
    expect(await http1(harness.baseUrl, '/reads', { method: 'POST', headers: {}, body: 'a' })).toMatchObject({
      status: 500,
    })
  })
})

describe('a body of an unknown sender', () => {
  it('counts against its address until it is answered, and others are then asked to wait', async () => {
    const held = Promise.withResolvers<void>()
    await using harness = await startHarness({
      limits: { unauthenticatedBytesMax: 1_000 },
      extraRoutes: [
        {
          verbs: ['POST'],
          path: '/reads',
          access: 'public',
          readsBody: 'before_authentication',
          async handle(exchange) {
            const body = await readBody(exchange, exchange.server.limits, 1_000)
            if (body.toString().startsWith('h')) await held.promise
            sendResponse(exchange, 200, 'text/plain', 'read')
          },
        },
      ],
    })
    const send = (body: string) => http1(harness.baseUrl, '/reads', { method: 'POST', headers: {}, body })
    const holding = send('h'.repeat(400))
    await expect.poll(async () => (await send('x'.repeat(400))).status).toBe(429)
    expect(await send('x'.repeat(100))).toMatchObject({ status: 200 })
    held.resolve()
    expect(await holding).toMatchObject({ status: 200 })
    expect(await send('x'.repeat(400))).toMatchObject({ status: 200 })
  })

  it('is small where an operation needs no token', async () => {
    await using harness = await startHarness()
    const body = JSON.stringify({ service: 'x'.repeat(80 * 1024) })
    const headers = { 'content-type': 'application/json' }
    const answer = await http1(harness.baseUrl, '/grpc.health.v1.Health/Check', { method: 'POST', headers, body })
    expect(answer.text).toContain('is larger than 65536 bytes')
  })
})
