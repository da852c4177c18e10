import { describe, expect, it } from 'vitest'
import { createProxy } from '../../src/engine/proxy/index.ts'
import { execute, query } from '../../src/foundation/database/index.ts'
import type { JsonObject } from '../../src/foundation/json/index.ts'
import { AccountRemover } from '../../src/platform/accounts/account-remover.ts'
import { createAccountReader, createTokenProvider, deleteIntegratedAccount } from '../../src/platform/accounts/index.ts'
import { createAccountSubscriptions, recreateSubscriptions } from '../../src/platform/subscriptions/index.ts'
import { AccountSubscriber } from '../../src/platform/subscriptions/subscriber.ts'
import { caseCount, someCases } from '../support/case-count.ts'
import { fastClock } from '../support/fast-clock.ts'
import { interleavings, type Lane, type Operation } from '../support/interleavings.ts'
import { triggersOfTests } from '../unit/platform/accounts/fixture.ts'
import { subscriptionsFixture } from '../unit/platform/subscriptions/fixture.ts'

const { target, database, tx, own, deps, subscribeTo, connect, refOf } = await subscriptionsFixture()
const clock = fastClock()
const { expectAlways } = interleavings(target, clock)

const request = (method: string, path: string): JsonObject => ({ type: 'request', config: { method, path } })
const CREATE = {
  create: request('POST', '/hooks'),
  id: 'result.id',
  delete: request('DELETE', '/hooks/{{subscription.id}}'),
}
const EXPIRES = { expires: '$fromMillis($millis() + 3600000)' }
const RENEW = { renew: request('PUT', '/hooks/{{subscription.id}}') }

/** A third party with subscriptions, and what happened in which order. */
class HookThirdParty {
  readonly live = new Set<string>()
  readonly log: string[] = []
  /** Status of the answer to the next request of a method. */
  failure: { readonly method: string; readonly status: number } | undefined
  #created = 0

  http(step: Lane['step']) {
    return {
      send: async ({ method, url }: { readonly method: string; readonly url: string }) => {
        await step(`${method} arrives`)
        this.log.push(method)
        const { status, json } = this.#answer(method, url.split('/').at(-1) ?? '')
        await step('the answer arrives')
        return { status, headers: {}, body: Buffer.from(JSON.stringify(json)), url }
      },
      stream: () => Promise.reject(new Error('subscriptions are not streamed')),
    }
  }

  #answer(method: string, id: string): { readonly status: number; readonly json: JsonObject } {
    if (this.failure?.method === method) {
      const { status } = this.failure
      if (status === 404) this.live.delete(id)
      this.failure = undefined
      return { status, json: {} }
    }
    if (method === 'POST') return { status: 201, json: { id: this.#add() } }
    const isKnown = method === 'DELETE' ? this.live.delete(id) : this.live.has(id)
    return isKnown ? { status: 200, json: { id } } : { status: 404, json: {} }
  }

  #add(): string {
    this.#created++
    const id = `hook-${this.#created}`
    this.live.add(id)
    return id
  }
}

/** What an operation works on. */
interface State {
  readonly id: string
  readonly thirdParty: HookThirdParty
}

/** What a process of its own has. */
function processOf({ database, clock, step }: Lane, { thirdParty }: State) {
  const http = thirdParty.http(step)
  const proxy = createProxy({ http, evaluator: deps.evaluator, clock })
  const given = {
    ...deps,
    database,
    clock,
    http,
    proxy,
    proxyWithoutRefresh: proxy,
    reader: createAccountReader(database),
  }
  const subscriptions = createAccountSubscriptions({ definitions: deps.definitions, proxy })
  return { ...given, tokens: createTokenProvider(given), subscriptions, triggers: triggersOfTests }
}

const alone: Lane = { database, clock, step: async () => {} }
const work = (state: State, lane: Lane) =>
  new AccountSubscriber({ ...processOf(lane, state), random: () => 0 }).runOnce()

/** Installations by block: to compile a definition takes longer than a race. */
const installations = new Map<string, string>()

async function accountOf(block: JsonObject): Promise<{ readonly id: string }> {
  const key = JSON.stringify(block)
  const environmentIntegrationId = installations.get(key)
  if (environmentIntegrationId !== undefined)
    return await connect({ environmentIntegrationId, credentials: { api_key: 'key-canary' } })
  const account = await subscribeTo(block)
  installations.set(key, account.environmentIntegrationId)
  return account
}

