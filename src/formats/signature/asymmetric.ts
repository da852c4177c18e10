import { z } from 'zod'
import { templateText, urlText } from '../vocabulary.ts'
import { partsSchema, type SignatureFormat } from './signature.ts'

/** `asymmetric`: RSA, ECDSA or Ed25519 with a public key, or a certificate from a pinned host. */
export const asymmetric: SignatureFormat = {
  format: 'asymmetric',
  summary: 'RSA, ECDSA or Ed25519 signature over the parts.',
  config: z.strictObject({
    algorithm: z
      .enum(['rsa-sha256', 'rsa-sha512', 'rsa-pss-sha256', 'ecdsa-sha256', 'ed25519'])
      .describe('Algorithm of the signature.'),
    public_key: templateText().optional().describe('PEM, or base64 of the DER.'),
    certificate_url: urlText().optional().describe('Where the certificate is; only on `certificate_host`.'),
    certificate_host: z.string().optional().describe('The only host a certificate is taken from.'),
    compare_with: templateText().describe('The signature that was sent.'),
    string_type: z.enum(['hex', 'base64', 'base64url']).default('base64').describe('How the signature is written.'),
    parts: partsSchema,
  }),
  readiness: 'announced',
}
