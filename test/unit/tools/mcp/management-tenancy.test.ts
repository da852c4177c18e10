import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { startTestApp } from '../../../support/app.ts'
import { someCases } from '../../../support/case-count.ts'
import { createApiEnvironment, createApiTenant, seedTenant, type Tenant } from '../../../support/seeded-tenant.ts'
import {
  addHeldRun,
  addHistory,
  compareForeign,
  idLocations,
  isOfEnvironment,
  type SendAs,
  type TenancyFixture,
} from '../../../support/tenancy-matrix.ts'

const app = await startTestApp()
const tenant = await createApiTenant(app)
const own = await worldOf(tenant)
/** Another environment of the same team. */
const sibling = await worldOf({ ...tenant, ...(await createApiEnvironment(app, tenant.teamToken)) })
/** Another team. */
const foreign = await worldOf(await createApiTenant(app))

async function worldOf(of: Tenant): Promise<TenancyFixture> {
  const made = await addHeldRun(app.client('connect', { token: of.environmentToken }), await seedTenant(app, of))
  return { ...made, ...(await addHistory(app.database, made)) }
}

type Headers = Readonly<Record<string, string>>
const environmentHeaders: Headers = { authorization: `Bearer ${own.environmentToken}` }
const teamHeaders: Headers = { authorization: `Bearer ${own.teamToken}`, 'patchbay-environment': own.environmentId }

async function send(headers: Headers, method: string, params: JsonObject): Promise<JsonObject> {
  const answer = await fetch(`${app.url}/mcp/management?read_only=false`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  const text = await answer.text()
  const data = text.split('\n').find((line) => line.startsWith('data: {'))
  return JSON.parse(data === undefined ? text : data.slice('data: '.length)).result
}

function toolName(rpc: string): string {
  return rpc.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase()
}

function sendAs(headers: Headers): SendAs {
  return async (method, request) => {
    const { structuredContent, isError } = await send(headers, 'tools/call', {
      name: toolName(method.name),
      arguments: request,
    })
    return JSON.stringify(isError ? structuredContent : { ok: true, json: structuredContent })
  }
}

async function namesFor(headers: Headers): Promise<ReadonlySet<string>> {
  const names = new Set<string>()
  let cursor: JsonObject = {}
  for (;;) {
    const page = await send(headers, 'tools/list', cursor)
    for (const { name } of page.tools as readonly { readonly name: string }[]) names.add(name)
    if (page.nextCursor === undefined) return names
    cursor = { cursor: page.nextCursor }
  }
}

const [environmentNames, teamNames] = [await namesFor(environmentHeaders), await namesFor(teamHeaders)]
const ofEnvironment = idLocations().filter(
  (place) => isOfEnvironment(place) && environmentNames.has(toolName(place.method.name)),
)
const ofTeam = idLocations().filter(({ method }) => teamNames.has(toolName(method.name)))

describe('an id of another tenant in the arguments of a tool', () => {
  it('is looked for in most places of the contract', () => {
    expect(ofEnvironment.length).toBeGreaterThan(60)
    expect(ofTeam.length).toBeGreaterThan(ofEnvironment.length)
  })

  it.each(someCases(ofEnvironment, 20))('of the same team is answered like an unknown one: $name', async (place) => {
    expect(await compareForeign(sendAs(environmentHeaders), place, own, sibling)).toBeUndefined()
  })

  it.each(someCases(ofTeam, 20))('of another team is answered like an unknown one: $name', async (place) => {
    expect(await compareForeign(sendAs(teamHeaders), place, own, foreign)).toBeUndefined()
  })
})

it('no list shows anything of another tenant', async () => {
  const others = [sibling, foreign].flatMap((world) => [world.integratedAccountId, world.syncJobId, world.webhookId])
  for (const name of [...environmentNames].filter((each) => each.startsWith('list_'))) {
    const { structuredContent } = await send(environmentHeaders, 'tools/call', { name, arguments: {} })
    for (const id of others) expect(JSON.stringify(structuredContent)).not.toContain(id)
  }
})
