import type { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { create, toBinary } from '@bufbuild/protobuf'
import { CallRequestSchema } from '../../../../gen/patchbay/v1/proxy_service_pb.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { KIB, MIB } from '../../../laws/untrusted/reader.ts'
import { READERS } from '../../../laws/untrusted/registry.ts'
import type { RunningProduct } from '../../../support/product.ts'
import { callRest, expectJson } from '../../../support/rest.ts'

/** One request over HTTP that is made to keep the server busy. */
export interface BlockingRequest {
  readonly what: string
  readonly send: () => Promise<void>
}

/** Answers that the client gets whole. */
const PASSED_ON = ['records', 'text', 'numbers in objects']
/** The formats of answers, with the content type each is sent as. */
const ANSWERS = { json: 'application/json', csv: 'text/csv', xml: 'application/xml', ndjson: 'application/x-ndjson' }
/** Bytes of the large answers, of which the definition's author chooses the sender. */
const ANSWER_BYTES = 15 * MIB
const XML_BYTES = 7 * MIB
/** Headers of answers are read up to 32 KiB. */
const HEADER_BYTES = 24 * KIB

/**
 * A third party that answers `/<format>/<attack>` with that attack, `/error/<attack>` with the one in JSON as an error, and
 * `/link/<attack>` with it as its Link header.
 */
export async function startBlockingUpstream(
  create: typeof createServer,
): Promise<{ readonly url: string; close(): void }> {
  const server = create((request, response) => {
    const [, format = '', attack = ''] =
      decodeURIComponent(request.url ?? '')
        .split('?')[0]
        ?.split('/') ?? []
    if (format === 'link') response.setHeader('link', attackOf('Link header', attack)(HEADER_BYTES)).end('[]')
    else if (format === 'error') {
      const body = attackOf('answer json', attack)(ANSWER_BYTES)
      response.writeHead(400, { 'content-type': ANSWERS.json }).end(body)
    } else {
      const body = attackOf(`answer ${format}`, attack)(format === 'xml' ? XML_BYTES : ANSWER_BYTES)
      response.writeHead(200, { 'content-type': ANSWERS[format as keyof typeof ANSWERS] }).end(body)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() }
}

/** Requests that froze a server once, and the attacks of the registry where a client chooses them. */
export async function* blockingRequests(
  { url, bootstrap }: RunningProduct,
  upstreamUrl: string,
): AsyncGenerator<BlockingRequest> {
  const token = bootstrap.environment_token
  const post = (path: string, body: unknown) => callRest('POST', `${url}${path}`, token, body).then(() => {})
  for (const [attack, make] of Object.entries(readerOf('definition').attacks)) {
    const body = `{"config":${make(256 * KIB)}}`
    yield { what: `definition, ${attack}`, send: () => post('/integration/check', body) }
  }
  const account = await seedAccount(url, bootstrap, 'freezing', answeringConfig(upstreamUrl))
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
  yield* passedOn(url, token, account.id)
  yield await recompiledPlan(url, bootstrap, upstreamUrl)
  for (const [format, attack] of answers()) {
    const id = encodeURIComponent(attack)
    const path = format === 'link' ? `/proxy/link?attack=${id}&` : `/proxy/${format}/${id}?`
    const send = () => read(`${url}${path}integrated_account_id=${account.id}`, { headers })
    yield { what: `answer ${format}, ${attack}`, send }
  }
  yield {
    what: 'blanks where no body is taken',
    send: () => callRest('DELETE', `${url}/webhook/x`, token, `${' '.repeat(MIB)}x`).then(() => {}),
  }
}

/** Answers that reach the client whole: over REST, as one page of a list, and over Connect in both codecs. */
function* passedOn(url: string, token: string, accountId: string): Generator<BlockingRequest> {
  const headers = { authorization: `Bearer ${token}` }
  for (const attack of PASSED_ON) {
    const id = encodeURIComponent(attack)
    const account = `integrated_account_id=${accountId}`
    yield { what: `passed on, ${attack}`, send: () => read(`${url}/proxy/whole/${id}?${account}`, { headers }) }
    const error = `${url}/proxy/error/${id}?include_raw=true&${account}`
    yield { what: `error passed on, ${attack}`, send: () => read(error, { headers }) }
    yield { what: `listed, ${attack}`, send: () => read(`${url}/proxy/whole?attack=${id}&${account}`, { headers }) }
    const call = { integratedAccountId: accountId, resource: 'whole', method: 'get', id: attack }
    const bodies = { json: JSON.stringify(call), proto: toBinary(CallRequestSchema, create(CallRequestSchema, call)) }
    for (const [codec, body] of Object.entries(bodies)) {
      const request = { method: 'POST', headers: { ...headers, 'content-type': `application/${codec}` }, body }
      const send = () => read(`${url}/patchbay.v1.ProxyService/Call`, request)
      yield { what: `passed on over Connect ${codec}, ${attack}`, send }
    }
  }
}

/** The first call after a change of a large definition, whose resources share many headers. */
async function recompiledPlan(
  url: string,
  bootstrap: RunningProduct['bootstrap'],
  base_url: string,
): Promise<BlockingRequest> {
  const names = (count: number, prefix: string) => Array.from({ length: count }, (_, at) => `${prefix}${at}`)
  const account = await seedAccount(url, bootstrap, 'large', {
    base_url,
    headers: Object.fromEntries(names(60, 'x-').map((name) => [name, `{{context.${name}|environment_variables.a}}`])),
    credentials: CREDENTIALS,
    resources: Object.fromEntries(names(1_000, 'resource').map((name) => [name, { get: { path: '/link/{{id}}' } }])),
  })
  const token = bootstrap.environment_token
  let changes = 0
  const send = async () => {
    const override = { environment_variables: { a: `${changes++}` } }
    await callRest('PATCH', `${url}/environment-integration/${account.installationId}`, token, { override })
    await read(`${url}/proxy/resource7/links?integrated_account_id=${account.id}`, {
      headers: { authorization: `Bearer ${token}` },
    })
  }
  return { what: 'plan of a large definition', send }
}

async function read(url: string, request: RequestInit): Promise<void> {
  const answer = await fetch(url, request)
  await answer.arrayBuffer()
  if (answer.status === 401 || answer.status === 404) throw new Error(`${url} answered ${answer.status}`)
}

const CREDENTIALS = { format: 'api_key', config: { fields: [{ name: 'a' }] } }

/** One resource per format of answers, of which nothing is passed on, and one whose answer is passed on whole. */
function answeringConfig(base_url: string): JsonObject {
  const formats = Object.keys(ANSWERS).map((format) => {
    const get = { path: `/${format}/{{id}}`, response_format: format, response_path: 'nothing' }
    return [format, { get }] as const
  })
  const pagination = { format: 'link_header' }
  const whole = { get: { path: '/json/{{id}}' }, list: { path: '/json/{{query.attack}}', pagination } }
  const error = { get: { path: '/error/{{id}}' } }
  const link = { list: { path: '/link/{{query.attack}}', pagination } }
  return { base_url, credentials: CREDENTIALS, resources: { ...Object.fromEntries(formats), link, whole, error } }
}

async function seedAccount(
  url: string,
  { team_token, environment_token }: RunningProduct['bootstrap'],
  name: string,
  config: JsonObject,
) {
  const integration = await expectJson('POST', `${url}/integration`, team_token, { name, config })
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
