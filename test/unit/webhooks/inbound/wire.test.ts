import { connect as connectHttp2 } from 'node:http2'
import { describe, expect, it, test } from 'vitest'
import { newId } from '../../../../src/foundation/base/index.ts'
import { type RawConnection, rawConnection } from '../../server/api/support/http.ts'
import { receiveFixture, SIGNED, signatureOf } from './receive-fixture.ts'

const { app, address, stored } = await receiveFixture()
const port = Number(new URL(app.url).port)

/** Sends bytes on a connection of their own, and waits for the answer. */
async function exchange(head: readonly string[], body = '', until = /\r\n\r\n/): Promise<string> {
  const client = await rawConnection(port)
  client.socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  const answer = await client.until(until)
  client.socket.destroy()
  return answer
}

const BODY = '{"id": 1}'
const signed = (path: string, version = '1.1') => [
  `POST ${path} HTTP/${version}`,
  'Host: evil.example.com',
  'Content-Type: application/json',
  `X-Signature: ${signatureOf(BODY)}`,
]

describe('a delivery', () => {
  test.each([
    ['over HTTP/1.0', '1.0', [`Content-Length: ${BODY.length}`], BODY],
    ['in chunks without a length', '1.1', ['Transfer-Encoding: chunked'], '4\r\n{"id\r\n5\r\n": 1}\r\n0\r\n\r\n'],
  ])('%s is accepted', async (_what, version, more, body) => {
    const { path, accountId } = await address(SIGNED)
    expect(await exchange([...signed(path, version), ...more], body)).toMatch(/^HTTP\/1\.1 200 /)
    expect((await stored(accountId))[0]?.body.toString()).toBe(BODY)
  })

  it('that waits for "100 Continue" gets it once its address is known', async () => {
    const { path } = await address(SIGNED)
    const client = await rawConnection(port)
    const head = [...signed(path), `Content-Length: ${BODY.length}`, 'Expect: 100-continue']
    client.socket.write(`${head.join('\r\n')}\r\n\r\n`)
    await client.until(/^HTTP\/1\.1 100 Continue/)
    client.socket.write(BODY)
    expect(await client.until(/200 OK/)).not.toContain('417')
    client.socket.destroy()
  })

  it('over HTTP/2 is accepted, without its pseudo-headers', async () => {
    const { path, accountId } = await address(SIGNED)
    const session = connectHttp2(app.url)
    const stream = session.request({ ':method': 'POST', ':path': path, 'x-signature': signatureOf(BODY) })
    stream.end(BODY)
    const status = await new Promise((resolve) => stream.once('response', (head) => resolve(head[':status'])))
    session.close()
    expect(status).toBe(200)
    expect((await stored(accountId))[0]?.headers.filter(([name]) => name.startsWith(':'))).toEqual([])
  })

  it('keeps its headers in their order, repeated ones too, with underscores and in their case', async () => {
    const { path, accountId } = await address(SIGNED)
    const more = ['X_Under_Score: 1', 'x-a: 1', 'X-A: 2', `Content-Length: ${BODY.length}`]
    await exchange([...signed(path), ...more], BODY)
    const headers = (await stored(accountId))[0]?.headers ?? []
    expect(headers.map(([name, value]) => `${name}: ${value}`)).toEqual([
      'Host: evil.example.com',
      'Content-Type: application/json',
      `X-Signature: ${signatureOf(BODY)}`,
      ...more,
    ])
  })

  it('with two signature headers is rejected', async () => {
    const { path } = await address(SIGNED)
    const more = ['X-Signature: 00', `Content-Length: ${BODY.length}`]
    expect(await exchange([...signed(path), ...more], BODY)).toMatch(/^HTTP\/1\.1 401 /)
  })
})

describe('a request to an unknown address', () => {
  /** Sends the head, and then as much of the body as the server takes. */
  async function flood(client: RawConnection, bytes: number): Promise<void> {
    const head = [`POST /integrated-account-webhook/${newId()} HTTP/1.1`, 'Host: x', `Content-Length: ${bytes}`]
    client.socket.write(`${head.join('\r\n')}\r\n\r\n`)
    client.socket.write(Buffer.alloc(bytes))
  }

  it('is answered before its body comes, and its connection closed', async () => {
    const client = await rawConnection(port)
    await flood(client, 500_000)
    const answer = await client.until(/\r\n\r\n/)
    expect(answer).toMatch(/^HTTP\/1\.1 404 /)
    expect(answer.toLowerCase()).toContain('connection: close')
    await client.closed
  })

  it('is not asked for its body', async () => {
    const head = [
      `POST /integrated-account-webhook/${newId()} HTTP/1.1`,
      'Host: x',
      'Content-Length: 9',
      'Expect: 100-continue',
    ]
    expect(await exchange(head)).toMatch(/^HTTP\/1\.1 404 /)
  })
})
