import type { KeyObject } from 'node:crypto'
import {
  createLocalJWKSet,
  errors,
  type JSONWebKeySet,
  type JWTVerifyGetKey,
  type JWTVerifyOptions,
  jwtVerify,
} from 'jose'
import { Failure } from '../../../foundation/base/index.ts'
import type { JsonObject } from '../../../foundation/json/index.ts'
import type { TemplateScope } from '../../expressions/placeholder.ts'
import { compileTemplate } from '../../expressions/template.ts'
import { compileUrl, renderUrl } from '../../expressions/url-template.ts'
import { readPublicKey } from './public-key.ts'
import { compileSecret, renderSetting } from './secret.ts'
import { invalid, ok, type Result, type VerificationContext } from './verification.ts'

const SYMMETRIC = ['HS256', 'HS384', 'HS512'] as const

/** By type of key. A public key never verifies an HMAC: anyone who knows the key could compute it (algorithm confusion). */
const ASYMMETRIC = {
  rsa: ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ec: ['ES256', 'ES384', 'ES512'],
  ed25519: ['EdDSA'],
} as const

const ALL_ASYMMETRIC = Object.values(ASYMMETRIC).flat()

/** The algorithms that a definition may allow (RFC 7518, RFC 8037); `none` is not one. */
export const JWT_ALGORITHM_NAMES = [...SYMMETRIC, ...ALL_ASYMMETRIC]

type JwtAlgorithmName = (typeof JWT_ALGORITHM_NAMES)[number]

/** The settings of the verification key: exactly one besides `algorithms`. */
interface VerifierKeys {
  readonly secret?: string | undefined
  readonly public_key?: string | undefined
  readonly jwks_url?: string | undefined
  readonly algorithms?: readonly JwtAlgorithmName[] | undefined
}

/** Verifies signature, times, issuer and audience of a token; the result is its claims. */
type VerifyToken = (
  token: string,
  expected: ExpectedClaims,
  scope: TemplateScope,
  context: VerificationContext,
) => Promise<Result<JsonObject>>

/** The problem when keys and algorithms do not fit together. */
export function findKeyProblem({ secret, public_key, jwks_url, algorithms }: VerifierKeys): string | undefined {
  if ([secret, public_key, jwks_url].filter((key) => key !== undefined).length !== 1)
    return 'needs exactly one of secret, public_key or jwks_url'
  const fitting: readonly string[] = secret === undefined ? ALL_ASYMMETRIC : SYMMETRIC
  const other = algorithms?.find((name) => !fitting.includes(name))
  return other === undefined ? undefined : `allows ${other}, which is not for the kind of key it names`
}

export function compileVerifier({ secret, public_key, jwks_url, algorithms }: VerifierKeys): VerifyToken {
  if (secret !== undefined) return withSecret(secret, algorithms ?? SYMMETRIC)
  if (jwks_url !== undefined) return withKeySet(jwks_url, algorithms ?? ALL_ASYMMETRIC)
  return withPublicKey(public_key ?? '', algorithms)
}

function withSecret(text: string, algorithms: readonly string[]): VerifyToken {
  const readSecret = compileSecret(text, 'utf8')
  return async (token, expected, scope, context) => {
    const secret = readSecret(scope)
    if (secret.kind === 'invalid') return secret
    return (await verifyWith(token, secret.value, algorithms, expected, context)).claims
  }
}

function withPublicKey(text: string, allowed: readonly string[] | undefined): VerifyToken {
  const template = compileTemplate(text)
  return async (token, expected, scope, context) => {
    const rendered = renderSetting(template, scope, 'the public key')
    if (rendered.kind === 'invalid') return rendered
    const key = readPublicKey(rendered.value)
    if (key === undefined) return invalid('the public key is not readable, or too weak')
    const fitting = algorithmsOf(key).filter((name) => allowed?.includes(name) ?? true)
    return (await verifyWith(token, key, fitting, expected, context)).claims
  }
}

