import type { DescMethod } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { newId } from '../../src/foundation/base/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import type { Principal } from '../../src/platform/tenancy/index.ts'
import { startTestApp } from '../support/app.ts'
import { caseCount, runSeed } from '../support/case-count.ts'
import { testDatabase } from '../support/database.ts'
import { InterruptedCalls, type Rows } from '../support/interrupted-calls.ts'
import { KINDS, SERVICES } from '../support/operations.ts'
import { createApiTenant, seedTenant } from '../support/seeded-tenant.ts'
import { acceptableRequest, addHeldRun, addHistory, type TenancyFixture } from '../support/tenancy-matrix.ts'

const { target, database } = await testDatabase()
const app = await startTestApp({}, database)
const calls = new InterruptedCalls(target, app)

/** Made anew once a call has changed it. */
let world: World | undefined

interface World {
  readonly tenant: TenancyFixture
  readonly rows: Rows
}

async function makeWorld(): Promise<World> {
  const of = await createApiTenant(app)
  const made = await addHeldRun(app.client('connect', { token: of.environmentToken }), await seedTenant(app, of))
  const tenant = { ...made, ...(await addHistory(app.database, made)) }
  return { tenant, rows: await calls.rows() }
}

/** Logs of requests that were sent, whatever became of the call. They are written in the background, also for calls before. */
const REQUEST_LOG = 'call_log_entry'

function changedTables(before: Rows, after: Rows): readonly string[] {
  return Object.keys(after).filter((name) => name !== REQUEST_LOG && before[name] !== after[name])
}

/** A request that changes something where the method can. */
function requestOf(method: DescMethod, tenant: TenancyFixture): JsonObject {
  const has = (name: string) => method.input.fields.some((field) => field.name === name)
  const change = KINDS.find(({ update }) => update?.method === method)?.update?.change() ?? {}
  return {
    ...acceptableRequest(method, tenant),
    ...change,
    ...(has('force') ? { force: true } : {}),
    ...(has('request_id') ? { request_id: newId() } : {}),
  }
}

function callerOf({ name }: DescMethod, { apiTokenId: tokenId, environmentId, teamId }: TenancyFixture): Principal {
  const isOperator = name === 'CreateTeam'
  return {
    kind: 'team',
    tokenId,
    teamId: isOperator ? app.first.teamId : teamId,
    environmentId,
    isOperator,
    scopes: undefined,
  }
}

const METHODS = SERVICES.flatMap(({ methods }) => methods).filter(({ methodKind }) => methodKind !== 'bidi_streaming')

/** Some of them, others with each seed, or all. */
function sampleOf(methods: readonly DescMethod[]): readonly DescMethod[] {
  const count = caseCount(8, 33, methods.length)
  const step = Math.ceil(methods.length / count)
  return methods.filter((_, index) => (index + runSeed()) % step === 0)
}

describe('after DEADLINE_EXCEEDED', () => {
  it.each(sampleOf(METHODS).map((method) => [method.name, method] as const))(
    '%s changes nothing any more, wherever its deadline passed',
    async (_, method) => {
      for (let waits = 0; ; waits++) {
        world ??= await makeWorld()
        const { tenant, rows } = world
        const call = await calls.interrupt(method, requestOf(method, tenant), callerOf(method, tenant), waits)
        const changed = changedTables(rows, call.after)
        if (changed.length > 0) world = undefined
        if (call.at === undefined) break
        if (call.isError) expect({ at: call.at, changed }).toEqual({ at: call.at, changed: [] })
      }
    },
  )
})
