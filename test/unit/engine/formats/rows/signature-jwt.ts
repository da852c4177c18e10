import { createHash, generateKeyPairSync } from 'node:crypto'
import { SignJWT } from 'jose'
import { SECONDS, type SignatureRow } from './delivery.ts'

const SECRET = 'shared secret'
const BODY = '{"a":1}'
const env = { SECRET }

const ed25519 = generateKeyPairSync('ed25519')
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const pem = (key: typeof rsa.publicKey) => key.export({ type: 'spki', format: 'pem' }).toString()

const JWKS = 'https://keys.example.com/jwks'
const jwk = (key: typeof rsa.publicKey, kid: string) => ({ ...key.export({ format: 'jwk' }), kid })
const keySet = (...keys: object[]) => ({ [JWKS]: JSON.stringify({ keys }) })

interface TokenInput {
  readonly alg?: string
  readonly kid?: string
  readonly claims?: Record<string, unknown>
  readonly key?: typeof rsa.privateKey | Uint8Array
}

/** A bearer token; by default signed with the RSA key and good for an hour. */
async function token({ alg = 'RS256', kid = 'k1', claims = {}, key = rsa.privateKey }: TokenInput = {}) {
  const issuedAt = Number(SECONDS)
  const payload = { iat: issuedAt, exp: issuedAt + 3600, iss: 'issuer', aud: 'audience', ...claims }
  const given = Object.fromEntries(Object.entries(payload).filter(([, value]) => value !== undefined))
  return { authorization: `Bearer ${await new SignJWT(given).setProtectedHeader({ alg, kid }).sign(key)}` }
}

/** The last letter of 256 bytes in base64url has bits to spare. */
const reencoded = (text: string) => text.slice(0, -1) + String.fromCharCode((text.at(-1) ?? '').charCodeAt(0) + 1)

