import { createPrivateKey, type KeyObject } from 'node:crypto'
import { CompactSign } from 'jose'
import { Failure } from '../../foundation/base/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'

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

/** Claims and signing key of a token. */
export interface JwtInput {
  readonly algorithm: JwtAlgorithm
  /** Secret for HS algorithms, else a private key in PEM; `\n` written as two characters is understood. */
  readonly key: string
  readonly keyId: string | undefined
  readonly claims: JsonObject
}

/**
 * A signed JWT in compact form (RFC 7515). Numbers of the claims keep their text, which `SignJWT` would make doubles.
 *
 * @throws Failure EXPRESSION_FAILED when the key does not fit the algorithm as RFC 7518 has it; the key is never shown
 */
export async function signJwt({ algorithm, key, keyId, claims }: JwtInput): Promise<string> {
  const header = { alg: algorithm, typ: 'JWT', ...(keyId === undefined ? {} : { kid: keyId }) }
  try {
    const token = new CompactSign(Buffer.from(JSON.stringify(claims))).setProtectedHeader(header)
    return await token.sign(signingKey(algorithm, key))
  } catch {
    throw new Failure('EXPRESSION_FAILED', `the signing key is not usable with ${algorithm}`)
  }
}

function signingKey(algorithm: JwtAlgorithm, key: string): Uint8Array | KeyObject {
  return algorithm.startsWith('HS') ? Buffer.from(key) : createPrivateKey(key.replaceAll('\\n', '\n'))
}
