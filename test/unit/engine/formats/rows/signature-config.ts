import type { Json } from '../../../../../src/foundation/json/index.ts'

/** One promise about the config of a signature format: accepted, or rejected at this path. */
export interface SignatureConfigRow {
  readonly promise: string
  readonly config?: Json
  readonly invalidAt?: string
}

const PARTS = { parts: ['$header.x-timestamp', '.', '$body'], compare_with: '$header.x-signature' }
const KEY = { secret: '{{env.SECRET}}' }
const CERTIFIED = { ...PARTS, algorithm: 'rsa-sha256', certificate_url: '$header.x-cert' }

export const SIGNATURE_CONFIG_ROWS: Readonly<Record<string, readonly SignatureConfigRow[]>> = {
  hmac: [
    {
      promise: "takes the specification's shape",
      config: { ...PARTS, secret: '{{environment_variables.SECRET}}', algorithm: 'sha256', string_type: 'hex' },
    },
    { promise: 'needs a secret', config: PARTS, invalidAt: 'config.secret' },
    { promise: 'needs something to sign', config: { ...PARTS, ...KEY, parts: [] }, invalidAt: 'config.parts' },
    { promise: 'knows no md5', config: { ...PARTS, ...KEY, algorithm: 'md5' }, invalidAt: 'config.algorithm' },
    { promise: 'knows its tokens', config: { ...PARTS, ...KEY, parts: ['$bodi'] }, invalidAt: 'config.parts.0' },
    {
      promise: 'takes no path that is none',
      config: { ...PARTS, ...KEY, parts: ['$payload.a..b'] },
      invalidAt: 'config.parts.0',
    },
    {
      promise: 'requires the location of the signature',
      config: { ...PARTS, ...KEY, compare_with: 'x-signature' },
      invalidAt: 'config.compare_with',
    },
    {
      promise: 'takes no timestamp that is not signed',
      config: { ...PARTS, ...KEY, timestamp: { value: '$header.x-time' } },
      invalidAt: 'config',
    },
    {
      promise: 'takes a timestamp of the query when the address is signed',
      config: { ...PARTS, ...KEY, parts: ['$url'], timestamp: { value: '$query.t' } },
    },
  ],
  hash: [
    { promise: 'has its secret among the parts', config: { ...PARTS, parts: ['{{context.secret}}', '$body'] } },
    { promise: 'rejects a digest that anyone can compute', config: PARTS, invalidAt: '' },
  ],
  asymmetric: [
    { promise: 'takes a key', config: { ...PARTS, algorithm: 'ed25519', public_key: '{{env.KEY}}' } },
    { promise: 'needs an algorithm', config: { ...PARTS, public_key: 'k' }, invalidAt: 'config.algorithm' },
    { promise: 'needs a key', config: { ...PARTS, algorithm: 'ed25519' }, invalidAt: 'config' },
    {
      promise: 'takes certificates from a named host and path',
      config: { ...CERTIFIED, certificate_host: 'example.com', certificate_path: '^/certs/[0-9a-f]+$' },
    },
    { promise: 'takes certificates from a named host only', config: CERTIFIED, invalidAt: 'config' },
    {
      promise: 'takes certificates from a named path only',
      config: { ...CERTIFIED, certificate_host: 'example.com' },
      invalidAt: 'config',
    },
    {
      promise: 'rejects a path that is no expression',
      config: { ...CERTIFIED, certificate_host: 'example.com', certificate_path: '^/(' },
      invalidAt: 'config.certificate_path',
    },
  ],
  jwt: [
    {
      promise: 'takes a key set',
      config: { jwks_url: 'https://example.com/keys', issuer: 'https://example.com' },
    },
    { promise: 'needs a key', config: { issuer: 'https://example.com' }, invalidAt: 'config' },
    { promise: 'takes one key', config: { secret: 's', public_key: 'k' }, invalidAt: 'config' },
    { promise: 'never allows none', config: { secret: 's', algorithms: ['none'] }, invalidAt: 'config.algorithms.0' },
    {
      promise: 'takes no symmetric algorithm with a public key',
      config: { public_key: 'k', algorithms: ['RS256', 'HS256'] },
      invalidAt: 'config',
    },
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
      invalidAt: 'config.verifications.0.format',
    },
    {
      promise: 'rejects a digest that anyone can compute',
      config: {
        verifications: [
          { format: 'bearer', config: { token: 'a' } },
          { format: 'hash', config: PARTS },
        ],
      },
      invalidAt: '',
    },
  ],
  all_of: [
    { promise: 'combines others', config: { verifications: [{ format: 'bearer', config: { token: 'a' } }] } },
    {
      promise: 'takes a plain digest beside something with a secret',
      config: {
        verifications: [
          { format: 'bearer', config: { token: 'a' } },
          { format: 'hash', config: PARTS },
        ],
      },
    },
    {
      promise: 'rejects a digest that anyone can compute',
      config: { verifications: [{ format: 'hash', config: PARTS }] },
      invalidAt: '',
    },
  ],
  none: [{ promise: 'needs nothing' }],
}