const unsecured = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from(`{"exp":${Number(SECONDS) + 60}}`).toString('base64url')}.`
const byKeySet = { config: { jwks_url: JWKS }, documents: keySet(jwk(rsa.publicKey, 'k1')), proves: [] }
const bySecret = { config: { secret: '{{env.SECRET}}' }, env, proves: [] }
const byHash = {
  config: { jwks_url: JWKS, body_hash_claim: 'h' },
  documents: byKeySet.documents,
  body: BODY,
}
const bodyHash = (encoding: 'hex' | 'base64') => createHash('sha256').update(BODY).digest(encoding)

/** Rows of the format `jwt`. */
export const JWT_ROWS: readonly SignatureRow[] = [
  { promise: 'knows a key of a set', ...byKeySet, headers: await token() },
  {
    promise: 'reads the set again when it does not hold the key',
    ...byKeySet,
    documents: keySet(jwk(p256.publicKey, 'k0'), jwk(rsa.publicKey, 'k1')),
    headers: await token(),
  },
  { promise: 'knows a shared secret', ...bySecret, headers: await token({ alg: 'HS256', key: Buffer.from(SECRET) }) },
  {
    promise: 'knows a public key',
    config: { public_key: '{{env.KEY}}', algorithms: ['ES256'] },
    env: { KEY: pem(p256.publicKey) },
    headers: await token({ alg: 'ES256', key: p256.privateKey }),
    proves: [],
  },
  {
    promise: 'knows Ed25519',
    config: { public_key: '{{env.KEY}}' },
    env: { KEY: pem(ed25519.publicKey) },
    headers: await token({ alg: 'EdDSA', key: ed25519.privateKey }),
    proves: [],
  },
  {
    promise: 'takes the token from the payload',
    ...byKeySet,
    config: { jwks_url: JWKS, token: '$payload.tokens[0]' },
    payload: { tokens: [(await token()).authorization.slice('Bearer '.length)] },
    proves: ['payload'],
  },
  {
    promise: 'compares issuer, audience and claims',
    ...byKeySet,
    config: { jwks_url: JWKS, issuer: 'issuer', audience: '{{env.AUD}}', claims: { n: 1, l: ['a'] } },
    env: { AUD: 'audience' },
    headers: await token({ claims: { n: 1, l: ['a'] } }),
  },
  { promise: 'knows the hash of the body', ...byHash, headers: await token({ claims: { h: bodyHash('hex') } }) },
  {
    promise: 'takes a token without an end when it is bound to the body',
    ...byHash,
    config: { ...byHash.config, body_hash_type: 'base64' },
    headers: await token({ claims: { h: bodyHash('base64'), exp: undefined } }),
  },
  {
    promise: 'takes a token without an end when its age is limited',
    ...byKeySet,
    config: { jwks_url: JWKS, max_age_seconds: 300, tolerance_seconds: 0 },
    headers: await token({ claims: { exp: undefined } }),
  },
  {
    promise: 'rejects a token without an end otherwise',
    ...byKeySet,
    headers: await token({ claims: { exp: undefined } }),
    reason: 'the claim exp',
  },
  {
    promise: 'rejects an old token',
    ...byKeySet,
    config: { jwks_url: JWKS, max_age_seconds: 300, tolerance_seconds: 0 },
    headers: await token({ claims: { iat: Number(SECONDS) - 301 } }),
    reason: 'has expired',
  },
  {
    promise: 'rejects an expired token',
    ...byKeySet,
    headers: await token({ claims: { exp: Number(SECONDS) - 61 } }),
    reason: 'has expired',
  },
  {
    promise: 'rejects a token of the future',
    ...byKeySet,
    headers: await token({ claims: { nbf: Number(SECONDS) + 61 } }),
    reason: 'the claim nbf',
  },
  {
    promise: 'rejects another issuer',
    ...byKeySet,
    config: { jwks_url: JWKS, issuer: 'me' },
    headers: await token(),
    reason: 'the claim iss',
  },
  {
    promise: 'rejects another audience',
    ...byKeySet,
    config: { jwks_url: JWKS, audience: 'me' },
    headers: await token(),
    reason: 'the claim aud',
  },
  {
    promise: 'rejects another claim',
    ...byKeySet,
    config: { jwks_url: JWKS, claims: { sub: 'me' } },
    headers: await token(),
    reason: 'the claim sub',
  },
  {
    promise: 'rejects when it does not know what to expect',
    ...byKeySet,
    config: { jwks_url: JWKS, claims: { sub: '{{env.NOBODY}}' } },
    headers: await token(),
    reason: 'the claim sub needs is not known',
  },
  {
    promise: 'rejects an unknown audience',
    ...byKeySet,
    config: { jwks_url: JWKS, audience: '{{env.NOBODY}}' },
    headers: await token(),
    reason: '{{env.NOBODY}} has no value',
  },
  {
    promise: 'rejects an unsigned token',
    ...byKeySet,
    headers: { authorization: `Bearer ${unsecured}` },
    reason: 'not a JWT',
  },
  {
    promise: 'rejects another encoding of the same signature',
    ...byKeySet,
    headers: { authorization: reencoded((await token()).authorization) },
    reason: 'not a JWT',
  },
  {
    promise: 'rejects a token signed with the public key as a secret',
    config: { public_key: '{{env.KEY}}' },
    env: { KEY: pem(rsa.publicKey) },
    headers: await token({ alg: 'HS256', key: Buffer.from(pem(rsa.publicKey)) }),
    reason: 'algorithm that is not allowed',
  },
  {
    promise: 'rejects a symmetric token where a key set is expected',
    ...byKeySet,
    documents: keySet({ kty: 'oct', kid: 'k1', k: Buffer.from(SECRET).toString('base64url') }),
    headers: await token({ alg: 'HS256', key: Buffer.from(SECRET) }),
    reason: 'algorithm that is not allowed',
  },
  {
    promise: 'rejects an empty secret',
    ...bySecret,
    env: { SECRET: '' },
    headers: await token({ alg: 'HS256', key: Buffer.from(SECRET) }),
    reason: 'the secret is empty',
  },
  {
    promise: 'rejects an algorithm that is not listed',
    ...byKeySet,
    config: { jwks_url: JWKS, algorithms: ['ES256'] },
    headers: await token(),
    reason: 'not allowed',
  },
  {
    promise: 'rejects a key that no set holds',
    ...byKeySet,
    headers: await token({ kid: 'k9' }),
    reason: 'does not hold the key',
  },
  {
    promise: 'rejects an invalid key set',
    ...byKeySet,
    documents: { [JWKS]: '<html>' },
    headers: await token(),
    reason: 'not readable',
  },
  { promise: 'rejects without a token', ...byKeySet, reason: 'holds no bearer token' },
  {
    promise: 'rejects another body',
    ...byHash,
    headers: await token({ claims: { h: bodyHash('hex') } }),
    body: '{"a":2}',
    reason: 'not the hash of the body',
  },
  {
    promise: 'rejects a token without the hash',
    ...byHash,
    headers: await token(),
    reason: 'not the hash of the body',
  },
]
