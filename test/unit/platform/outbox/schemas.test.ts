import { readFileSync } from 'node:fs'
import specs from '@asyncapi/specs'
import { Ajv, type AnySchemaObject } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { describe, expect, it } from 'vitest'
import { EVENT_TYPES, type EventType, examplePayload } from '../../../../src/platform/outbox/index.ts'
import { EVENTS_SCHEMA, findPayloadProblem } from '../../../support/event-schemas.ts'

const ASYNC_API = JSON.parse(readFileSync(new URL('../../../../gen/asyncapi.json', import.meta.url), 'utf8'))
const types = EVENT_TYPES as readonly EventType[]

function bodyOf(type: string, payload: unknown) {
  const id = '01940f8a-0c00-7000-8000-000000000001'
  return { id, event: type, payload, environment_id: id, webhook_id: id, created_at: '2025-01-15T09:30:00.000Z' }
}

describe('the JSON Schema of events', () => {
  const ajv = new Ajv2020({ allErrors: true, allowUnionTypes: true })
  addFormats.default(ajv)
  const validate = ajv.compile(EVENTS_SCHEMA)

  it('has one definition for each name of the catalogue', () => {
    const definitions: readonly { properties?: { event?: { const?: string } } }[] = Object.values(EVENTS_SCHEMA.$defs)
    const described = definitions.flatMap((each) => each.properties?.event?.const ?? [])
    expect(described.toSorted()).toEqual(types.toSorted())
  })

  it.each(types)('describes the example of %s, and its body as that of no other type', (type) => {
    expect(findPayloadProblem({ type, payload: examplePayload(type) })).toBeUndefined()
    const isValid = validate(bodyOf(type, examplePayload(type)))
    expect(validate.errors).toBeNull()
    expect(isValid).toBe(true)
  })

  it('takes further fields in a payload, which later versions have, and finds what is missing or of another type', () => {
    const payload = examplePayload('api_token:created')
    expect(validate(bodyOf('api_token:created', { ...payload, new_field: 1 }))).toBe(true)
    expect(validate(bodyOf('api_token:created', { ...payload, name: 1 }))).toBe(false)
    expect(validate(bodyOf('api_token:created', {}))).toBe(false)
    expect(validate(bodyOf('api_token:renamed', payload))).toBe(false)
  })

  it('finds a field that it does not describe in what tests record', () => {
    const payload = { ...examplePayload('api_token:created'), token: 'x' }
    expect(findPayloadProblem({ type: 'api_token:created', payload })).toBe(
      'payload must NOT have additional properties',
    )
  })
})

describe('the AsyncAPI document', () => {
  it('is one of AsyncAPI 3.0 by the published schema', () => {
    const ajv = new Ajv({ meta: false, validateSchema: false, strict: false, validateFormats: false })
    const validate = ajv.compile(specs.schemas['3.0.0'] as AnySchemaObject)
    validate(ASYNC_API)
    expect(validate.errors).toBeNull()
    expect(validate({ ...ASYNC_API, operations: { deliver: { action: 'send' } } })).toBe(false)
  })

  it('has a message with a valid example for each name of the catalogue, and refers to nothing that is not there', () => {
    const messages: readonly { name: string; examples: readonly { payload: { event: string; payload: unknown } }[] }[] =
      Object.values(ASYNC_API.components.messages)
    expect(messages.map(({ name }) => name).toSorted()).toEqual(types.toSorted())
    for (const { name, examples } of messages)
      for (const { payload } of examples) {
        expect(payload.event).toBe(name)
        expect(findPayloadProblem({ type: name, payload: payload.payload })).toBeUndefined()
      }
    const refs = [...JSON.stringify(ASYNC_API).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, path = '']) =>
      path.split('/'),
    )
    expect(refs.filter((path) => path.reduce((at, key) => at?.[key], ASYNC_API) === undefined)).toEqual([])
  })
})
