import { readFileSync } from 'node:fs'
import { Ajv2020, type AnySchemaObject, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import pg from 'pg'
import { expect } from 'vitest'

/** The JSON Schema that receivers get from `/schemas/events.json`. */
export const EVENTS_SCHEMA: AnySchemaObject = JSON.parse(
  readFileSync(new URL('../../gen/events.json', import.meta.url), 'utf8'),
)

/** An event as the outbox has it. */
export interface StoredEvent {
  readonly type: string
  readonly payload: unknown
}

const validators = new Map<string, ValidateFunction>()
let ajv: Ajv2020 | undefined

/** What is wrong with a payload under the schema of its type, which has no other fields than described; undefined: nothing. */
export function findPayloadProblem({ type, payload }: StoredEvent): string | undefined {
  const validate = payloadValidator(type)
  if (validate === undefined) return 'the type has no schema'
  return validate(payload) ? undefined : ajv?.errorsText(validate.errors, { dataVar: 'payload' })
}

/** What is wrong with the body of a delivery, in this product's envelope or as a CloudEvent; undefined: nothing. */
export function findBodyProblem(body: string): string | undefined {
  const { event, type = event, payload, data = payload }: Record<string, unknown> = JSON.parse(body)
  return findPayloadProblem({ type: String(type), payload: data })
}

/** Fails when an event of the database has a payload that its schema does not describe. */
export async function expectDescribedEvents(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<StoredEvent>('select type, payload from event where expunged_at is null')
    const problems = rows.flatMap((event) => {
      const problem = findPayloadProblem(event)
      return problem === undefined ? [] : [`${event.type}: ${problem}`]
    })
    expect([...new Set(problems)], 'events that /schemas/events.json does not describe').toEqual([])
  } finally {
    await client.end()
  }
}

function payloadValidator(type: string): ValidateFunction | undefined {
  const known = validators.get(type)
  if (known !== undefined) return known
  ajv ??= createAjv()
  const name = Object.keys(EVENTS_SCHEMA.$defs).find(
    (key) => EVENTS_SCHEMA.$defs[key].properties?.event?.const === type,
  )
  const validate =
    name === undefined ? undefined : ajv.getSchema(`${EVENTS_SCHEMA.$id}#/$defs/${name}/properties/payload`)
  if (validate !== undefined) validators.set(type, validate)
  return validate
}

/** Compiles what it is asked for: of all events together it would take a quarter of a second for each test file. */
function createAjv(): Ajv2020 {
  const created = new Ajv2020({ allErrors: true, allowUnionTypes: true })
  addFormats.default(created)
  created.addSchema(closed(EVENTS_SCHEMA) as AnySchemaObject)
  return created
}

/** The schema, with objects that have no other properties than described, unless they are free-form. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed)
  if (typeof schema !== 'object' || schema === null) return schema
  const copy = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]))
  return 'properties' in schema && 'type' in schema ? { additionalProperties: false, ...copy } : copy
}
