import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { afterAll, describe, expect, it } from 'vitest'
import { createEgressPolicy, createHttpClient, parseConnectTo } from '../../../../src/foundation/egress/index.ts'
import { createCertificateAuthority } from '../../../support/certificate-authority.ts'
import { trustedAuthority } from '../../../support/trusted-authority.ts'
import { startUpstream } from './upstream.ts'

const LOOPBACK = '127.0.0.0/8,::1/128'
const GET = { method: 'GET', headers: {}, timeoutMs: 5_000, maxResponseBytes: 1_000 }
const authority = trustedAuthority()
const unknown = createCertificateAuthority()

const plain = await startUpstream(({ headers }, response) => response.end(headers.host))
const secure = createServer(
  { SNICallback: (name, done) => done(null, (name === 'forged.example' ? unknown : authority).contextOf(name)) },
  ({ headers, socket }, response) =>
    response.end(`${headers.host} ${(socket as TLSSocket & { servername: string }).servername}`),
)
await new Promise<void>((resolve) => secure.listen(0, '127.0.0.1', resolve))
const { port: securePort } = secure.address() as AddressInfo
afterAll(async () => {
  secure.closeAllConnections()
  secure.close()
  await plain[Symbol.asyncDispose]()
})

/** Resolves no name: what is reached was connected to by the setting. */
function clientOf(connectTo: string, allow = LOOPBACK) {
  return createHttpClient({
    policy: createEgressPolicy({ allow }),
    connectTo: parseConnectTo(connectTo, LOOPBACK),
    resolveAll: () => Promise.reject(new Error('a name was resolved')),
  })
}

async function textOf(connectTo: string, url: string): Promise<string> {
  await using client = clientOf(connectTo)
  return (await client.send({ ...GET, url })).body.toString()
}

describe('a diverted connection', () => {
  it('sends the name and port of the URL as Host', async () => {
    expect(await textOf(`api.example.com=127.0.0.1:${plain.port}`, 'http://api.example.com:8000/')).toBe(
      'api.example.com:8000',
    )
  })

  it('keeps the port of the URL when the address has none', async () => {
    expect(await textOf('api.example.com=127.0.0.1', `http://api.example.com:${plain.port}/`)).toBe(
      `api.example.com:${plain.port}`,
    )
  })

  it('keeps the server name of TLS, for which the certificate has to be', async () => {
    expect(await textOf(`*=127.0.0.1:${securePort}`, 'https://api.example.com/')).toBe(
      'api.example.com api.example.com',
    )
  })

  it('fails when the certificate is not trusted', async () => {
    await using client = clientOf(`*=127.0.0.1:${securePort}`)
    await expect(client.send({ ...GET, url: 'https://forged.example/' })).rejects.toMatchObject({
      reason: 'UPSTREAM_UNREACHABLE',
    })
  })

  it('applies to the streaming call too', async () => {
    await using client = clientOf(`*=127.0.0.1:${plain.port}`)
    const { status, body } = await client.stream({ ...GET, method: 'GET', url: 'http://raw.example/' })
    const chunks: Uint8Array[] = []
    for await (const chunk of body) chunks.push(chunk)
    expect([status, Buffer.concat(chunks).toString()]).toEqual([200, 'raw.example'])
  })

  it('is rejected when the address policy does not allow the address', async () => {
    await using client = clientOf(`*=127.0.0.1:${plain.port}`, '')
    await expect(client.send({ ...GET, url: 'http://api.example.com/' })).rejects.toMatchObject({
      reason: 'EGRESS_BLOCKED',
    })
  })
})

describe('parseConnectTo', () => {
  it.each([
    ['a name', 'api.example.com=127.0.0.1', 'API.example.com', 443, { address: '127.0.0.1', port: undefined }],
    ['another name', 'api.example.com=127.0.0.1', 'example.com', 443, undefined],
    ['a port', 'a.example:443=127.0.0.1:1', 'a.example', 443, { address: '127.0.0.1', port: 1 }],
    ['another port', 'a.example:443=127.0.0.1:1', 'a.example', 80, undefined],
    ['names below', '*.example.com=[::1]:8443', 'a.b.example.com', 443, { address: '::1', port: 8443 }],
    ['not the name above', '*.example.com=[::1]:8443', 'example.com', 443, undefined],
    ['every name', '*=127.0.0.1:1', 'anything', 443, { address: '127.0.0.1', port: 1 }],
    ['no literal address', '*=127.0.0.1:1', '93.184.215.14', 443, undefined],
    [
      'the first match',
      ' a.example=127.0.0.2 , *=127.0.0.3 ',
      'a.example',
      1,
      { address: '127.0.0.2', port: undefined },
    ],
    ['nothing when it is empty', '', 'a.example', 443, undefined],
  ] as const)('matches %s', (_what, text, host, port, target) => {
    const found = parseConnectTo(text, LOOPBACK)(host, port)
    expect(found && { address: found.address, port: found.port }).toEqual(target)
  })

  it.each([
    'a.example',
    'a.example=',
    '=127.0.0.1',
    'a.example=localhost',
    'a.example=127.0.0.1:0',
    'a.example=127.0.0.1:65536',
    'a.example=127.0.0.1=1',
    'a.example=::1',
    'a.*.example=127.0.0.1',
    'https://a.example=127.0.0.1',
  ])('rejects %j and names the variable and the entry', (entry) => {
    expect(() => parseConnectTo(`*=127.0.0.1,${entry}`, LOOPBACK)).toThrowError(
      `PATCHBAY_EGRESS_CONNECT_TO takes host[:port]=address[:port] separated by commas, such as api.example.com=127.0.0.1:8443; "${entry}" is not that`,
    )
  })

  it.each(['', '10.0.0.0/8', '127.0.0.2'])(
    'rejects an address that PATCHBAY_EGRESS_ALLOW=%j does not contain',
    (allow) => {
      expect(() => parseConnectTo('*=127.0.0.1:1', allow)).toThrowError(
        'PATCHBAY_EGRESS_CONNECT_TO "*=127.0.0.1:1" needs PATCHBAY_EGRESS_ALLOW to contain the address 127.0.0.1',
      )
    },
  )
})
