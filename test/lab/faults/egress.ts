/**
 * Tries to talk the guarded HTTP client into reaching this machine: encodings of addresses, redirects, names that rebind.
 *
 * Canaries listen on both loopback addresses and count connections; the resolver is the worst there is, answering
 * every unknown name with loopback.
 */

import type { LookupAddress } from 'node:dns'
import type { EgressPolicy } from '../../../src/foundation/egress/address-policy.ts'
import type { EgressRequest } from '../../../src/foundation/egress/index.ts'
import { createEgressPolicy, createHttpClient, type HttpClient } from '../../../src/foundation/egress/index.ts'
import { bypassUrls } from '../../unit/foundation/egress/bypass-urls.ts'
import { startUpstream } from '../../unit/foundation/egress/upstream.ts'
import { reportAtLeast, reportAtMost } from '../bench/support/report.ts'

const BYPASS_URLS_MIN = 350
const REBINDING_ROUNDS = 200
const REDIRECT_STATUSES = [301, 302, 303, 307, 308]
const PUBLIC: LookupAddress = { address: '93.184.215.14', family: 4 }
const LOOPBACK: readonly LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
  { address: '::ffff:127.0.0.1', family: 6 },
]

const closed = createEgressPolicy({ allow: '' })
await using canary = await startUpstream((_request, response) => void response.end('reached'))
await using canaryV6 = await startUpstream((_request, response) => void response.end('reached'), '::1')
const reached = () => canary.connections() + canaryV6.connections()

await canariesAreAlive()
await encodings()
await redirects()
await rebinding()
await legitimate()

/** The same encodings with loopback opened do reach the canaries, so that silence elsewhere means something. */
async function canariesAreAlive(): Promise<void> {
  const policy = createEgressPolicy({ allow: '127.0.0.0/8,::1/128' })
  await using client = createHttpClient({ policy, resolveAll: async () => LOOPBACK.slice(0, 1) })
  let answered = 0
  for (const url of bypassUrls(canary.port)) if (await answers(client, { url })) answered++
  reportAtLeast('egress-opened-reached', answered, 'URLs', 20)
}

/** Every encoding through both calls: whole answers and streams. */
async function encodings(): Promise<void> {
  await using client = createHttpClient({ policy: closed, resolveAll: async () => LOOPBACK })
  const urls = [...bypassUrls(canary.port), ...bypassUrls(canaryV6.port)]
  const before = reached()
  let answered = 0
  for (const url of urls) {
    if (await answers(client, { url })) answered++
    if (await streams(client, url)) answered++
  }
  reportAtLeast('egress-bypass-urls', bypassUrls(canary.port).length, 'URLs', BYPASS_URLS_MIN)
  reportAtMost('egress-bypass-reached', answered + reached() - before, 'URLs', 0)
}

/** An allowed upstream redirects to every encoding, directly and through a second redirect. */
async function redirects(): Promise<void> {
  let location = ''
  let status = 302
  await using allowed = await startUpstream(({ url }, response) => {
    const hop = url === '/chain' ? '/last' : location
    response.writeHead(status, { location: hop }).end()
  })
  // The allowed upstream alone may be dialled: it is 127.0.0.1 under a policy that knows no other address.
  const doorOnly: EgressPolicy = { ...closed, allows: (address) => address === '127.0.0.1' }
  const resolveAll = async (name: string) => (name === 'allowed.example' ? LOOPBACK.slice(0, 1) : LOOPBACK)
  await using client = createHttpClient({ policy: doorOnly, resolveAll })
  const targets = bypassUrls(canaryV6.port).filter((url) => !pointsTo(url, '127.0.0.1') && /^http:\/\//.test(url))
  const before = reached()
  let followed = 0
  for (const [index, target] of targets.entries()) {
    location = target.replace(/[^\x21-\x7e]/g, encodeURIComponent)
    status = REDIRECT_STATUSES[index % REDIRECT_STATUSES.length] ?? 302
    for (const path of ['/last', '/chain']) {
      if (await answers(client, { url: `http://allowed.example:${allowed.port}${path}`, redirects: 3 })) followed++
    }
  }
  reportAtLeast('egress-redirect-targets', targets.length, 'URLs', 200)
  reportAtMost('egress-redirect-reached', followed + reached() - before, 'URLs', 0)
}

/** A name whose answers flip between public and internal from query to query, alone and mixed. */
async function rebinding(): Promise<void> {
  let query = 0
  const answersOf = (round: number): readonly LookupAddress[] => {
    const internal = LOOPBACK[round % LOOPBACK.length] ?? PUBLIC
    return [[internal], [PUBLIC, internal], [internal, PUBLIC], LOOPBACK][round % 4] ?? []
  }
  await using client = createHttpClient({ policy: closed, resolveAll: async () => answersOf(query++) })
  const before = reached()
  let answered = 0
  for (let round = 0; round < REBINDING_ROUNDS; round++) {
    const { port } = round % 2 === 0 ? canary : canaryV6
    if (await answers(client, { url: `http://rebind-${round % 7}.example:${port}/` })) answered++
  }
  reportAtMost('egress-rebinding-reached', answered + reached() - before, 'calls', 0)
}

/** What may be called is called: by literal, by name, by address family, after a redirect. */
async function legitimate(): Promise<void> {
  const policy = createEgressPolicy({ allow: '127.0.0.0/8,::1/128' })
  const resolveAll = async (name: string) => (name.startsWith('v6.') ? LOOPBACK.slice(1, 2) : LOOPBACK.slice(0, 1))
  await using client = createHttpClient({ policy, resolveAll })
  await using allowed = await startUpstream((_request, response) => {
    response.writeHead(302, { location: `http://api.example.com:${canary.port}/after` }).end()
  })
  const urls = [
    ...['127.0.0.1', '127.1', '2130706433', 'localhost', '[::ffff:127.0.0.1]'].map(
      (h) => `http://${h}:${canary.port}/`,
    ),
    ...['api.github.com', 'slack.com', 'acme.my.salesforce.com', 'xn--bcher-kva.example', 'a.b.c.d.example'].map(
      (host) => `http://${host}:${canary.port}/path?query=1#fragment`,
    ),
    ...['[::1]', '[0:0:0:0:0:0:0:1]', 'v6.example'].map((host) => `http://${host}:${canaryV6.port}/`),
    `${allowed.origin}/`,
  ]
  let arrived = 0
  for (const url of urls) if (await answers(client, { url, redirects: 1 })) arrived++
  reportAtLeast('egress-legitimate-reached', arrived / urls.length, 'share', 1)
}

async function answers(client: HttpClient, request: Pick<EgressRequest, 'url' | 'redirects'>): Promise<boolean> {
  const call = client.send({ method: 'GET', headers: {}, timeoutMs: 2_000, maxResponseBytes: 10_000, ...request })
  return call.then(
    ({ status }) => status === 200,
    () => false,
  )
}

async function streams(client: HttpClient, url: string): Promise<boolean> {
  const call = client.stream({ method: 'GET', url, headers: {}, timeoutMs: 2_000, maxResponseBytes: 10_000 })
  return call.then(
    () => true,
    () => false,
  )
}

function pointsTo(url: string, host: string): boolean {
  return URL.parse(url)?.hostname === host
}
