import type { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { RunningProduct } from '../../support/product.ts'
import { callRest, expectJson } from '../../support/rest.ts'
import { KIB, MIB } from '../../untrusted/reader.ts'
import { READERS } from '../../untrusted/registry.ts'

/** One request over HTTP that is made to keep the server busy. */
export interface FreezingRequest {
  readonly what: string
  readonly send: () => Promise<void>
}

/** The formats of answers, with the content type each is sent as. */
const ANSWERS = { json: 'application/json', csv: 'text/csv', xml: 'application/xml', ndjson: 'application/x-ndjson' }
/** Bytes of the large answers, of which the definition's author chooses the sender. */
const ANSWER_BYTES = 15 * MIB
const XML_BYTES = 7 * MIB
/** Headers of answers are read up to 32 KiB. */
const HEADER_BYTES = 24 * KIB

/** A third party that answers `/<format>/<attack>` with that attack, and `/link/<attack>` with it as its Link header. */
export async function startFreezingUpstream(
  create: typeof createServer,
): Promise<{ readonly url: string; close(): void }> {
  const server = create((request, response) => {
    const [, format = '', attack = ''] =
      decodeURIComponent(request.url ?? '')
        .split('?')[0]
        ?.split('/') ?? []
    if (format === 'link') response.setHeader('link', attackOf('Link header', attack)(HEADER_BYTES)).end('[]')
    else {
      const body = attackOf(`answer ${format}`, attack)(format === 'xml' ? XML_BYTES : ANSWER_BYTES)
      response.writeHead(200, { 'content-type': ANSWERS[format as keyof typeof ANSWERS] }).end(body)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() }
}

/** Requests that froze a server once, and the attacks of the registry where a client chooses them. */
export async function* freezingRequests(
  { url, bootstrap }: RunningProduct,
  upstreamUrl: string,
): AsyncGenerator<FreezingRequest> {
  const token = bootstrap.environment_token
  const post = (path: string, body: unknown) => callRest('POST', `${url}${path}`, token, body).then(() => {})
  for (const [attack, make] of Object.entries(readerOf('definition').attacks)) {
    const body = `{"config":${make(256 * KIB)}}`
    yield { what: `definition, ${attack}`, send: () => post('/integration/check', body) }
  }
  const account = await seedAccount(url, bootstrap, upstreamUrl)
  const pattern = 'a{0,99}a{0,99}a{0,99}a{0,99}a{0,99}b'
  const fields = [{ name: 'a', pattern, required: true }]
  const override = { credentials: { config: { fields } } }
  yield {
    what: 'pattern of a field',
    send: async () => {
      await callRest('PATCH', `${url}/environment-integration/${account.installationId}`, token, { override })
      await post('/integrated-account', {
        environment_integration_id: account.installationId,
        credentials: { a: 'a'.repeat(512) },
      })
    },
  }
  const headers = { authorization: `Bearer ${token}` }
  for (const [format, attack] of answers()) {
    const id = encodeURIComponent(attack)
    const path = format === 'link' ? `/proxy/link?attack=${id}&` : `/proxy/${format}/${id}?`
    const send = async () => {
      const answer = await fetch(`${url}${path}integrated_account_id=${account.id}`, { headers })
      await answer.arrayBuffer()
    }
    yield { what: `answer ${format}, ${attack}`, send }
  }
  yield {
    what: 'blanks where no body is taken',
    send: () => callRest('DELETE', `${url}/webhook/x`, token, `${' '.repeat(MIB)}x`).then(() => {}),
  }
}

/** An account with one resource per format of answers; the answer is read whole, and nothing of it passed on. */
async function seedAccount(
  url: string,
  { team_token, environment_token }: RunningProduct['bootstrap'],
  base_url: string,
) {
  const formats = Object.keys(ANSWERS).map((format) => {
    const get = { path: `/${format}/{{id}}`, response_format: format, response_path: 'nothing' }
    return [format, { get }] as const
  })
  const link = { list: { path: '/link/{{query.attack}}', pagination: { format: 'link_header' } } }
  const config = {
    base_url,
    credentials: { format: 'api_key', config: { fields: [{ name: 'a' }] } },
    resources: { ...Object.fromEntries(formats), link },
  }
  const integration = await expectJson('POST', `${url}/integration`, team_token, { name: 'freezing', config })
  const installation = await expectJson('POST', `${url}/environment-integration`, environment_token, {
    integration_id: integration.id,
  })
  const account = await expectJson('POST', `${url}/integrated-account`, environment_token, {
    environment_integration_id: installation.id,
    tenant_id: 'a',
    credentials: { a: 'a' },
  })
  return { id: account.id, installationId: installation.id }
}

/** Every attack of every format of answers, and those of the Link header. */
function answers(): readonly (readonly [format: string, attack: string])[] {
  const formats = Object.keys(ANSWERS).map((format) => [format, readerOf(`answer ${format}`)] as const)
  return [...formats, ['link', readerOf('Link header')] as const].flatMap(([format, { attacks }]) =>
    Object.keys(attacks).map((attack) => [format, attack] as const),
  )
}

function readerOf(name: string) {
  const reader = READERS.find((each) => each.name === name)
  if (reader === undefined) throw new Error(`no reader ${name}`)
  return reader
}

function attackOf(name: string, attack: string): (length: number) => string {
  const make = readerOf(name).attacks[attack]
  if (make === undefined) throw new Error(`no attack ${attack}`)
  return make
}
