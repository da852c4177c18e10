import { type DescMethod, getOption } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { Access, access as accessOption, scope as scopeOption } from '../../gen/patchbay/v1/access_pb.ts'
import { ApiTokenService } from '../../gen/patchbay/v1/api_token_service_pb.ts'
import { newId } from '../../src/foundation/base/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { TOKEN_PRESETS } from '../../src/platform/tenancy/index.ts'
import { SCOPES } from '../../src/platform/tenancy/scopes.ts'
import { startTestApp } from '../support/app.ts'
import { someCases } from '../support/case-count.ts'
import { SERVICES } from '../support/operations.ts'
import { callRest } from '../support/rest.ts'
import { firstTenant, seedTenant } from '../support/seeded-tenant.ts'
import { connectClient } from '../unit/tools/mcp/client.ts'

const app = await startTestApp()
const { teamToken, environmentId } = app.first
const team = app.client('connect', { token: teamToken })

type Kind = 'team' | 'environment'
const METHODS: readonly DescMethod[] = SERVICES.flatMap(({ methods }) => methods)
const scopeOf = (method: DescMethod) => getOption(method, scopeOption)
const kindOf = (method: DescMethod): Kind => (getOption(method, accessOption) === Access.TEAM ? 'team' : 'environment')
const withNames = (methods: readonly DescMethod[]) => methods.map((method) => [method.name, method] as const)

async function createToken(kind: Kind, choice: JsonObject, token = teamToken): Promise<string> {
  const environment = kind === 'environment' ? { environment_id: environmentId } : {}
  const made = await team.ok(
    ApiTokenService.method.createApiToken,
    { kind, name: 'scoped', ...environment, ...choice },
    { token },
  )
  return String(made.token)
}

const tokens = new Map<string, Promise<string>>()
function tokenWith(kind: Kind, scopes: readonly string[]): Promise<string> {
  const key = `${kind} ${scopes}`
  const known = tokens.get(key) ?? createToken(kind, { scopes: [...scopes] })
  tokens.set(key, known)
  return known
}

/** All scopes that do not include the one: without `runs:write` a token with `runs:read` is not one of them. */
const without = (scope: string) =>
  SCOPES.filter((other) => other !== scope && other !== scope.replace(/read$/, 'write'))

