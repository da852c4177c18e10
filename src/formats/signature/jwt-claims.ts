import { hash } from 'node:crypto'
import type { JWTVerifyOptions } from 'jose'
import { canonicalJson, Failure, type Json, type JsonObject } from '../../base/index.ts'
import { compileJson, compileTemplate, renderObject, type TemplateScope } from '../../expression/index.ts'
import { type ByteEncoding, constantTimeEqual, normaliseEncoded } from './encoding.ts'
import { renderSetting } from './secret.ts'
import { type InvalidDelivery, invalid, ok, type Result } from './verdict.ts'

/** The keys of `jwt` that say what a token has to claim. */
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

/** What a token has to claim, placeholders resolved. */
export interface ExpectedClaims {
  /** What the library checks: times, issuer, audience. */
  readonly options: JWTVerifyOptions
  /** Claims of the definition's own. */
  readonly claims: JsonObject
}

/** A claim that is expected but whose placeholder has no value refuses; it is never just not looked at. */
export function compileExpectedClaims(keys: ClaimKeys): (scope: TemplateScope) => Result<ExpectedClaims> {
  const issuer = compileOptional(keys.issuer, 'the issuer')
  const audience = compileOptional(keys.audience, 'the audience')
  const renderClaims = compileOwnClaims(keys.claims ?? {})
  const age = keys.max_age_seconds === undefined ? {} : { maxTokenAge: keys.max_age_seconds }
  const needsEnd = keys.max_age_seconds === undefined && keys.body_hash_claim === undefined
  const times = { ...age, clockTolerance: keys.tolerance_seconds, requiredClaims: needsEnd ? ['exp'] : [] }
  return (scope) => {
    const iss = issuer(scope)
    if (iss.kind === 'refused') return iss
    const aud = audience(scope)
    if (aud.kind === 'refused') return aud
    const claims = renderClaims(scope)
    if (claims.kind === 'refused') return claims
    const options: JWTVerifyOptions = {
      ...times,
      ...(iss.value === undefined ? {} : { issuer: iss.value }),
      ...(aud.value === undefined ? {} : { audience: aud.value }),
    }
    return ok({ options, claims: claims.value })
  }
}

/** A refusal when one of the definition's own claims has another value. */
export function checkClaims(claims: JsonObject, { claims: expected }: ExpectedClaims): InvalidDelivery | undefined {
  for (const [name, value] of Object.entries(expected)) {
    const isEqual = Object.hasOwn(claims, name) && canonicalJson(claims[name] ?? null) === canonicalJson(value)
    if (!isEqual) return invalid(`the claim ${name} of the token does not fit`)
  }
  return undefined
}

/** A refusal when the token was made for another body. */
export function checkBodyHash(claims: JsonObject, keys: BodyHashKeys, body: Uint8Array): InvalidDelivery | undefined {
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