/** An account of a definition with this block, whose present subscription, if there is one, is due. */
async function arrange(block: JsonObject, isCreated: boolean, failure?: HookThirdParty['failure']): Promise<State> {
  await execute(tx, 'delete from webhook_subscription')
  const { id } = await accountOf(block)
  const state = { id, thirdParty: new HookThirdParty() }
  if (isCreated) {
    await work(state, alone)
    await execute(tx, "update webhook_subscription set due_at = now() - interval '1 second'")
  }
  state.thirdParty.failure = failure
  return state
}

/** Works of a worker: a claim, requests of the third party, a store. */
const WORKS: Readonly<Record<string, () => Promise<State>>> = {
  'a creation': () => arrange(CREATE, false),
  'a renewal': () => arrange({ ...CREATE, ...EXPIRES, ...RENEW }, true),
  'a creation that fails': () => arrange(CREATE, false, { method: 'POST', status: 503 }),
  'a renewal that fails': () => arrange({ ...CREATE, ...EXPIRES, ...RENEW }, true, { method: 'PUT', status: 503 }),
  'a renewal of one that is gone': () =>
    arrange({ ...CREATE, ...EXPIRES, ...RENEW }, true, { method: 'PUT', status: 404 }),
  'a replacement': () => arrange({ ...CREATE, ...EXPIRES }, true),
  'a removal': async () => {
    const state = await arrange(CREATE, true)
    await execute(tx, "update webhook_subscription set event = 'no longer ordered'")
    return state
  },
}

/** What asks for work meanwhile, and the request that follows at the earliest. */
const ORDERS: Readonly<Record<string, { readonly requests: readonly string[]; order(state: State): Operation }>> = {
  'a call that recreates it': {
    requests: ['POST'],
    order: (state) => (lane) =>
      lane.database.transaction((each) => recreateSubscriptions(processOf(lane, state), each, refOf(state.id))),
  },
  'an activation': {
    requests: ['POST', 'PUT'],
    order: (state) => (lane) =>
      lane.database.transaction((each) => processOf(lane, state).subscriptions.schedule(each, refOf(state.id))),
  },
}

/** Does what is due now, without any time passing. */
async function drain(state: State): Promise<void> {
  for (let left = 20; left > 0; left--) if (!(await work(state, alone))) return
  throw new Error('there is always something due')
}

const storedIds = async () =>
  (
    await query<{ readonly id: string }>(
      tx,
      'select external_id as id from webhook_subscription where external_id is not null',
    )
  ).map(({ id }) => id)

const works = Object.entries(WORKS)
/** The second order and the deletion meet the same statements in most works. */
const fewWorks = works.slice(0, caseCount(2, works.length))
const meetings = Object.entries(ORDERS).flatMap(([order, asked], index) =>
  (index === 0 ? works : fewWorks).map(([name, given]) => ({ name, given, order, asked })),
)

describe('beside the work of a worker', () => {
  it.each(someCases(meetings, 5))(
    '$order is followed by a request, and one subscription is left: $name',
    async ({ given, asked }) => {
      await expectAlways<State>({
        arrange: given,
        operations: (state) => [
          (lane) => work(state, lane),
          async (lane) => {
            await asked.order(state)(lane)
            state.thirdParty.log.push('ordered')
          },
        ],
        async check(state) {
          await drain(state)
          const { log, live } = state.thirdParty
          expect(log.slice(log.indexOf('ordered'))).toSatisfy((later: readonly string[]) =>
            asked.requests.some((method) => later.includes(method)),
          )
          expect(await storedIds()).toEqual([...live])
        },
      })
    },
  )

  it.each(someCases(fewWorks, 1))('the deletion of the account leaves no subscription: %s', async (_, given) => {
    await expectAlways<State>({
      arrange: given,
      operations: (state) => [
        (lane) => work(state, lane),
        (lane) =>
          lane.database.transaction((each) =>
            deleteIntegratedAccount(processOf(lane, state), each, own, { id: state.id }),
          ),
      ],
      async check(state) {
        const remover = new AccountRemover({ ...processOf(alone, state), onFailure: () => {} })
        while (await remover.runOnce());
        expect([...state.thirdParty.live]).toEqual([])
      },
    })
  })
})
