import { hash } from 'node:crypto'
import type { JWTVerifyOptions } from 'jose'
import { z } from 'zod'
import { Failure } from '../../../foundation/base/index.ts'
import { canonicalJson, type Json, type JsonObject } from '../../../foundation/json/index.ts'
import type { TemplateScope } from '../../expressions/placeholder.ts'
import { compileJson, compileTemplate, renderObject } from '../../expressions/template.ts'
import { withSchema } from '../format.ts'
import {
  listOf,
  nameText,
  rawText,
  refineWith,
  secretText,
  templateMap,
  templateText,
  urlText,
} from '../schema-types.ts'
import { compileVerifier, type ExpectedClaims, findKeyProblem, JWT_ALGORITHM_NAMES } from './jwt-keys.ts'
import { BYTE_ENCODINGS, type ByteEncoding, constantTimeEqual, normaliseEncoded, renderSetting } from './secret.ts'
import { bearerToken } from './shared-token.ts'
import type { SignatureFormat } from './signature.ts'
import { compileSource, readText, tokenText } from './source.ts'
import { type InvalidDelivery, invalid, ok, type Result, VALID, type WebhookRequest } from './verification.ts'

const config = z
  .strictObject({
    token: tokenText()
      .optional()
      .describe('Where the token is. Default: the bearer token of the Authorization header.'),
    token_prefix: rawText()
      .optional()
      .describe('Text before the token at the location that `token` names, for example `JWT `.'),
    secret: secretText().optional().describe('Shared with the sender, for HS algorithms.'),
    public_key: templateText().optional().describe('Public key of the sender: PEM, base64 of the DER, or a JWK.'),
    jwks_url: urlText().optional().describe('Key set of the sender.'),
    algorithms: listOf(z.enum(JWT_ALGORITHM_NAMES))
      .min(1)
      .optional()
      .describe('Allowed algorithms. Default: those that fit the kind of key.'),
    issuer: templateText().optional().describe('Required `iss`.'),
    audience: templateText().optional().describe('Required `aud`.'),
    claims: templateMap().optional().describe('Claims that have to be there with exactly these values.'),
    max_age_seconds: z
      .int()
      .min(1)
      .optional()
      .describe('Since `iat`. Without it, and without a hash of the body, the token has to name its end in `exp`.'),
    tolerance_seconds: z.int().min(0).max(600).default(60).describe('Allowed difference of the clocks.'),
    body_hash_claim: nameText().optional().describe('Claim that holds the SHA-256 of the body.'),
    body_hash_type: z.enum(BYTE_ENCODINGS).default('hex').describe('How the hash of the body is written.'),
  })
  .superRefine(refineWith(findKeyProblem, 'signature.key'))

type JwtConfig = z.output<typeof config>

/** `jwt`: a signed token in the request (RFC 7519). The body is authenticated only when a claim holds its hash. */
export const jwt: SignatureFormat = {
  format: 'jwt',
  summary: "A JWT, verified with a secret, a public key or the sender's key set.",
  config,
  compile: withSchema(config, (keys) => {
    const readToken = compileToken(keys)
    const verify = compileVerifier(keys)
    const expect = compileExpectedClaims(keys)
    return async (request, scope, context) => {
      const token = readToken(request, scope)
      if (token.kind === 'invalid') return token
      const expected = expect(scope)
      if (expected.kind === 'invalid') return expected
      const claims = await verify(token.value, expected.value, scope, context)
      if (claims.kind === 'invalid') return claims
      const problem = checkClaims(claims.value, expected.value) ?? checkBodyHash(claims.value, keys, request.body)
      if (problem !== undefined) return problem
      // A token that says nothing of the body is sent with many requests.
      return VALID
    }
  }),
}

function compileToken({ token, token_prefix: prefix = '' }: JwtConfig) {
  const source = token === undefined ? undefined : compileSource(token)
  return (request: WebhookRequest, scope: TemplateScope): Result<string> => {
    const read = source === undefined ? bearerToken(request) : readText(source, request, scope)
    if (read.kind === 'invalid' || source === undefined) return read
    const hasPrefix = read.value.startsWith(prefix)
    return hasPrefix ? ok(read.value.slice(prefix.length)) : invalid(`the token does not start with ${prefix}`)
  }
}

