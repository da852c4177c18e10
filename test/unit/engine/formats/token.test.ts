import { afterAll, describe, expect, test } from 'vitest'
import {
  compileJson,
  createEvaluator,
  renderJson,
  type TemplateScope,
} from '../../../../src/engine/expressions/index.ts'
import { CREDENTIAL_FORMATS, compileCredential } from '../../../../src/engine/formats/credential/registry.ts'
import type { TokenContext, TokenSet } from '../../../../src/engine/formats/index.ts'
import type { RequestDefinition } from '../../../../src/engine/formats/request-keys.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import { NOW, TOKEN_ROWS, type TokenRow } from './rows/token.ts'

const evaluator = createEvaluator()
afterAll(() => evaluator[Symbol.asyncDispose]())

/** Formats whose tokens are not requested without the customer. */
const WITHOUT_TOKEN = ['api_key', 'oauth1']

async function outcomeOf(format: string, row: TokenRow) {
  const sent: Json[] = []
  const answers = [...row.answers]
  const tools: TokenContext<RequestDefinition> = {
    send: async (request, scope) => {
      sent.push(legible(renderJson(compileJson(request as unknown as JsonObject), scope) ?? null))
      const answer = answers.shift()
      if (answer === undefined) throw new Error('one request more than there are answers')
      return { status: 200, headers: {}, ...answer }
    },
    evaluate: (expression, input) => evaluator.evaluate(expression, input),
    now: () => NOW,
    nonce: () => 'nonce',
    randomSecret: () => 'random',
  }
  const previous = row.previous && tokenOf(row.previous)
  const oauth = previous === undefined ? {} : { oauth: { token: previous.fields } }
  const scope: TemplateScope = {
    account: { context: row.context ?? {}, credentials: { ...row.credentials, ...oauth }, environmentVariables: {} },
    call: {},
  }
  const rules = compileCredential({ format, config: row.config }).token?.((request) => request)
  const answer = await rules?.requestToken(tools, scope, previous)
  return { sent, left: answers.length, answer }
}

function tokenOf(fields: JsonObject): TokenSet {
  const { access_token, refresh_token } = fields
  return { accessToken: String(access_token), refreshToken: String(refresh_token), expiresAt: undefined, fields }
}

/** Signed tokens as their claims, so that rows can say what they expect. */
function legible(value: Json): Json {
  if (typeof value === 'string') return /^ey\w+\.ey/.test(value) ? JSON.parse(claimsOf(value)) : value
  if (Array.isArray(value)) return value.map(legible)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, legible(item)]))
}

function claimsOf(token: string): string {
  return Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()
}

describe.each(CREDENTIAL_FORMATS.map((entry) => entry.format))('tokens of %s', (format) => {
  const rows = TOKEN_ROWS[format] ?? []

  test('have rows, unless the fields are all there is', () => {
    expect(rows.length > 0).toBe(!WITHOUT_TOKEN.includes(format))
  })

  test.each(rows)('$promise', async (row) => {
    const { sent, left, answer } = await outcomeOf(format, row)
    expect(left, 'answers that nothing asked for').toBe(0)
    expect(sent).toHaveLength(row.sent.length)
    for (const [index, request] of row.sent.entries()) expectParts(sent[index], request)
    if (row.failure !== undefined) {
      const [kind, message] = row.failure
      expect(answer).toMatchObject({ kind, message: expect.stringContaining(message) })
      return
    }
    if (answer?.kind !== 'granted') throw new Error(`no token: ${JSON.stringify(answer)}`)
    const { accessToken, refreshToken, expiresAt, fields } = answer.token
    const isSigned = accessToken.startsWith('ey')
    expect({
      access: isSigned ? claimsOf(accessToken) : accessToken,
      ...(refreshToken === undefined ? {} : { refresh: refreshToken }),
      ...(expiresAt === undefined ? {} : { lifetime: (expiresAt.getTime() - NOW.getTime()) / 1_000 }),
      ...(row.token?.fields === undefined ? {} : { fields }),
    }).toEqual(row.token)
  })
})

/** Every part that a row names is exactly so; others may be anything. */
function expectParts(request: Json | undefined, parts: JsonObject): void {
  for (const [name, part] of Object.entries(parts)) expect(request, name).toHaveProperty(name, part)
}

test('rows exist for registered formats only', () => {
  const registered = CREDENTIAL_FORMATS.map((entry) => entry.format)
  expect(Object.keys(TOKEN_ROWS).filter((format) => !registered.includes(format))).toEqual([])
})
