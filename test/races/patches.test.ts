import type { DescMethodUnary } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { startTestApp } from '../support/app.ts'
import { caseCount, runSeed } from '../support/case-count.ts'
import { testDatabase } from '../support/database.ts'
import { fastClock } from '../support/fast-clock.ts'
import { interleavings, type Operation } from '../support/interleavings.ts'
import { laneCalls } from '../support/lane-calls.ts'
import { KINDS, type ResourceKind, tokenFor } from '../support/operations.ts'
import { createApiTenant, seedTenant } from '../support/seeded-tenant.ts'

const { target, database } = await testDatabase()
const app = await startTestApp({}, database)
const clock = fastClock()
const { expectAlways } = interleavings(target, clock)
const call = laneCalls(app, clock)
const tenant = await seedTenant(app, await createApiTenant(app))
const admin = app.client('connect', { token: tenant.teamToken })

/** Changes of one field, or of one key of a document, for each kind; any two of a kind touch different ones. */
const PATCHES: Readonly<Record<string, readonly JsonObject[]>> = {
  team: [
    { name: 'patched' },
    { domain: 'patched.example' },
    { logo: 'https://app.example.com/logo.png' },
    { is_white_label: true },
    { tos_link: 'https://app.example.com/terms' },
    { allow_impersonation: true },
  ],
  environment: [
    { name: 'patched' },
    { branding: { display_name: 'Patched' } },
    { branding: { accent_color: '#112233' } },
    { branding: { logo_url: 'https://app.example.com/logo.png' } },
  ],
  api_token: [{ name: 'patched' }, { expires_at: '2030-01-01T00:00:00.000Z' }],
  integration: [{ category: 'patched' }, { is_beta: true }, { sharing: 'allow' }],
  environment_integration: [
    { show_in_catalog: true },
    { is_enabled: false },
    { override: { label: 'Patched' } },
    { override: { headers: { 'x-patched': 'yes' } } },
  ],
  integrated_account: [{ tenant_id: 'patched' }, { context: { one: 1 } }, { context: { two: 2 } }],
  sync_job: [{ label: 'patched' }, { error_handling: 'batch' }, { args_schema: { type: 'object' } }],
  sync_job_cron_trigger: [{ cron_expression: '0 0 2 1 *' }, { error_handling: 'batch' }, { args: { since: 1 } }],
  webhook: [
    { target_url: 'https://app.example.com/patched' },
    { event_types: ['record:*'] },
    { is_active: false },
    { description: 'patched' },
  ],
  tool_server: [{ name: 'patched' }, { instructions: 'Patched.' }, { is_enabled: false }],
  unified_mapping: [{ config: { custom_fields: { mode: 'none' } } }, { config: { method: 'list' } }],
}

/** Calls a method as a team token does that names the environment. */
function calling(method: DescMethodUnary, request: JsonObject): Operation {
  const { apiTokenId: tokenId, teamId, environmentId } = tenant
  const isOperator = method.name === 'UpdateTeam'
  return call(method, request, { kind: 'team', tokenId, teamId, environmentId, isOperator, scopes: undefined })
}

async function make(kind: ResourceKind): Promise<string> {
  const token = kind.noun === 'team' ? app.first.teamToken : tokenFor(kind, tenant)
  return (await app.client('connect', { token }).ok(kind.create, await kind.createRequest(tenant, admin))).id
}

function pairsOf(patches: readonly JsonObject[]): readonly (readonly [JsonObject, JsonObject])[] {
  const pairs = patches.flatMap((one, index) => patches.slice(index + 1).map((other) => [one, other] as const))
  const start = runSeed() % pairs.length
  return [...pairs.slice(start), ...pairs.slice(0, start)].slice(0, caseCount(1, 3, pairs.length))
}

/** Names are unique in their team. */
function withOwnName(patch: JsonObject, id: string): JsonObject {
  return 'name' in patch ? { ...patch, name: `patched-${id}` } : patch
}

describe.each(KINDS.filter(({ update }) => update !== undefined))('$noun', (kind) => {
  const { noun, get, update } = kind

  it('is changed by two PATCHes of different fields as if one came after the other', async () => {
    if (update === undefined) throw new Error('it is not updated')
    for (const [one, other] of pairsOf(PATCHES[noun] ?? [])) {
      await expectAlways({
        arrange: () => make(kind),
        operations: (id) => [
          calling(update.method, { id, ...withOwnName(one, id) }),
          calling(update.method, { id, ...withOwnName(other, id) }),
        ],
        async check(id, results) {
          expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled'])
          const token = noun === 'team' ? app.first.teamToken : tokenFor(kind, tenant)
          const stored = await app.client('connect', { token }).ok(get, { id })
          expect(stored).toMatchObject(withOwnName(one, id))
          expect(stored).toMatchObject(withOwnName(other, id))
        },
      })
    }
  })
})