/** The settings of the required claims. */
interface ClaimKeys {
  readonly issuer?: string | undefined
  readonly audience?: string | undefined
  readonly claims?: Readonly<Record<string, Json>> | undefined
  readonly max_age_seconds?: number | undefined
  readonly tolerance_seconds: number
  readonly body_hash_claim?: string | undefined
}

interface BodyHashKeys {
  readonly body_hash_claim?: string | undefined
  readonly body_hash_type: ByteEncoding
}

/** A required claim whose placeholder has no value makes the request invalid: it is never skipped. */
function compileExpectedClaims(keys: ClaimKeys): (scope: TemplateScope) => Result<ExpectedClaims> {
  const issuer = compileOptional(keys.issuer, 'the issuer')
  const audience = compileOptional(keys.audience, 'the audience')
  const renderClaims = compileOwnClaims(keys.claims ?? {})
  const age = keys.max_age_seconds === undefined ? {} : { maxTokenAge: keys.max_age_seconds }
  const needsEnd = keys.max_age_seconds === undefined && keys.body_hash_claim === undefined
  const times = { ...age, clockTolerance: keys.tolerance_seconds, requiredClaims: needsEnd ? ['exp'] : [] }
  return (scope) => {
    const iss = issuer(scope)
    if (iss.kind === 'invalid') return iss
    const aud = audience(scope)
    if (aud.kind === 'invalid') return aud
    const claims = renderClaims(scope)
    if (claims.kind === 'invalid') return claims
    const options: JWTVerifyOptions = {
      ...times,
      ...(iss.value === undefined ? {} : { issuer: iss.value }),
      ...(aud.value === undefined ? {} : { audience: aud.value }),
    }
    return ok({ options, claims: claims.value })
  }
}

/** Invalid when one of the definition's claims has another value. */
function checkClaims(claims: JsonObject, { claims: expected }: ExpectedClaims): InvalidDelivery | undefined {
  for (const [name, value] of Object.entries(expected)) {
    const isEqual = Object.hasOwn(claims, name) && canonicalJson(claims[name] ?? null) === canonicalJson(value)
    if (!isEqual) return invalid(`the claim ${name} of the token does not fit`)
  }
  return undefined
}

/** Invalid when the token was made for another body. */
function checkBodyHash(claims: JsonObject, keys: BodyHashKeys, body: Uint8Array): InvalidDelivery | undefined {
  const { body_hash_claim: name, body_hash_type: encoding } = keys
  if (name === undefined) return undefined
  const claim = Object.hasOwn(claims, name) ? claims[name] : undefined
  const expected = normaliseEncoded(hash('sha256', body, 'buffer').toString(encoding), encoding)
  const isMatch = typeof claim === 'string' && constantTimeEqual(expected, normaliseEncoded(claim, encoding))
  return isMatch ? undefined : invalid(`the claim ${name} of the token is not the hash of the body`)
}

function compileOptional(text: string | undefined, name: string): (scope: TemplateScope) => Result<string | undefined> {
  if (text === undefined) return () => ok(undefined)
  const template = compileTemplate(text)
  return (scope) => renderSetting(template, scope, name)
}

function compileOwnClaims(claims: Readonly<Record<string, Json>>): (scope: TemplateScope) => Result<JsonObject> {
  const template = compileJson(claims)
  return (scope) => {
    try {
      const rendered = renderObject(template, scope)
      const missing = Object.keys(claims).find((name) => !Object.hasOwn(rendered, name))
      return missing === undefined ? ok(rendered) : invalid(`the value that the claim ${missing} needs is not known`)
    } catch (error) {
      if (error instanceof Failure) return invalid(`the claims are not known: ${error.publicMessage}`)
      throw error
    }
  }
}
