import { constants, createHmac, createPrivateKey, sign } from 'node:crypto'
import { Failure, type JsonObject } from '../base/index.ts'

/** The algorithms a definition may name (RFC 7518, RFC 8037); `none` is not one. */
export const JWT_ALGORITHMS = [
  'HS256',
  'HS384',
  'HS512',
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'ES256',
  'ES384',
  'EdDSA',
] as const

type JwtAlgorithm = (typeof JWT_ALGORITHMS)[number]

/** What a token says and what it is signed with. */
export interface JwtInput {
  readonly algorithm: JwtAlgorithm
  /** Secret for HS algorithms, else a private key in PEM; `\n` written as two characters is understood. */
  readonly key: string
  readonly keyId: string | undefined
  readonly claims: JsonObject
}

/** PS256 signs with a salt as long as the hash (RFC 7518 §3.5). */
const PSS_SALT_BYTES = 32

/** A compact JWS over the claims. @throws Failure EXPRESSION_FAILED when the key does not fit the algorithm; the key is never shown */
export function signJwt({ algorithm, key, keyId, claims }: JwtInput): string {
  const header = keyId === undefined ? { alg: algorithm, typ: 'JWT' } : { alg: algorithm, typ: 'JWT', kid: keyId }
  const content = `${base64url(JSON.stringify(header))}.${base64url(JSON.stringify(claims))}`
  try {
    return `${content}.${signature(algorithm, key, content).toString('base64url')}`
  } catch {
    throw new Failure('EXPRESSION_FAILED', `the signing key is not usable with ${algorithm}`)
  }
}

function signature(algorithm: JwtAlgorithm, key: string, content: string): Buffer {
  const hash = `sha${algorithm.slice(2)}`
  if (algorithm.startsWith('HS')) return createHmac(hash, key).update(content).digest()
  const privateKey = createPrivateKey(key.replaceAll('\\n', '\n'))
  const bytes = Buffer.from(content)
  if (algorithm === 'EdDSA') return sign(null, bytes, privateKey)
  if (algorithm.startsWith('ES')) return sign(hash, bytes, { key: privateKey, dsaEncoding: 'ieee-p1363' })
  if (algorithm.startsWith('PS'))
    return sign(hash, bytes, { key: privateKey, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: PSS_SALT_BYTES })
  return sign(hash, bytes, privateKey)
}

function base64url(text: string): string {
  return Buffer.from(text).toString('base64url')
}
