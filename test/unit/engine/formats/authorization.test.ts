import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { TemplateScope } from '../../../../src/engine/expressions/index.ts'
import type { AuthorizationContext } from '../../../../src/engine/formats/authorization/authorization.ts'
import { AUTHORIZATION_FORMATS, compileAuthorization } from '../../../../src/engine/formats/authorization/registry.ts'
import { Failure } from '../../../../src/foundation/base/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { AUTHORIZATION_ROWS, type AuthorizationRow } from './rows/authorization.ts'

const scopeOf = (context: JsonObject = {}, credentials: JsonObject = {}): TemplateScope => ({
  account: { context, credentials, environmentVariables: {} },
  call: {},
})

async function outcomeOf(format: string, row: AuthorizationRow) {
  const asked: string[] = []
  const tools: AuthorizationContext = {
    evaluate: async (expression) => {
      asked.push(expression)
      return row.evaluated
    },
    now: () => new Date(row.now ?? '2026-01-01T00:00:00Z'),
    nonce: () => row.nonce ?? 'nonce',
    ...(row.challenge === undefined ? {} : { challenge: { header: row.challenge, count: 1 } }),
  }
  const { method = 'GET', url = 'https://api.example.com/x', headers = {}, body } = row.request ?? {}
  try {
    const authorise = compileAuthorization({ format, config: row.config })
    const effect = await authorise({ method, url, headers, body }, scopeOf(row.context, row.credentials), tools)
    return { ...effect, asked }
  } catch (error) {
    if (error instanceof Failure) return { failure: error.message }
    throw error
  }
}

describe.each(AUTHORIZATION_FORMATS.map((entry) => entry.format))('authorization %s', (format) => {
  const rows = AUTHORIZATION_ROWS[format] ?? []

  test('has rows', () => {
    expect(rows.length).toBeGreaterThan(0)
  })

  test.each(rows)('$promise', async (row) => {
    const outcome = await outcomeOf(format, row)
    if (row.failure !== undefined) {
      expect(outcome).toEqual({ failure: expect.stringContaining(row.failure) })
    } else {
      const asked = row.evaluated === undefined ? [] : [expect.any(String)]
      expect(outcome).toEqual({ headers: row.headers ?? {}, query: row.query ?? {}, asked })
    }
  })
})

test('rows exist for registered formats only', () => {
  const registered = AUTHORIZATION_FORMATS.map((entry) => entry.format)
  expect(Object.keys(AUTHORIZATION_ROWS).filter((format) => !registered.includes(format))).toEqual([])
})

describe('a JWT signed with a private key verifies with its public key', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  const ed25519 = generateKeyPairSync('ed25519').privateKey

  test.each([
    ['RS256', rsa, 'sha256'],
    ['ES256', p256, 'sha256'],
    ['EdDSA', ed25519, null],
  ] as const)('%s', async (algorithm, privateKey, hash) => {
    const key = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
    const written = algorithm === 'RS256' ? key.replaceAll('\n', '\\n') : key
    const authorise = compileAuthorization({ format: 'jwt', config: { algorithm, key: '{{key}}' } })
    const tools = { evaluate: async () => undefined, now: () => new Date(0), nonce: () => '' }
    const request = { method: 'GET', url: 'https://x.example', headers: {}, body: undefined }
    const { headers } = await authorise(request, scopeOf({}, { key: written }), tools)
    const [head = '', claims = '', signature = ''] = headers.authorization?.slice('Bearer '.length).split('.') ?? []
    const publicKey = createPublicKey(privateKey)
    const content = Buffer.from(`${head}.${claims}`)
    const isValid = verify(
      hash,
      content,
      algorithm === 'ES256' ? { key: publicKey, dsaEncoding: 'ieee-p1363' } : publicKey,
      Buffer.from(signature, 'base64url'),
    )
    expect(isValid).toBe(true)
    expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toEqual({ iat: 0, exp: 300 })
  })
})
