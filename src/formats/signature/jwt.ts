import { z } from 'zod'
import { secretText, templateText, urlText } from '../vocabulary.ts'
import type { SignatureFormat } from './signature.ts'

/** `jwt`: a signed token in the delivery. */
export const jwt: SignatureFormat = {
  format: 'jwt',
  summary: "A JWT, verified with a secret or the sender's key set.",
  config: z.strictObject({
    token: templateText().optional().describe('Default: the bearer token of the Authorization header.'),
    secret: secretText().optional().describe('For HS algorithms.'),
    jwks_url: urlText().optional().describe('Key set of the sender.'),
    algorithms: z.array(z.string()).optional().describe('Allowed algorithms.'),
    issuer: templateText().optional().describe('Required `iss`.'),
    audience: templateText().optional().describe('Required `aud`.'),
    body_hash_claim: z.string().optional().describe('Claim that holds the SHA-256 of the body.'),
  }),
  readiness: 'announced',
}
