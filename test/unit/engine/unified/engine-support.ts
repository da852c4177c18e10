import { compilePlan, type Plan } from '../../../../src/engine/definitions/index.ts'
import type { Evaluator } from '../../../../src/engine/expressions/index.ts'
import { type AccountAccess, createProxy } from '../../../../src/engine/proxy/index.ts'
import {
  compileMapping,
  type MappingPart,
  type MappingPlan,
  mergeMappings,
  parseModel,
  type References,
  type UnifiedModel,
  type UnifiedResource,
} from '../../../../src/engine/unified/index.ts'
import { createSealer } from '../../../../src/foundation/base/index.ts'
import type { EgressRequest, EgressResponse } from '../../../../src/foundation/egress/index.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'

/** One for all proxies, as for all processes of a service. */
const SEALER = createSealer()

/** The clock of all calls. */
export const CLOCK = { now: () => new Date('2026-01-01T00:00:00Z'), monotonicMs: () => 0, sleep: async () => {} }

/** `$called_at` by that clock. */
export const CALLED_AT = '2026-01-01T00:00:00.000Z'

/** A model with every kind of field. */
export const SHOP_MODEL: JsonObject = {
  name: 'shop',
  label: 'Shop',
  description: 'For tests.',
  $defs: {
    reference: { type: 'object', properties: { id: { type: 'string' }, name: { type: 'string' } }, required: ['id'] },
    email: {
      type: 'object',
      properties: { address: { type: 'string', format: 'email' }, type: { type: 'string', enum: ['work', 'home'] } },
      required: ['address'],
    },
  },
  resources: {
    customers: {
      methods: ['list', 'get', 'create', 'update', 'delete', 'merge'],
      schema: {
        type: 'object',
        properties: {
          name: { type: 'string', minLength: 1, maxLength: 40 },
          age: { type: 'integer' },
          score: { type: 'number' },
          is_active: { type: 'boolean' },
          status: { type: 'string', enum: ['open', 'closed'] },
          born_on: { type: 'string', format: 'date' },
          seen_at: { type: 'string', format: 'date-time', readOnly: true },
          balance: { type: 'string', format: 'decimal' },
          country: { type: 'string', format: 'country' },
          website: { type: 'string', format: 'uri' },
          tags: { type: 'array', items: { type: 'string' } },
          levels: { type: 'array', items: { type: 'string', enum: ['gold', 'silver'] } },
          emails: { type: 'array', items: { $ref: '#/$defs/email' } },
          owner: { $ref: '#/$defs/reference', 'x-reference': 'directory/users' },
          friends: { type: 'array', items: { $ref: '#/$defs/reference', 'x-reference': 'shop/customers' } },
          address: { type: 'object', properties: { city: { type: 'string' }, street: { type: 'string' } } },
          passport: { type: 'string', 'x-sensitive': true },
        },
        required: ['name'],
      },
    },
  },
}

const shop: UnifiedModel = parseModel(SHOP_MODEL)

export function customers(): UnifiedResource {
  const resource = shop.resources.get('customers')
  if (resource === undefined) throw new Error('the model has no customers')
  return resource
}

/** The plan of a method from one config, or from layers. */
export function planOf(
  config: JsonObject | readonly MappingPart[],
  method = 'list',
  references?: References,
): MappingPlan {
  const parts: readonly MappingPart[] = Array.isArray(config)
    ? (config as readonly MappingPart[])
    : [{ layer: 'shipped', config: { resource: 'people', method, ...(config as JsonObject) } }]
  return compileMapping(mergeMappings(parts), customers(), method, references)
}

/** A definition whose methods answer at `https://api.test`. */
export const SHOP_PLAN: Plan = compilePlan({
  base_url: 'https://api.test',
  authorization: { format: 'none' },
  pagination: { format: 'cursor', config: { cursor_key: 'cursor', cursor_path: 'next', limit_key: 'limit', limit: 2 } },
  resources: {
    people: {
      list: { method: 'get', path: '/people', response_path: 'items' },
      get: { method: 'get', path: '/people/{{id}}' },
      create: { method: 'post', path: '/people', body_format: 'json' },
      update: { method: 'patch', path: '/people/{{id}}', body_format: 'json' },
      delete: { method: 'delete', path: '/people/{{id}}' },
      merge: { method: 'post', path: '/people/{{id}}/merge', body_format: 'json' },
    },
    users: {
      list: { method: 'get', path: '/users', response_path: 'items' },
      get: { method: 'get', path: '/users/{{id}}' },
    },
  },
})

export const ACCOUNT: AccountAccess = {
  id: 'account-1',
  isSandbox: false,
  credentials: {},
  context: { region: 'eu' },
  environmentVariables: {},
}

/** A request as the scripted upstream saw it. */
export interface SeenRequest {
  readonly method: string
  /** Path with the query. */
  readonly path: string
  readonly body: Json | undefined
}

/** The answer of the scripted upstream. */
export interface ScriptedAnswer {
  readonly status?: number
  readonly body: Json
}

/** The proxy over an upstream that answers in order, or by a function; every request is recorded. */
export function scriptedProxy(
  evaluator: Evaluator,
  answers: readonly ScriptedAnswer[] | ((request: SeenRequest) => ScriptedAnswer),
) {
  const seen: SeenRequest[] = []
  const next = (request: SeenRequest): ScriptedAnswer => {
    if (typeof answers === 'function') return answers(request)
    const answer = answers[seen.length - 1]
    if (answer === undefined) throw new Error(`unexpected request ${request.method} ${request.path}`)
    return answer
  }
  const proxy = createProxy({
    http: {
      send: async (request: EgressRequest) => {
        const url = new URL(request.url)
        const body = request.body === undefined ? undefined : (JSON.parse(String(request.body)) as Json)
        const shown: SeenRequest = { method: request.method, path: url.pathname + decodeURIComponent(url.search), body }
        seen.push(shown)
        return responseOf(next(shown))
      },
      stream: () => Promise.reject(new Error('unified calls do not stream')),
    },
    evaluator,
    clock: CLOCK,
    random: () => 0.5,
    sealer: SEALER,
  })
  return { proxy, seen }
}

function responseOf({ status = 200, body }: ScriptedAnswer): EgressResponse {
  return {
    status,
    headers: { 'content-type': 'application/json' },
    body: Buffer.from(JSON.stringify(body)),
    url: 'https://api.test',
  }
}
