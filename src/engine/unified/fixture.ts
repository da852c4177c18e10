import { z } from 'zod'
import { Failure, invalidFields } from '../../foundation/base/index.ts'
import type { EgressRequest, EgressResponse } from '../../foundation/egress/index.ts'
import { canonicalJson, isJsonObject, type Json, type JsonObject, parseJson } from '../../foundation/json/index.ts'
import { findSchemaViolations } from '../definitions/findings.ts'
import { anyJson, mapOf } from '../formats/schema-types.ts'

/** Most exchanges of a fixture. */
const EXCHANGES_MAX = 50

/** A schema of a JSON object with any keys. */
const object = z.custom<JsonObject>((value) => isJsonObject(value), { error: 'must be an object' })

const exchangeSchema = z.strictObject({
  request: z
    .strictObject({
      method: z.string(),
      path: z.string(),
      query: object.optional(),
      body: anyJson().optional(),
    })
    .optional()
    .describe('What is sent; a difference is reported.'),
  response: z.strictObject({
    status: z.int().min(100).max(599).optional().describe('Default 200.'),
    headers: mapOf(z.string(), z.string()).optional(),
    body: anyJson().optional().describe('JSON, or a text.'),
  }),
})

const fixtureSchema = z.strictObject({
  method: z.string().describe('The unified method.'),
  id: z.string().optional(),
  query: object.optional().describe('Passed on as it is.'),
  filters: object.optional().describe('By unified field a value, or values by operator.'),
  sort_by: z.string().optional().describe('A field, with - before it for descending.'),
  limit: z.int().min(1).max(1_000).optional(),
  cursor: z.string().optional(),
  expand: z.array(z.string()).max(50).optional(),
  body: anyJson().optional().describe('The unified body of a write.'),
  remote_fields: object.optional(),
  context: object.optional().describe('Context of the account.'),
  called_at: z.iso
    .datetime({ offset: true, error: 'must be a time such as 2026-01-31T09:00:00Z' })
    .optional()
    .describe('When the call begins, which a mapping reads as $called_at. Default: the present time.'),
  docs: z
    .union([z.string(), z.array(z.string())])
    .optional()
    .describe('Where the provider documents its answers.'),
  exchanges: z.array(exchangeSchema).min(1).max(EXCHANGES_MAX).describe('What is sent and answered, in this order.'),
  not_echoed: object.optional(),
})

/** A call without what is answered. */
const callSchema = fixtureSchema.omit({
  method: true,
  exchanges: true,
  context: true,
  called_at: true,
  docs: true,
  not_echoed: true,
})

/** One unified call, and what the provider is sent and answers. */
export type MappingFixture = z.output<typeof fixtureSchema>

/** One unified call. */
export type TriedCall = z.output<typeof callSchema>

type FixtureExchange = MappingFixture['exchanges'][number]

/** @param prefix of the fields: `fixture` @throws Failure INVALID_FIELD with every problem */
export function parseFixture(fixture: Json, prefix: string): MappingFixture {
  const violations = findSchemaViolations(fixtureSchema, fixture, prefix)
  if (violations.length > 0) throw invalidFields(violations)
  return fixture as unknown as MappingFixture
}

/** @param prefix of the fields: `call` @throws Failure INVALID_FIELD with every problem */
export function parseTriedCall(call: Json, prefix: string): TriedCall {
  const violations = findSchemaViolations(callSchema, call, prefix)
  if (violations.length > 0) throw invalidFields(violations)
  return call as unknown as TriedCall
}

/** A request that was sent, and its answer. */
export interface TriedExchange {
  readonly request: {
    readonly method: string
    readonly url: string
    readonly headers: Readonly<Record<string, string>>
    readonly body: Json | undefined
  }
  /** Absent: it was not sent. */
  readonly response: { readonly status: number; readonly body: Json | undefined } | undefined
  /** Where the request is not as the fixture says, in words. */
  readonly differences: readonly string[]
}

/** Answers requests from a fixture, in its order. */
export interface FixtureHttp {
  send(request: EgressRequest): Promise<EgressResponse>
  readonly exchanges: readonly TriedExchange[]
}

/** An HTTP client that sends nothing. A request beyond the last exchange fails with INVALID_FIELD. */
export function createFixtureHttp({ exchanges }: Pick<MappingFixture, 'exchanges'>): FixtureHttp {
  const tried: TriedExchange[] = []
  return {
    exchanges: tried,
    async send(request) {
      const exchange = exchanges[tried.length]
      const sent = { method: request.method, url: request.url, headers: request.headers, body: bodyOf(request) }
      if (exchange === undefined)
        throw new Failure(
          'INVALID_FIELD',
          `the fixture has ${exchanges.length} exchanges, and one more request is sent: ${sent.method} ${sent.url}`,
        )
      const { status = 200, body } = exchange.response
      tried.push({ request: sent, response: { status, body }, differences: differencesOf(exchange, sent) })
      return { status, headers: headersOf(exchange), body: Buffer.from(textOf(body)), url: request.url }
    },
  }
}

function headersOf({ response: { headers = {}, body } }: FixtureExchange): Record<string, string> {
  const type = body === undefined || typeof body === 'string' ? {} : { 'content-type': 'application/json' }
  return {
    ...type,
    ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
  }
}

function textOf(body: Json | undefined): string {
  if (body === undefined) return ''
  return typeof body === 'string' ? body : JSON.stringify(body)
}

/** The body of a request: JSON where it says so, else its text. */
function bodyOf({ headers, body }: EgressRequest): Json | undefined {
  if (body === undefined) return undefined
  const text = typeof body === 'string' ? body : Buffer.from(body).toString()
  return /\bjson\b/.test(headers['content-type'] ?? '') ? parseJson(text) : text
}

/** Compares the parts that the fixture names: `query` and `body` as a whole. */
function differencesOf({ request: wanted }: FixtureExchange, sent: TriedExchange['request']): readonly string[] {
  if (wanted === undefined) return []
  const { pathname, searchParams } = new URL(sent.url)
  const parts: readonly (readonly [string, Json | undefined, Json | undefined])[] = [
    ['method', wanted.method, sent.method],
    ['path', wanted.path, decodeURI(pathname)],
    ['query', wanted.query, queryOf(searchParams)],
    ['body', wanted.body, sent.body],
  ]
  return parts
    .filter(([, value, is]) => value !== undefined && canonicalJson(value) !== canonicalJson(is ?? null))
    .map(([name, value, is]) => `${name}: the fixture has ${JSON.stringify(value)}, sent is ${JSON.stringify(is)}`)
}

/** Several parameters of one name are a list. */
function queryOf(parameters: URLSearchParams): JsonObject {
  const names = [...new Set(parameters.keys())]
  return Object.fromEntries(
    names.map((name) => {
      const values = parameters.getAll(name)
      return [name, values.length === 1 ? (values[0] ?? '') : values]
    }),
  )
}
