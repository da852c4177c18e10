import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { fromJson, toJson } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { EnvironmentIntegrationSchema } from '../../gen/patchbay/v1/environment_integration_pb.ts'
import { IntegrationService } from '../../gen/patchbay/v1/integration_service_pb.ts'
import type { Json, JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { inTurn } from '../support/case-count.ts'
import { SERVICES } from '../support/operations.ts'
import { EXAMPLE_CONFIG, freshName, idOf } from '../support/seeded-tenant.ts'

const BUF = join(import.meta.dirname, '../../node_modules/.bin/buf')
const SERVICE = 'patchbay.v1.EnvironmentIntegrationService'
const PROTOCOLS = ['grpc', 'grpcweb', 'connect']
/** The exit code of a refused call is its gRPC code, shifted. */
const UNAUTHENTICATED_EXIT = 16 << 3

const run = promisify(execFile)
const app = await startTestApp()
const admin = app.client('connect', { token: app.first.teamToken })

/** `buf curl`, which knows nothing of the contract but what reflection tells it. */
async function bufCurl(protocol: string, path: string, ...more: readonly string[]): Promise<string> {
  const args = ['curl', '--http2-prior-knowledge', '--reflect', '--emit-defaults', '--protocol', protocol, ...more]
  const { stdout } = await run(BUF, [...args, `${app.url}/${path}`])
  return stdout
}

const authorization = ['-H', `authorization: Bearer ${app.first.environmentToken}`]

async function postRest(path: string, body: JsonObject): Promise<JsonObject> {
  const response = await fetch(`${app.url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${app.first.environmentToken}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  expect(response.status).toBe(200)
  return (await response.json()) as JsonObject
}

/** buf prints lower camel case and leaves zero fractions out; as a message both readings are one. */
function canonical(json: Json): Json {
  const message = fromJson(EnvironmentIntegrationSchema, json as never)
  return toJson(EnvironmentIntegrationSchema, message, { useProtoFieldName: true, alwaysEmitImplicit: true }) as Json
}

/** What differs between two installations of equal integrations: ids, names and times. */
function withoutIdentity(json: Json): Json {
  const text = JSON.stringify(json)
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<id>')
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
    .replace(/example-\d+/g, '<name>')
  return JSON.parse(text)
}

async function freshIntegration(): Promise<string> {
  const request = { name: freshName('example'), config: EXAMPLE_CONFIG }
  return await idOf(admin, IntegrationService.method.createIntegration, request)
}

describe.each(inTurn(PROTOCOLS))('buf curl over %s, with reflection', (protocol) => {
  it('creates an environment integration and prints what REST answers', async () => {
    const fields = { show_in_catalog: true, override: { label: 'Ours', tags: ['a'] } }
    const request = JSON.stringify({ integration_id: await freshIntegration(), ...fields })
    const printed = await bufCurl(protocol, `${SERVICE}/CreateEnvironmentIntegration`, ...authorization, '-d', request)
    const answered = await postRest('/environment-integration', { integration_id: await freshIntegration(), ...fields })

    expect(withoutIdentity(canonical(JSON.parse(printed)))).toEqual(withoutIdentity(canonical(answered)))
  })

  it('reads the very resource that REST created', async () => {
    const answered = await postRest('/environment-integration', { integration_id: await freshIntegration() })
    const request = JSON.stringify({ id: answered.id ?? '' })
    const printed = await bufCurl(protocol, `${SERVICE}/GetEnvironmentIntegration`, ...authorization, '-d', request)

    expect(canonical(JSON.parse(printed))).toEqual(canonical(answered))
  })

  it('is rejected without a token, with the reason in the details', async () => {
    const refused = await bufCurl(protocol, `${SERVICE}/ListEnvironmentIntegrations`, '-d', '{}').catch(
      (error) => error,
    )

    expect(refused).toMatchObject({ code: UNAUTHENTICATED_EXIT })
    expect(`${refused.stdout}${refused.stderr}`).toContain('unauthenticated')
  })

  it('finds the server healthy', async () => {
    const printed = await bufCurl(protocol, 'grpc.health.v1.Health/Check', '-d', '{}')
    expect(JSON.parse(printed)).toEqual({ status: 'SERVING' })
  })
})

describe('reflection', () => {
  it('lists every service of the contract', async () => {
    const { stdout } = await run(BUF, ['curl', '--http2-prior-knowledge', '--reflect', '--list-services', app.url])
    const listed = stdout.trim().split('\n')
    expect(listed).toEqual(expect.arrayContaining(SERVICES.map(({ typeName }) => typeName)))
  })
})