/** A key that is not in the set may be a new one: the set is fetched again, at a rate that `KeySource` limits. */
function withKeySet(address: string, algorithms: readonly string[]): VerifyToken {
  const template = compileUrl(address, '')
  return async (token, expected, scope, context) => {
    const url = renderAddress(template, scope)
    if (url.kind === 'invalid') return url
    const known = await context.keys.read(url.value)
    if (known.kind === 'invalid') return known
    const first = await verifyWith(token, parseKeySet(known.value), algorithms, expected, context)
    if (!first.isKeyMissing) return first.claims
    const newer = await context.keys.reread(url.value)
    if (newer.kind === 'invalid') return newer
    return (await verifyWith(token, parseKeySet(newer.value), algorithms, expected, context)).claims
  }
}

interface JwtVerification {
  readonly claims: Result<JsonObject>
  readonly isKeyMissing: boolean
}

async function verifyWith(
  token: string,
  key: Uint8Array | KeyObject | JWTVerifyGetKey,
  algorithms: readonly string[],
  expected: ExpectedClaims,
  { now }: VerificationContext,
): Promise<JwtVerification> {
  // A second encoding of the same signature would bypass the detection of replays.
  if (!token.split('.').every(isCanonical)) return { claims: invalid('the token is not a JWT'), isKeyMissing: false }
  const options = { ...expected.options, algorithms: [...algorithms], currentDate: now() }
  try {
    const { payload } = await jwtVerify<JsonObject>(token, key, options)
    return { claims: ok(payload), isKeyMissing: false }
  } catch (error) {
    // Includes errors of keys that cannot be imported: on any error the token is invalid.
    return { claims: invalid(describeJwtError(error)), isKeyMissing: error instanceof errors.JWKSNoMatchingKey }
  }
}

function isCanonical(segment: string): boolean {
  return segment !== '' && Buffer.from(segment, 'base64url').toString('base64url') === segment
}

const SENTENCES: Readonly<Record<string, string>> = {
  ERR_JWT_EXPIRED: 'the token has expired',
  ERR_JWS_SIGNATURE_VERIFICATION_FAILED: 'the signature of the token does not match',
  ERR_JOSE_ALG_NOT_ALLOWED: 'the token is signed with an algorithm that is not allowed',
  ERR_JWKS_NO_MATCHING_KEY: 'the key set of the sender does not hold the key of the token',
  ERR_JWKS_INVALID: 'the key set of the sender is not readable',
}

function describeJwtError(error: unknown): string {
  if (error instanceof errors.JWTClaimValidationFailed) return `the claim ${error.claim} of the token does not fit`
  const sentence = error instanceof errors.JOSEError ? SENTENCES[error.code] : undefined
  return sentence ?? 'the token is not a JWT that the key can verify'
}

function algorithmsOf(key: KeyObject): readonly string[] {
  const type = key.asymmetricKeyType ?? ''
  return Object.hasOwn(ASYMMETRIC, type) ? ASYMMETRIC[type as keyof typeof ASYMMETRIC] : []
}

/** Looks keys up in a key set (JWKS); an invalid document has none. */
function parseKeySet(document: string): JWTVerifyGetKey {
  try {
    return createLocalJWKSet(JSON.parse(document) as JSONWebKeySet)
  } catch {
    return async () => {
      throw new errors.JWKSInvalid()
    }
  }
}

function renderAddress(template: ReturnType<typeof compileUrl>, scope: TemplateScope): Result<string> {
  try {
    return ok(renderUrl(template, scope))
  } catch (error) {
    if (error instanceof Failure) return invalid(`the address of the key set is not known: ${error.publicMessage}`)
    throw error
  }
}

/** The required claims, placeholders resolved. */
export interface ExpectedClaims {
  /** Options of jose: times, issuer, audience. */
  readonly options: JWTVerifyOptions
  /** Further claims of the definition. */
  readonly claims: JsonObject
}
