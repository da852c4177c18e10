import { createHash, createHmac, hash as hashBytes } from 'node:crypto'
import { z } from 'zod'
import { withSchema } from '../format.ts'
import { rawText, refineWith } from '../schema-types.ts'
import { verifyItems } from './items.ts'
import {
  type ByteEncoding,
  compileSecret,
  constantTimeEqual,
  normaliseEncoded,
  secretEncoding,
  sharedSecret,
} from './secret.ts'
import type { SignatureFormat } from './signature.ts'
import { compileSigned, findTimestampProblem, type SignedKeys, signedKeys, stringType } from './signed-content.ts'
import { invalid, VALID, type VerificationResult, type Verify } from './verification.ts'

/** The keys that `hmac` and `hash` share. */
const digestKeys = {
  algorithm: z.enum(['sha1', 'sha256', 'sha384', 'sha512']).default('sha256').describe('Digest.'),
  string_type: stringType.default('hex'),
  ...signedKeys,
} as const

/**
 * Compares the computed digest with every signature that was sent, in constant time; one must match.
 */
function compareDigest(digest: Buffer, encoding: ByteEncoding, signatures: readonly string[]): VerificationResult {
  const expected = normaliseEncoded(digest.toString(encoding), encoding)
  const matches = signatures.filter((signature) => constantTimeEqual(expected, normaliseEncoded(signature, encoding)))
  return matches.length > 0 ? VALID : invalid('the signature does not match')
}

const hmacConfig = z
  .strictObject({
    ...digestKeys,
    secret: sharedSecret,
    secret_encoding: secretEncoding,
    secret_prefix: rawText()
      .optional()
      .describe('Text before the secret that is no part of it, where it is there, for example `whsec_`.'),
    secret_hash: z
      .enum(['sha256', 'sha512'])
      .optional()
      .describe('The key is this digest of the secret (its bytes), not the secret.'),
  })
  .superRefine(refineWith(findTimestampProblem, 'signature.timestamp'))

/** `hmac`: a keyed digest over parts of the request (RFC 2104). */
export const hmac: SignatureFormat = {
  format: 'hmac',
  summary: 'HMAC over the parts, compared with what was sent.',
  config: hmacConfig,
  signed: withSchema(hmacConfig, (keys) => keys),
  compile: withSchema(hmacConfig, (keys) => {
    const readSecret = compileSecret(keys.secret, keys.secret_encoding, keys.secret_prefix)
    const readSigned = compileSigned(keys)
    const { secret_hash: secretHash } = keys
    return verifyItems(keys.items, async (request, scope, { now }) => {
      const secret = readSecret(scope)
      if (secret.kind === 'invalid') return secret
      const signed = readSigned(request, scope, now())
      if (signed.kind === 'invalid') return signed
      const key = secretHash === undefined ? secret.value : hashBytes(secretHash, secret.value, 'buffer')
      const digest = createHmac(keys.algorithm, key).update(signed.value.content).digest()
      return compareDigest(digest, keys.string_type, signed.value.signatures)
    })
  }),
}

const hashConfig = z.strictObject(digestKeys).superRefine(refineWith(findTimestampProblem, 'signature.timestamp'))

/**
 * `hash`: a digest without a key. Alone, one of its parts must be the secret, as a placeholder; within `all_of` it may check
 * the body against a digest that another verification has signed.
 */
export const hash: SignatureFormat = {
  format: 'hash',
  summary: 'Digest over the parts, one of which is the secret, as a placeholder.',
  config: hashConfig,
  signed: withSchema(hashConfig, (keys) => keys),
  compile: withSchema(hashConfig, (keys) => {
    const readSigned = compileSigned(keys)
    return verifyItems(keys.items, async (request, scope, { now }) => {
      const signed = readSigned(request, scope, now())
      if (signed.kind === 'invalid') return signed
      const digest = createHash(keys.algorithm).update(signed.value.content).digest()
      return compareDigest(digest, keys.string_type, signed.value.signatures)
    })
  }),
}

const standardWebhooksConfig = z.strictObject({
  secret: sharedSecret,
  tolerance_seconds: z.int().min(1).default(300).describe('Allowed difference of the clocks.'),
  header_prefix: z
    .enum(['webhook-', 'svix-'])
    .default('webhook-')
    .describe('What the names of the three headers start with.'),
})

const SECRET_PREFIX = 'whsec_'
/** Version 1 is the symmetric one; a header may hold signatures of other versions too. */
const VERSION = 'v1,'
/** Most signatures of one request; during a rotation of secrets there are two. */
const SIGNATURES_MAX = 8

const clerkConfig = z.strictObject({
  secret: sharedSecret,
  tolerance_seconds: standardWebhooksConfig.shape.tolerance_seconds,
})

/** `clerk`: `standard_webhooks` with the headers of Svix, under the name that other products give it. */
export const clerk: SignatureFormat = {
  format: 'clerk',
  summary: 'Alias of `standard_webhooks` with `header_prefix` `svix-`.',
  config: clerkConfig,
  signed: withSchema(clerkConfig, (keys) => standardSignedKeys({ ...keys, header_prefix: 'svix-' })),
  compile: withSchema(clerkConfig, (keys) => compileStandard({ ...keys, header_prefix: 'svix-' })),
}

/** `standard_webhooks`: the public scheme of webhook-id, webhook-timestamp and webhook-signature (Standard Webhooks 1.0.0). */
export const standardWebhooks: SignatureFormat = {
  format: 'standard_webhooks',
  summary: 'Standard Webhooks, symmetric signatures; also as Svix sends them.',
  config: standardWebhooksConfig,
  signed: withSchema(standardWebhooksConfig, standardSignedKeys),
  compile: withSchema(standardWebhooksConfig, compileStandard),
}

type StandardKeys = z.output<typeof standardWebhooksConfig>

function compileStandard(keys: StandardKeys): Verify {
  const { header_prefix: prefix } = keys
  const readSecret = compileSecret(keys.secret, 'base64', SECRET_PREFIX)
  const readSigned = compileSigned(standardSignedKeys(keys))
  return async (request, scope, { now }) => {
    const key = readSecret(scope)
    if (key.kind === 'invalid') return key
    const signed = readSigned(request, scope, now())
    if (signed.kind === 'invalid') return signed
    // A "." in the id would allow another split into id and timestamp with the same signed content.
    if (request.headers[`${prefix}id`]?.includes('.')) return invalid('the id of the message holds a "."')
    const digest = createHmac('sha256', key.value).update(signed.value.content).digest()
    const signatures = symmetricSignatures(signed.value.signatures)
    return compareDigest(digest, 'base64', signatures)
  }
}

function standardSignedKeys(keys: StandardKeys): SignedKeys {
  const { header_prefix: prefix, tolerance_seconds } = keys
  const timestamp = `$header.${prefix}timestamp`
  return {
    parts: [`$header.${prefix}id`, timestamp, '$body'],
    separator: '.',
    compare_with: `$header.${prefix}signature`,
    timestamp: { value: timestamp, unit: 'seconds', tolerance_seconds },
  }
}

/** The signatures of version 1 in `v1,<base64> v1a,<base64> v1,<base64>`. */
function symmetricSignatures(headers: readonly string[]): string[] {
  return headers
    .flatMap((header) => header.split(' ', SIGNATURES_MAX))
    .filter((entry) => entry.startsWith(VERSION))
    .map((entry) => entry.slice(VERSION.length))
}
