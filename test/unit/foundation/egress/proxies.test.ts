import { createServer, type IncomingMessage } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import { afterAll, afterEach, expect, it } from 'vitest'
import { createEgressPolicy, createHttpClient } from '../../../../src/foundation/egress/index.ts'
import { trustedAuthority } from '../../../support/trusted-authority.ts'
import { startUpstream } from './upstream.ts'

const GET = { method: 'GET', headers: {}, timeoutMs: 5_000, maxResponseBytes: 1_000 }
const PUBLIC = [{ address: '93.184.215.14', family: 4 }]
const authority = trustedAuthority()
const plain = await startUpstream(({ headers }, response) => response.end(`direct ${headers.host}`))
const secure = createTlsServer(
  { SNICallback: (name, done) => done(null, authority.contextOf(name)) },
  ({ headers }, response) => response.end(`tunnel ${headers.host}`),
)
/** What the proxy was asked for, with the credentials it got. */
const asked: string[] = []
const credentials = ({ headers }: IncomingMessage) =>
  Buffer.from(String(headers['proxy-authorization'] ?? '').replace('Basic ', ''), 'base64').toString()
const proxy = createServer((request, response) => {
  asked.push(`${request.method} ${request.url} ${credentials(request)}`)
  response.end('repeated')
}).on('connect', (request, socket, head) => {
  asked.push(`CONNECT ${request.url} ${credentials(request)}`)
  if (request.url?.startsWith('forbidden.') === true) {
    socket.end('HTTP/1.1 403 Forbidden\r\n\r\n')
    return
  }
  const upstream = connect((secure.address() as AddressInfo).port, '127.0.0.1', () => {
    socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
    upstream.write(head)
    socket.pipe(upstream).pipe(socket)
  })
  upstream.on('error', () => socket.destroy())
  socket.on('error', () => upstream.destroy())
})
for (const server of [secure, proxy]) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const proxyUrl = `http://user:p%40ss@127.0.0.1:${(proxy.address() as AddressInfo).port}`

afterEach(() => {
  asked.length = 0
})
afterAll(async () => {
  for (const server of [secure, proxy]) {
    server.closeAllConnections()
    server.close()
  }
  await plain[Symbol.asyncDispose]()
})

/** Names that resolve here; others only the proxy knows. */
const NAMES: Readonly<Record<string, typeof PUBLIC>> = {
  'api.example.com': PUBLIC,
  'forbidden.example.com': PUBLIC,
  'inside.example.com': [{ address: '10.0.0.7', family: 4 }],
  'half.example.com': [...PUBLIC, { address: '169.254.169.254', family: 4 }],
}

async function send(url: string, { noProxy = '', allow = '' } = {}) {
  await using client = createHttpClient({
    policy: createEgressPolicy({ allow }),
    proxies: { httpsProxy: proxyUrl, httpProxy: proxyUrl, noProxy },
    resolveAll: async (name) => NAMES[name] ?? Promise.reject(new Error(`ENOTFOUND ${name}`)),
  })
  return (await client.send({ ...GET, url })).body.toString()
}

it('a call with TLS passes the proxy in a tunnel, with the certificate of the third party', async () => {
  expect(await send('https://api.example.com/x')).toBe('tunnel api.example.com')
  expect(asked).toEqual(['CONNECT api.example.com:443 user:p@ss'])
})

it('a call without TLS is repeated by the proxy', async () => {
  expect(await send('http://api.example.com/x?y=1')).toBe('repeated')
  expect(asked).toEqual(['GET http://api.example.com/x?y=1 user:p@ss'])
})

it('a name that only the proxy resolves is called', async () => {
  expect(await send('https://outside.example.com/')).toBe('tunnel outside.example.com')
})

it.each([
  'https://inside.example.com/',
  'http://inside.example.com/',
  'https://half.example.com/',
  'https://10.0.0.7/',
  'https://[fd00::1]/',
  'http://metadata.google.internal/',
])('the proxy is not asked for %s', async (url) => {
  await expect(send(url)).rejects.toMatchObject({ reason: 'EGRESS_BLOCKED' })
  expect(asked).toEqual([])
})

it('a host of NO_PROXY is called directly, under the same policy', async () => {
  const url = `http://127.0.0.1:${plain.port}/`
  for (const noProxy of ['127.0.0.1', 'x.example, 127.0.0.0/8', '*'])
    expect(await send(url, { noProxy, allow: '127.0.0.0/8' })).toBe(`direct 127.0.0.1:${plain.port}`)
  await expect(send(url, { noProxy: '127.0.0.1' })).rejects.toMatchObject({ reason: 'EGRESS_BLOCKED' })
  expect(asked).toEqual([])
})

it('a tunnel that the proxy rejects is said', async () => {
  await expect(send('https://forbidden.example.com/')).rejects.toMatchObject({
    reason: 'UPSTREAM_UNREACHABLE',
    message: expect.stringContaining('the proxy of HTTPS_PROXY answered 403'),
  })
})
