import { z } from 'zod'
import type { TemplateScope } from '../../expression/index.ts'
import { withSchema } from '../format.ts'
import { listOf, nameText, rawText, refineWith, secretText, templateMap, templateText, urlText } from '../vocabulary.ts'
import { bearerToken } from './bearer.ts'
import { BYTE_ENCODINGS } from './encoding.ts'
import { checkBodyHash, checkClaims, compileExpectedClaims } from './jwt-claims.ts'
import { compileVerifier, findKeyProblem, JWT_ALGORITHM_NAMES } from './jwt-keys.ts'
import type { InboundDelivery, SignatureFormat } from './signature.ts'
import { compileSource, readText, tokenText } from './source.ts'
import { invalid, ok, type Result, VALID } from './verdict.ts'

const config = z
  .strictObject({
    token: tokenText()
      .optional()
      .describe('Where the token is. Default: the bearer token of the Authorization header.'),
    token_prefix: rawText()
      .optional()
      .describe('Stands before the token at the place that `token` names, for example `JWT `.'),
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

/** `jwt`: a signed token in the delivery (RFC 7519). Says nothing about the body unless a claim holds its hash. */
export const jwt: SignatureFormat = {
  format: 'jwt',
  summary: "A JWT, verified with a secret, a public key or the sender's key set.",
  config,
  compile: withSchema(config, (keys) => {
    const readToken = compileToken(keys)
    const verify = compileVerifier(keys)
    const expect = compileExpectedClaims(keys)
    return async (delivery, scope, tools) => {
      const token = readToken(delivery, scope)
      if (token.kind === 'refused') return token
      const expected = expect(scope)
      if (expected.kind === 'refused') return expected
      const claims = await verify(token.value, expected.value, scope, tools)
      if (claims.kind === 'refused') return claims
      const problem = checkClaims(claims.value, expected.value) ?? checkBodyHash(claims.value, keys, delivery.body)
      return problem ?? VALID
    }
  }),
}

function compileToken({ token, token_prefix: prefix = '' }: JwtConfig) {
  const source = token === undefined ? undefined : compileSource(token)
  return (delivery: InboundDelivery, scope: TemplateScope): Result<string> => {
    const read = source === undefined ? bearerToken(delivery) : readText(source, delivery, scope)
    if (read.kind === 'refused' || source === undefined) return read
    const hasPrefix = read.value.startsWith(prefix)
    return hasPrefix ? ok(read.value.slice(prefix.length)) : invalid(`the token does not start with ${prefix}`)
  }
}