/** Whether the gate rejects a call for its scope; what becomes of one that it lets in does not matter here. */
async function isRejected(method: DescMethod, token: string): Promise<boolean> {
  const isStream = method.methodKind !== 'unary'
  const message = Buffer.from('{}')
  const envelope = Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message])
  const response = await fetch(`${app.url}/${method.parent.typeName}/${method.name}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': isStream ? 'application/connect+json' : 'application/json',
      'connect-timeout-ms': '1000',
    },
    body: isStream ? envelope : message,
  })
  const text = await response.text()
  if (text.includes('SCOPE_REQUIRED')) expect(text).toContain(scopeOf(method))
  return text.includes('SCOPE_REQUIRED')
}

describe('the scopes of the contract', () => {
  it('are those of tokens, beside proxy:write, which a call needs that changes something', () => {
    const used = new Set([...METHODS.map(scopeOf).filter((scope) => scope !== ''), 'proxy:write'])
    expect([...used].sort()).toEqual(SCOPES)
  })

  it('are named by each RPC that needs a token', () => {
    const isPublic = (method: DescMethod) => getOption(method, accessOption) === Access.PUBLIC
    expect(METHODS.filter((method) => isPublic(method) !== (scopeOf(method) === ''))).toEqual([])
  })
})

describe('a token with all scopes but the one that is needed', () => {
  it.each(withNames(METHODS))('may not call %s', async (_name, method) => {
    expect(await isRejected(method, await tokenWith(kindOf(method), without(scopeOf(method))))).toBe(true)
  })
})

describe('a token with the one scope that is needed, and with what includes it,', () => {
  it.each(withNames(METHODS))('may call %s', async (_name, method) => {
    const [scope, kind] = [scopeOf(method), kindOf(method)]
    expect(await isRejected(method, await tokenWith(kind, [scope]))).toBe(false)
    const write = scope.replace(/read$/, 'write')
    if (SCOPES.includes(write)) expect(await isRejected(method, await tokenWith(kind, [write]))).toBe(false)
  })
})

describe('a token with one scope', () => {
  it.each(someCases(SCOPES, 5))('%s calls what needs it and nothing else', async (scope) => {
    for (const method of METHODS) {
      const needed = scopeOf(method)
      const isIncluded = needed === scope || needed === scope.replace(/write$/, 'read')
      expect([method.name, await isRejected(method, await tokenWith(kindOf(method), [scope]))]).toEqual([
        method.name,
        !isIncluded,
      ])
    }
  })
})

describe('a token with a preset', () => {
  it.each(TOKEN_PRESETS)('%s calls exactly what its scopes say', async (preset) => {
    const { scopes } = await team.ok(ApiTokenService.method.createApiToken, { kind: 'team', name: 'shown', preset })
    const granted = (scopes as string[]).flatMap((scope) => [scope, scope.replace(/write$/, 'read')])
    const byKind = {
      team: await createToken('team', { preset }),
      environment: await createToken('environment', { preset }),
    }
    for (const method of METHODS) {
      const isGranted = preset === 'full' || granted.includes(scopeOf(method))
      expect([method.name, await isRejected(method, byKind[kindOf(method)])]).toEqual([method.name, !isGranted])
    }
  })

  it('of a time before a scope existed does not get it', async () => {
    const { id, scopes } = await team.ok(ApiTokenService.method.createApiToken, {
      kind: 'team',
      name: 'old',
      preset: 'read',
    })
    expect(await team.ok(ApiTokenService.method.getApiToken, { id })).toMatchObject({ preset: 'read', scopes })
    expect(scopes).not.toContain('*')
  })
})

describe('a token that creates tokens', () => {
  const creator = () => tokenWith('team', ['api_tokens:write', 'runs:write'])

  it.each([
    ['a scope that it lacks', { scopes: ['webhooks:read'] }, 'webhooks:read'],
    ['all scopes', { preset: 'full' }, '*'],
    ['a preset with scopes that it lacks', { preset: 'read' }, 'accounts:read'],
  ])('may not grant %s', async (_what, choice, scope) => {
    const request = { kind: 'team', name: 'more', ...choice }
    expect(
      await team.callError(ApiTokenService.method.createApiToken, request, { token: await creator() }),
    ).toMatchObject({ code: 'PERMISSION_DENIED', reason: 'SCOPE_REQUIRED', metadata: { scope } })
  })

  it('grants what it has and what that includes', async () => {
    await createToken('team', { scopes: ['runs:read', 'runs:write', 'api_tokens:read'] }, await creator())
  })
})

const tenant = await seedTenant(app, firstTenant(app))

describe('an HTTP route that is no RPC', () => {
  const query = `integrated_account_id=${tenant.integratedAccountId}`
  it.each([
    ['GET', `/proxy/repos?${query}`],
    ['POST', `/proxy/issues?${query}`],
    ['GET', `/custom/repos?${query}`],
    ['POST', `/custom/repos?${query}`],
    ['GET', `/unified/crm/contacts?${query}`],
  ])('needs proxy:read: %s %s', async (verb, path) => {
    const token = await tokenWith('environment', without('proxy:read'))
    const { status, body } = await callRest(verb, app.url + path, token, verb === 'POST' ? {} : undefined)
    expect({ status, body }).toMatchObject({
      status: 403,
      body: { error: { message: expect.stringContaining('proxy:read') } },
    })
  })

  it('has a scope of the contract, or leads to what has one', () => {
    const scoped = app.routes.filter(({ access }) => access !== 'public')
    expect(scoped.map(({ path, scope }) => `${path} ${scope}`).sort()).toEqual([
      '/custom/ proxy:read',
      '/mcp/management undefined',
      '/proxy/ proxy:read',
      '/unified/ proxy:read',
    ])
  })

  it.each([
    ['POST', `/custom/repos?${query}`],
    ['DELETE', `/custom/repos?${query}`],
    ['POST', `/proxy/issues?${query}`],
  ])('needs proxy:write for what changes something: %s %s', async (verb, path) => {
    const token = await tokenWith('environment', ['proxy:read'])
    const { status, body } = await callRest(verb, app.url + path, token, {})
    expect({ status, body }).toMatchObject({
      status: 403,
      body: { error: { message: expect.stringContaining('proxy:write') } },
    })
  })
})

describe('the tools of the contract', () => {
  it('are those of the scopes of the token', async () => {
    const token = await tokenWith('environment', ['runs:read'])
    const { tools } = await (await connectClient({ url: `${app.url}/mcp/management`, token }, 'modern')).listTools()
    expect(tools.map(({ name }) => name).sort()).toEqual(['get_sync_job_run', 'list_sync_job_runs'])
  })
})

describe('a token that administers tool servers', () => {
  const create = (is_read_only: boolean) => ({
    name: newId(),
    integrated_account_id: tenant.integratedAccountId,
    is_read_only,
  })

  it.each([
    ['one that reads', ['tool_servers:write'], true, 'proxy:read'],
    ['one that writes', ['tool_servers:write', 'proxy:read'], false, 'proxy:write'],
  ])('creates none that does more than itself: %s', async (_what, scopes, isReadOnly, missing) => {
    const { status, body } = await callRest(
      'POST',
      `${app.url}/tool-server`,
      await tokenWith('environment', scopes),
      create(isReadOnly),
    )
    expect({ status, body }).toMatchObject({
      status: 403,
      body: { error: { message: expect.stringContaining(missing) } },
    })
  })
})
