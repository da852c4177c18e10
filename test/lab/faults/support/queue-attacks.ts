import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { IntegrationService } from '../../../../gen/patchbay/v1/integration_service_pb.ts'
import { UnifiedMappingService } from '../../../../gen/patchbay/v1/unified_mapping_service_pb.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { costOf } from '../../../../src/server/api/access.ts'
import { expectJson } from '../../../support/rest.ts'
import type { TenancyFixture } from '../../../support/tenancy-matrix.ts'
import type { Asked, Probed } from './burst.ts'

const { tryUnifiedMapping } = UnifiedMappingService.method
const { checkIntegration } = IntegrationService.method

/** The worst that a tenant can send to a shared queue, and what another one asks of the same queue. */
export interface QueueAttack {
  readonly name: string
  readonly burst: Asked
  readonly probe: Probed
}

const ROWS = 20_000
const ACTIVE_WITHIN_MS = 60_000

/** A third party: slow, large or quick, as the path says. */
async function startUpstream() {
  const rows = (count: number) => `<r>${'<i><a>1</a><b>two</b></i>'.repeat(count)}</r>`
  const large = JSON.stringify({ data: Array.from({ length: ROWS }, (_, id) => ({ id, text: 'x'.repeat(60) })) })
  const server = createServer((request, response) => {
    const [path = ''] = (request.url ?? '').split('?')
    request.resume()
    if (path.endsWith('/slow')) setTimeout(() => response.end('{"data":[]}'), 2_000)
    else if (path.endsWith('/xml')) response.writeHead(200, { 'content-type': 'application/xml' }).end(rows(ROWS))
    else if (path.endsWith('/short-xml')) response.writeHead(200, { 'content-type': 'application/xml' }).end(rows(800))
    else
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(path.endsWith('/large') ? large : '{"data":[]}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() }
}

/** One resource per kind of answer. */
function definitionOf(base_url: string): JsonObject {
  return {
    base_url,
    credentials: { format: 'api_key', config: { fields: [{ name: 'api_key' }] } },
    resources: {
      quick: { list: { path: '/quick' } },
      large: { list: { path: '/large' } },
      xml: { list: { path: '/xml', response_format: 'xml' } },
      short: { list: { path: '/short-xml', response_format: 'xml' } },
    },
  }
}

/** One attack for each shared queue that requests reach by more than an RPC. */
export async function queueAttacks(
  url: string,
  loud: TenancyFixture,
  quiet: TenancyFixture,
): Promise<{ readonly list: readonly QueueAttack[]; close(): void }> {
  const upstream = await startUpstream()
  const accountOf = async (tenant: TenancyFixture) => {
    const create = (path: string, token: string, body: JsonObject) => expectJson('POST', `${url}${path}`, token, body)
    const config = definitionOf(upstream.url)
    const { id: integration_id } = await create('/integration', tenant.teamToken, { name: 'attacked', config })
    const installed = await create('/environment-integration', tenant.environmentToken, { integration_id })
    const { id } = await create('/integrated-account', tenant.environmentToken, {
      environment_integration_id: installed.id,
      tenant_id: 'acme',
      credentials: { api_key: 'key' },
    })
    for (const end = Date.now() + ACTIVE_WITHIN_MS; Date.now() < end; await sleep(100)) {
      const account = await expectJson('GET', `${url}/integrated-account/${id}`, tenant.environmentToken)
      if (account.status === 'active') return id
    }
    throw new Error('the account did not become active')
  }
  const [ofLoud, ofQuiet] = [await accountOf(loud), await accountOf(quiet)]
  const custom = (path: string, id: string): Asked => ({
    url: `${url}/custom${path}?integrated_account_id=${id}`,
    verb: 'GET',
    headers: {},
    body: '',
  })
  const call = (resource: string, id: string) =>
    post(`${url}/patchbay.v1.ProxyService/Call`, {
      integrated_account_id: id,
      resource,
      method: 'list',
    })
  const tried = (expression: string) =>
    post(`${url}/unified-mapping/try`, {
      model: 'crm',
      resource: 'contacts',
      integration_name: 'hubspot',
      method: 'get',
      config: { response: { fields: { first_name: expression } } },
      call: { id: '1', exchanges: [{ response: { status: 200, body: { id: '1', properties: {} } } }] },
    })
  const inline = `[${Array.from({ length: 60 }, (_, index) => `$uppercase(properties.firstname & "${index}")`)}]`
  const endless = '($loop := function($n) { $loop($n + 1) }; $loop(0))'
  const body = { config: { values: Array.from({ length: 20_000 }, (_, index) => ({ index, text: 'x'.repeat(160) })) } }
  const list: readonly QueueAttack[] = [
    {
      name: 'sandbox',
      burst: tried(endless),
      probe: { ...tried('$sort([3, 1, 2])[0]'), units: costOf(tryUnifiedMapping) },
    },
    {
      name: 'inline expressions',
      burst: tried(inline),
      probe: { ...tried('properties.firstname'), units: costOf(tryUnifiedMapping) },
    },
    {
      name: 'large bodies',
      burst: post(`${url}/integration/check`, body),
      probe: { ...post(`${url}/integration/check`, { config: {} }), units: costOf(checkIntegration) },
    },
    { name: 'slow third party', burst: custom('/slow', ofLoud), probe: custom('/quick', ofQuiet) },
    { name: 'large answers', burst: call('large', ofLoud), probe: call('quick', ofQuiet) },
    { name: 'decoding', burst: call('xml', ofLoud), probe: call('short', ofQuiet) },
  ]
  return { list, close: upstream.close }
}

function post(url: string, body: JsonObject): Asked {
  return { url, verb: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
}
