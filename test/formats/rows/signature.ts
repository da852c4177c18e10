import type { Json } from '../../../src/base/index.ts'

/** One promise about the config of a signature format: accepted, or refused at this path. */
export interface SignatureRow {
  readonly promise: string
  readonly config?: Json
  readonly refusedAt?: string
}

const PARTS = { parts: ['$header.x-timestamp', '.', '$body'], compare_with: '$header.x-signature' }

export const SIGNATURE_ROWS: Readonly<Record<string, readonly SignatureRow[]>> = {
  hmac: [
    {
      promise: "takes the specification's shape",
      config: { ...PARTS, secret: '{{environment_variables.SECRET}}', algorithm: 'sha256', string_type: 'hex' },
    },
    { promise: 'needs a secret', config: PARTS, refusedAt: 'config.secret' },
    { promise: 'needs something to sign', config: { ...PARTS, secret: 's', parts: [] }, refusedAt: 'config.parts' },
    { promise: 'knows no md5', config: { ...PARTS, secret: 's', algorithm: 'md5' }, refusedAt: 'config.algorithm' },
  ],
  hash: [{ promise: 'has its secret among the parts', config: { ...PARTS, parts: ['{{context.secret}}', '$body'] } }],
  asymmetric: [
    { promise: 'takes a key', config: { ...PARTS, algorithm: 'ed25519', public_key: '{{env.KEY}}' } },
    { promise: 'needs an algorithm', config: PARTS, refusedAt: 'config.algorithm' },
  ],
  jwt: [
    { promise: 'takes a key set', config: { jwks_url: 'https://example.com/keys', issuer: 'https://example.com' } },
  ],
  basic: [{ promise: 'takes a pair', config: { username: 'u', password: '{{env.PASSWORD}}' } }],
  bearer: [{ promise: 'takes a token', config: { token: '{{env.TOKEN}}' } }],
  compare: [
    { promise: 'takes a place and a secret', config: { compare_with: '$header.x-token', secret: '{{env.TOKEN}}' } },
  ],
  standard_webhooks: [{ promise: 'takes a secret', config: { secret: 'whsec_x' } }],
  any_of: [
    {
      promise: 'combines others',
      config: { verifications: [{ format: 'bearer', config: { token: 'a' } }, { format: 'none' }] },
    },
    {
      promise: 'does not nest',
      config: { verifications: [{ format: 'any_of', config: {} }] },
      refusedAt: 'config.verifications.0.format',
    },
  ],
  all_of: [{ promise: 'combines others', config: { verifications: [{ format: 'bearer', config: { token: 'a' } }] } }],
  none: [{ promise: 'needs nothing' }],
}
