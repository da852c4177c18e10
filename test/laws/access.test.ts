import type { DescMethodUnary } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { newId } from '../../src/foundation/base/index.ts'
import { mintToken } from '../../src/platform/tenancy/token-format.ts'
import { startTestApp } from '../support/app.ts'
import { overWire } from '../support/case-count.ts'
import type { CallOutcome, Client } from '../support/client.ts'
import { idFieldsOf, namesInPath, OPERATIONS } from '../support/operations.ts'

const app = await startTestApp()
const clients = app.clients({})

const TEAM_SERVICES = [
  'TeamService',
  'EnvironmentService',
  'ApiTokenService',
  'IntegrationService',
  'UnifiedModelService',
]
/** Operations on what a team owns that either kind of token may call; of mappings, those of the team and of environments. */
const OF_EITHER_TOKEN = [
  'GetIntegration',
  'ListIntegrations',
  'CheckIntegration',
  'ListIntegrationTools',
  'GetUnifiedModel',
  'ListUnifiedModels',
  'CheckUnifiedModel',
  'CreateUnifiedMapping',
  'GetUnifiedMapping',
  'ListUnifiedMappings',
  'UpdateUnifiedMapping',
  'DeleteUnifiedMapping',
  'CheckUnifiedMapping',
  'ListAuditEntries',
]
const OF_AN_ACCOUNT = ['DescribeUnifiedModel']

const needsTeam = OPERATIONS.filter(
  ({ parent, name }) =>
    TEAM_SERVICES.includes(parent.name) && !OF_EITHER_TOKEN.includes(name) && !OF_AN_ACCOUNT.includes(name),
)
const needsEnvironment = OPERATIONS.filter(
  (method) => !needsTeam.includes(method) && !OF_EITHER_TOKEN.includes(method.name),
)

/** Only what the REST path needs: the gate answers before anything else is looked at. */
function anyRequest(method: DescMethodUnary) {
  return { ...namesInPath(method), ...Object.fromEntries(idFieldsOf(method).map((name) => [name, newId()])) }
}

async function rejectedOutcome(
  client: Client,
  method: DescMethodUnary,
  token?: string,
): Promise<Extract<CallOutcome, { ok: false }>> {
  const outcome = await client.send(method, anyRequest(method), { token })
  if (outcome.ok) throw new Error(`${method.name} was let in over ${client.wire}`)
  return outcome
}

const unauthenticated = (reason: string) => ({ code: 'UNAUTHENTICATED', reason, domain: 'patchbay' })
const statusOf = (client: Client, status: number) => (client.wire === 'grpc' ? undefined : status)

describe.each(clients)('a call without a token over $wire', (client) => {
  it.each(overWire(client, OPERATIONS))('is rejected: $name', async (method) => {
    const { error, headers } = await rejectedOutcome(client, method)
    expect(error).toMatchObject({ ...unauthenticated('TOKEN_MISSING'), httpStatus: statusOf(client, 401) })
    if (client.wire !== 'grpc') expect(headers.get('www-authenticate')).toBe('Bearer')
  })
})

describe.each(clients)('a call with a token that does not exist over $wire', (client) => {
  it.each(overWire(client, OPERATIONS))('is rejected: $name', async (method) => {
    const { error } = await rejectedOutcome(client, method, mintToken('environment').token)
    expect(error).toMatchObject({ ...unauthenticated('TOKEN_INVALID'), httpStatus: statusOf(client, 401) })
  })
})

describe.each(clients)('an environment token over $wire', (client) => {
  it.each(overWire(client, needsTeam))('may not administer the team: $name', async (method) => {
    const { error } = await rejectedOutcome(client, method, app.first.environmentToken)
    expect(error).toMatchObject({
      code: 'PERMISSION_DENIED',
      reason: 'TEAM_TOKEN_REQUIRED',
      httpStatus: statusOf(client, 403),
    })
  })
})

describe.each(clients)('a team token that names no environment over $wire', (client) => {
  it.each(overWire(client, needsEnvironment))('gets an error that asks for one: $name', async (method) => {
    const { error } = await rejectedOutcome(client, method, app.first.teamToken)
    expect(error).toMatchObject({
      code: 'INVALID_ARGUMENT',
      reason: 'ENVIRONMENT_REQUIRED',
      httpStatus: statusOf(client, 400),
    })
  })
})

describe('the two groups of operations', () => {
  it('and those of either token are all there are', () => {
    const rest = OPERATIONS.filter((method) => !needsTeam.includes(method) && !needsEnvironment.includes(method))
    expect(rest.map(({ name }) => name)).toEqual(OF_EITHER_TOKEN)
  })
})
