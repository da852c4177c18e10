import { afterAll, describe, expect, it } from 'vitest'
import { listMappedIntegrations, SHIPPED_MODEL_NAMES } from '../../../../src/engine/catalog/index.ts'
import { type AccountAccess, createProxy } from '../../../../src/engine/proxy/index.ts'
import { callUnified, type UnifiedRequest, type UnifiedResource } from '../../../../src/engine/unified/index.ts'
import { bodySchema } from '../../../../src/engine/unified/model.ts'
import { Failure } from '../../../../src/foundation/base/index.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import { CLOCK } from './engine-support.ts'
import { readFixtures } from './fixture-file.ts'
import { accountOf, createInlineEvaluator, definitionPlan, mappedMethods, mappingPlan, resourceOf } from './harness.ts'

const evaluator = createInlineEvaluator()
afterAll(() => evaluator[Symbol.asyncDispose]())

interface Clearing {
  readonly field: string
  readonly value: Json
}

/** Each way to empty each writable field. */
function clearingsOf({ schema }: UnifiedResource): readonly Clearing[] {
  return Object.entries(schema.properties)
    .filter(([, { readOnly }]) => readOnly !== true)
    .flatMap(([field, { type, format, enum: values, minLength }]) => {
      const isText = type === 'string' && format === undefined && values === undefined && minLength === undefined
      const emptied: Json[] = [null, ...(type === 'array' ? [[]] : []), ...(type === 'object' ? [{}] : [])]
      return [...emptied, ...(isText ? [''] : [])].map((value) => ({ field, value }))
    })
}

type Place = readonly [model: string, integration: string, resource: string]

/** The shipped resources that have a method. */
function mappedTo(method: string): readonly Place[] {
  return SHIPPED_MODEL_NAMES.flatMap((model) =>
    listMappedIntegrations(model).flatMap((integration) =>
      [...mappedMethods(model, integration)]
        .filter(([, methods]) => methods.includes(method))
        .map(([resource]): Place => [model, integration, resource]),
    ),
  )
}

/** Kinds of records, where the ids of a resource name them. */
const KINDS: Readonly<Record<string, readonly string[]>> = {
  'crm/hubspot/engagements': ['call', 'email', 'meeting'],
  'accounting/netsuite/contacts': ['customer', 'vendor'],
  'accounting/netsuite/invoices': ['invoice', 'bill'],
  'accounting/netsuite/payments': ['payment', 'vendor_payment'],
  'accounting/quickbooks/contacts': ['customer', 'vendor'],
  'accounting/quickbooks/invoices': ['invoice', 'bill'],
  'accounting/quickbooks/payments': ['payment', 'bill_payment'],
}

function idsOf(place: string, parts: number): readonly string[] {
  const plain = Array.from({ length: parts }, (_, index) => `${index + 1}`).join(':')
  return KINDS[place]?.map((kind) => `${kind}:1`) ?? [plain]
}

/** A record as the mappings read it that change a whole record. */
const ANSWER = '{"Employee": {"Id": "1"}}'

const accounts = new Map<string, AccountAccess>()

function accountFor(integration: string, context: JsonObject = {}): AccountAccess {
  const account = accounts.get(integration) ?? accountOf(integration)
  accounts.set(integration, account)
  return { ...account, context: { ...account.context, ...context } }
}

/** What a write sends, reads left out, or the fields that its error names. */
async function write(place: Place, method: 'create' | 'update', request: UnifiedRequest, context?: JsonObject) {
  const [model, integration, resource] = place
  const sent: Json[] = []
  const proxy = createProxy({
    http: {
      send: async ({ method: verb, url, body }) => {
        const parsed = body === undefined ? null : bodyOf(body.toString())
        if (verb !== 'GET' && !isQuery(parsed)) sent.push(parsed)
        return { status: 200, headers: { 'content-type': 'application/json' }, body: Buffer.from(ANSWER), url }
      },
      stream: () => Promise.reject(new Error('unified calls do not stream')),
    },
    evaluator,
    clock: CLOCK,
    random: () => 0.5,
    nonce: () => 'n0nce',
  })
  const mapping = mappingPlan(model, integration, resource, method)
  const target = { plan: definitionPlan(integration), access: accountFor(integration, context), mapping }
  try {
    await callUnified({ proxy, evaluator, clock: CLOCK }, target, request)
  } catch (error) {
    if (!(error instanceof Failure) || error.reason === 'EXPRESSION_FAILED') throw error
    if (error.reason === 'INVALID_FIELD') return { sent: [], named: error.violations.map(({ field }) => field) }
  }
  return { sent, named: [] }
}

function bodyOf(text: string): Json {
  return text.startsWith('{') || text.startsWith('[') ? (JSON.parse(text) as Json) : text
}

/** A read by POST: a query of GraphQL, or the read of a record. */
function isQuery(body: Json): boolean {
  const query = (body as JsonObject | null)?.query
  return typeof query === 'string' && !query.startsWith('mutation')
}

/** Whether a body says that something is empty: `null`, `""`, `[]`, or what a provider has for it, as `" "` and `0`. */
function clears(value: Json): boolean {
  if (value === null || value === '' || value === '0' || value === 0 || value === ' ') return true
  if (Array.isArray(value) && value.length === 0) return true
  return typeof value === 'object' && Object.values(value).some(clears)
}

describe.each(mappedTo('update'))('an update of %s of %s: %s', (...place) => {
  const [model, integration, resource] = place
  const ids = idsOf(place.join('/'), mappingPlan(model, integration, resource, 'update').request.idParts.get('id') ?? 1)
  const cells = ids.flatMap((id) => clearingsOf(resourceOf(model, resource)).map((clearing) => ({ id, ...clearing })))

  it('clears a field or names it in its error', async () => {
    const lost: Json[] = []
    for (const { id, field, value } of cells) {
      const { sent, named } = await write(place, 'update', { id, body: { [field]: value } })
      const isNamed = named.some((name) => name === `body.${field}` || name.startsWith(`body.${field}.`))
      if (!isNamed && !sent.some(clears)) lost.push([id, field, value, sent])
    }
    expect(lost).toEqual([])
  })
})

describe.each(mappedTo('create'))('a create in %s of %s: %s', (...place) => {
  const [model, integration, resource] = place
  const { body, context } = readFixtures(model, integration)[resource]?.create ?? {}
  const given = body as JsonObject
  const { required = [] } = bodySchema(resourceOf(model, resource), 'create') as {
    readonly required?: readonly string[]
  }
  const others = clearingsOf(resourceOf(model, resource)).filter(({ field, value }) => {
    const isReference = JSON.stringify(value) === '{}' && field !== 'home_address' && field !== 'address'
    return !required.includes(field) && !(field in given) && !(isReference && field !== 'custom_fields')
  })

  it.each(others)('takes $field with $value', async ({ field, value }) => {
    expect((await write(place, 'create', { body: { ...given, [field]: value } }, context)).named).toEqual([])
  })
})
