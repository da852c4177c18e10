import { createHash, createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import type { Json } from '../../../../../src/foundation/json/index.ts'
import { CERTIFICATE, CERTIFIED } from './certificate.ts'
import { MILLISECONDS, NOW, SECONDS, type SignatureRow } from './delivery.ts'
import { JWT_ROWS } from './signature-jwt.ts'

const PARTS = { parts: ['$header.x-timestamp', '.', '$body'], compare_with: '$header.x-signature' }
const KEY = { secret: '{{env.SECRET}}' }

const SECRET = 'shared secret'
const BODY = '{"a":1}'
const env = { SECRET }

const mac = (content: string | Uint8Array, encoding: 'hex' | 'base64' | 'base64url' = 'hex', algorithm = 'sha256') =>
  createHmac(algorithm, SECRET).update(content).digest(encoding)

/** What most senders do: the body signed, the signature in a header. */
const simple = {
  config: { ...KEY, parts: ['$body'], compare_with: '$header.x-signature' },
  env,
  headers: { 'x-signature': mac(BODY) },
  body: BODY,
}
/** The same with a time of sending. */
const timed = {
  config: { ...KEY, ...PARTS, timestamp: { value: '$header.x-timestamp' } },
  env,
  headers: { 'x-timestamp': SECONDS, 'x-signature': mac(`${SECONDS}.${BODY}`) },
  body: BODY,
}
const withTime = (time: string) => ({ 'x-timestamp': time, 'x-signature': mac(`${time}.${BODY}`) })
const withUnit = (unit: string) => ({ ...timed.config, timestamp: { ...timed.config.timestamp, unit } })

const standard = new Webhook(Buffer.from('a secret of at least 24 bytes').toString('base64'))
const STANDARD_ENV = { SECRET: `whsec_${Buffer.from('a secret of at least 24 bytes').toString('base64')}` }
const standardHeaders = (id = 'msg_1') => ({
  'webhook-id': id,
  'webhook-timestamp': SECONDS,
  'webhook-signature': standard.sign(id, new Date(NOW), BODY),
})

const ed25519 = generateKeyPairSync('ed25519')
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const weak = generateKeyPairSync('rsa', { modulusLength: 1024 })
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const pem = (key: typeof rsa.publicKey) => key.export({ type: 'spki', format: 'pem' }).toString()

const signedBy = (algorithm: string, key: typeof rsa.publicKey, signature: Buffer) => ({
  config: {
    algorithm,
    public_key: '{{env.KEY}}',
    parts: ['$body'],
    compare_with: '$header.x-signature',
  },
  env: { KEY: pem(key) },
  headers: { 'x-signature': signature.toString('base64') },
  body: BODY,
})
const certified = {
  config: {
    algorithm: 'rsa-sha256',
    certificate_url: '$header.x-cert-url',
    certificate_host: 'api.example.com',
    certificate_path: '^/certs?(-[0-9a-f]+)?$',
    parts: ['$header.x-id', '$header.x-time', CERTIFIED.webhookId, '$body.crc32'],
    separator: '|',
    compare_with: '$header.x-signature',
  },
  headers: {
    'x-id': CERTIFIED.id,
    'x-time': CERTIFIED.time,
    'x-signature': CERTIFIED.signature,
    'x-cert-url': 'https://api.example.com/cert',
  },
  body: CERTIFIED.body,
  now: CERTIFIED.time,
  documents: { 'https://api.example.com/cert': CERTIFICATE },
}
const certificateAt = (url: string) => ({ ...certified.headers, 'x-cert-url': url })

const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` })
const byBasic = { config: { username: 'user', password: '{{env.SECRET}}' }, env, proves: [] }
const byBearer = { config: { token: '{{env.TOKEN}}' }, env: { TOKEN: 'tok-en' }, proves: [] }
const byCompare = {
  config: { ...KEY, compare_with: '$payload.value[0].clientState' },
  env,
  proves: ['payload'],
} as const

const single = (format: string, config: Json) => ({ format, config })
const current = single('hmac', { ...simple.config, secret: '{{env.NEW}}' })
const previous = single('hmac', { ...simple.config, secret: '{{env.OLD}}' })

export const SIGNATURE_ROWS: Readonly<Record<string, readonly SignatureRow[]>> = {
  hmac: [
    { promise: 'knows a signed body', ...simple },
    {
      promise: 'signs bytes, not what they would be as text',
      ...simple,
      body: Uint8Array.of(0, 255, 128, 13, 10),
      headers: { 'x-signature': mac(Uint8Array.of(0, 255, 128, 13, 10)) },
    },
    { promise: 'signs an empty body too', ...simple, body: '', headers: { 'x-signature': mac('') }, proves: [] },
    { promise: 'knows a time in seconds', ...timed, window: 300 },
    {
      promise: 'knows a time in milliseconds',
      ...timed,
      config: withUnit('milliseconds'),
      headers: withTime(MILLISECONDS),
      window: 300,
    },
    {
      promise: 'knows a time with an offset',
      ...timed,
      config: withUnit('iso'),
      headers: withTime('2026-01-01T02:00:00.000+02:00'),
      window: 300,
    },
    {
      promise: 'keeps to its tolerance',
      ...timed,
      config: { ...timed.config, timestamp: { value: '$header.x-timestamp', tolerance_seconds: 5 } },
      window: 5,
    },
    {
      promise: 'reads base64',
      ...simple,
      config: { ...simple.config, string_type: 'base64' },
      headers: { 'x-signature': mac(BODY, 'base64') },
    },
    {
      promise: 'reads base64url with other algorithms',
      ...simple,
      config: { ...simple.config, string_type: 'base64url', algorithm: 'sha512' },
      headers: { 'x-signature': mac(BODY, 'base64url', 'sha512') },
    },
    {
      promise: 'reads hexadecimal in capitals',
      ...simple,
      headers: { 'x-signature': mac(BODY).toUpperCase() },
    },
    {
      promise: 'takes a secret written in base64',
      ...simple,
      config: { ...simple.config, secret_encoding: 'base64' },
      env: { SECRET: Buffer.from(SECRET).toString('base64') },
    },
    {
      promise: 'takes any of several signatures in one header',
      ...simple,
      config: { ...simple.config, compare_with: '$header.x-signature[v1]' },
      headers: { 'x-signature': `v0=00, v1=${mac('other')}, v1=${mac(BODY)}` },
      hasSpare: true,
    },
    {
      promise: 'signs query parameters, values of the payload and the method',
      config: {
        ...KEY,
        parts: ['$method', '$query.a', '$payload.b.c', '{{env.SUFFIX}}'],
        separator: '\n',
        compare_with: '$query.sig',
      },
      env: { ...env, SUFFIX: 'end' },
      method: 'PUT',
      query: { a: 'x y', sig: mac('PUT\nx y\n7\nend') },
      payload: { b: { c: '7' } },
      proves: ['method', 'query', 'payload'],
    },
    { promise: 'rejects without the signature', ...simple, headers: {}, reason: 'the header x-signature is missing' },
    {
      promise: 'rejects an empty signature',
      ...simple,
      headers: { 'x-signature': '' },
      reason: 'x-signature is missing',
    },
    { promise: 'rejects another secret', ...simple, env: { SECRET: 'other' }, reason: 'the signature does not match' },
    { promise: 'rejects an empty secret', ...simple, env: { SECRET: '' }, reason: 'the secret is empty' },
    { promise: 'rejects an unknown secret', ...simple, env: {}, reason: '{{env.SECRET}} has no value' },
    {
      promise: 'rejects a signature over nothing with an empty secret',
      ...simple,
      env: { SECRET: '=' },
      config: { ...simple.config, secret_encoding: 'base64' },
      headers: { 'x-signature': createHmac('sha256', '').update(BODY).digest('hex') },
      reason: 'the secret is not base64',
    },
    {
      promise: 'rejects a secret that is not in its encoding',
      ...simple,
      config: { ...simple.config, secret_encoding: 'hex' },
      reason: 'the secret is not hex',
    },
    {
      promise: 'rejects a signature without its prefix',
      ...simple,
      config: { ...simple.config, signature_prefix: 'sha256=' },
      reason: 'does not start with sha256=',
    },
    {
      promise: 'rejects the signature sent twice',
      ...simple,
      headers: { 'x-signature': `${mac(BODY)}, ${mac(BODY)}` },
      reason: 'does not match',
    },
    {
      promise: 'rejects a longer signature',
      ...simple,
      headers: { 'x-signature': `${mac(BODY)}zz` },
      reason: 'does not match',
    },
    {
      promise: 'rejects a field that is not there',
      ...simple,
      config: { ...simple.config, compare_with: '$header.x-signature[v1]' },
      reason: 'has no field v1',
    },
    {
      promise: 'rejects to choose between two times',
      ...timed,
      config: {
        ...KEY,
        parts: ['$header.x-signature[t]', '$body'],
        compare_with: '$header.x-signature[v]',
        timestamp: { value: '$header.x-signature[t]' },
      },
      headers: { 'x-signature': `t=${SECONDS},t=1,v=${mac(SECONDS + BODY)}` },
      reason: 'more than once',
    },
    {
      promise: 'rejects without the time',
      ...timed,
      headers: { 'x-signature': mac(`.${BODY}`) },
      reason: 'x-timestamp is missing',
    },
    { promise: 'rejects a text that is not a time', ...timed, headers: withTime('soon'), reason: 'not a time' },
    { promise: 'rejects a time with a sign', ...timed, headers: withTime(`+${SECONDS}`), reason: 'not a time' },
    { promise: 'rejects a time in another unit', ...timed, headers: withTime(MILLISECONDS), reason: '300 seconds off' },
    {
      promise: 'rejects a date without a time zone',
      ...timed,
      config: withUnit('iso'),
      headers: withTime('2026-01-01T00:00:00'),
      reason: 'not a time',
    },
    {
      promise: 'rejects a signed parameter that is missing',
      ...simple,
      config: { ...simple.config, parts: ['$query.a'] },
      reason: 'the query parameter a is missing',
    },
    {
      promise: 'rejects a signed value that is no text',
      ...simple,
      config: { ...simple.config, parts: ['$payload.a.b'] },
      reason: 'the payload has no text at a.b',
    },
    {
      promise: 'takes no header from the prototype of all objects',
      ...simple,
      config: { ...simple.config, parts: ['$header.constructor'] },
      reason: 'the header constructor is missing',
    },
    {
      promise: 'rejects a part that has no value',
      ...simple,
      config: { ...simple.config, parts: ['{{env.NOTHING}}', '$body'] },
      reason: '{{env.NOTHING}} has no value',
    },
  ],
  hash: [
    {
      promise: 'knows a digest with the secret in front',
      config: { parts: ['{{env.SECRET}}', '$body'], compare_with: '$header.x-signature', algorithm: 'sha1' },
      env,
      headers: {
        'x-signature': createHash('sha1')
          .update(SECRET + BODY)
          .digest('hex'),
      },
      body: BODY,
    },
    {
      promise: 'rejects an empty secret',
      config: { parts: ['{{env.SECRET}}', '$body'], compare_with: '$header.x-signature' },
      env: { SECRET: '' },
      headers: { 'x-signature': createHash('sha256').update(BODY).digest('hex') },
      body: BODY,
      reason: 'is empty',
    },
  ],
  asymmetric: [
    {
      promise: 'knows RSA',
      ...signedBy('rsa-sha256', rsa.publicKey, sign('sha256', Buffer.from(BODY), rsa.privateKey)),
    },
    {
      promise: 'knows RSA with SHA-512',
      ...signedBy('rsa-sha512', rsa.publicKey, sign('sha512', Buffer.from(BODY), rsa.privateKey)),
    },
    {
      promise: 'knows RSA-PSS',
      ...signedBy(
        'rsa-pss-sha256',
        rsa.publicKey,
        sign('sha256', Buffer.from(BODY), { key: rsa.privateKey, padding: 6, saltLength: 32 }),
      ),
    },
    {
      promise: 'knows ECDSA',
      ...signedBy('ecdsa-sha256', p256.publicKey, sign('sha256', Buffer.from(BODY), p256.privateKey)),
    },
    {
      promise: 'knows Ed25519',
      ...signedBy('ed25519', ed25519.publicKey, sign(null, Buffer.from(BODY), ed25519.privateKey)),
    },
    {
      promise: 'takes a PEM on one line',
      ...signedBy('ed25519', ed25519.publicKey, sign(null, Buffer.from(BODY), ed25519.privateKey)),
      env: { KEY: pem(ed25519.publicKey).replaceAll('\n', '\\n') },
    },
    { promise: 'takes the key of a certificate', ...certified },
    {
      promise: 'rejects a key of another kind',
      ...signedBy('rsa-sha256', ed25519.publicKey, sign(null, Buffer.from(BODY), ed25519.privateKey)),
      reason: 'not one for rsa-sha256',
    },
    {
      promise: 'rejects a weak key',
      ...signedBy('rsa-sha256', weak.publicKey, sign('sha256', Buffer.from(BODY), weak.privateKey)),
      reason: 'too weak',
    },
    {
      promise: 'rejects what is no key',
      ...signedBy('ed25519', ed25519.publicKey, sign(null, Buffer.from(BODY), ed25519.privateKey)),
      env: { KEY: 'AAAA' },
      reason: 'not readable',
    },
    {
      promise: 'rejects a signature followed by other characters',
      ...signedBy('ed25519', ed25519.publicKey, sign(null, Buffer.from(BODY), ed25519.privateKey)),
      headers: { 'x-signature': `${sign(null, Buffer.from(BODY), ed25519.privateKey).toString('base64')}!` },
      reason: 'does not match',
    },
    ...[
      'http://api.example.com/cert',
      'https://api.example.com.evil.example/cert',
      'https://evil.example/https://api.example.com/cert',
      'https://user@api.example.com/cert',
      'https://api.example.com@evil.example/cert',
      'https://api.example.com:8443/cert',
      'nonsense',
    ].map((url) => ({
      promise: `rejects a certificate from ${url}`,
      ...certified,
      headers: certificateAt(url),
      documents: { [url]: CERTIFICATE },
      reason: 'not on https://api.example.com',
    })),
    ...[
      '/objects/mine',
      '/cert/../objects',
      '/cert?name=mine',
      '/cert?',
      '/cert#x',
      '/x/cert',
      '/cert/x',
      '/%63ert',
    ].map((path) => ({
      promise: `rejects a certificate of the host at ${path}`,
      ...certified,
      headers: certificateAt(`https://api.example.com${path}`),
      documents: { [`https://api.example.com${path}`]: CERTIFICATE },
      reason: 'does not match certificate_path',
    })),
    ...[
      `{"text":"\n${CERTIFICATE}\n"}`,
      `\n${CERTIFICATE}`,
      `${CERTIFICATE}x`,
      `x${CERTIFICATE}`,
      `subject=CN\n${CERTIFICATE}`,
      `${CERTIFICATE}text\n${CERTIFICATE}`,
    ].map((document, index) => ({
      promise: `rejects a document that has a certificate and other text, form ${index + 1}`,
      ...certified,
      documents: { 'https://api.example.com/cert': document },
      reason: 'not a PEM certificate',
    })),
    {
      promise: 'takes the first certificate of a chain',
      ...certified,
      documents: { 'https://api.example.com/cert': CERTIFICATE + CERTIFICATE },
    },
    {
      promise: 'rejects a certificate before its time',
      ...certified,
      now: '2026-01-01T00:00:00Z',
      reason: 'not valid at this time',
    },
    {
      promise: 'rejects what is no certificate',
      ...certified,
      documents: {
        'https://api.example.com/cert': '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
      },
      reason: 'not readable',
    },
    { promise: 'rejects an address without a certificate', ...certified, documents: {}, reason: 'answered 404' },
  ],
  jwt: JWT_ROWS,
  basic: [
    { promise: 'knows the pair', ...byBasic, headers: basic(`user:${SECRET}`) },
    { promise: 'takes a password with a colon', ...byBasic, env: { SECRET: 'a:b' }, headers: basic('user:a:b') },
    { promise: 'rejects another name', ...byBasic, headers: basic(`root:${SECRET}`), reason: 'does not match' },
    {
      promise: 'rejects an empty password',
      ...byBasic,
      env: { SECRET: '' },
      headers: basic('user:'),
      reason: 'the password is empty',
    },
    {
      promise: 'rejects another scheme',
      ...byBasic,
      headers: { authorization: 'Bearer x' },
      reason: 'no basic credentials',
    },
  ],
  bearer: [
    { promise: 'knows the token', ...byBearer, headers: { authorization: 'Bearer tok-en' } },
    {
      promise: 'rejects a part of it',
      ...byBearer,
      headers: { authorization: 'Bearer tok' },
      reason: 'does not match',
    },
    {
      promise: 'rejects an empty one',
      ...byBearer,
      env: { TOKEN: '' },
      headers: { authorization: 'Bearer ' },
      reason: 'is empty',
    },
    { promise: 'rejects none', ...byBearer, reason: 'no bearer token' },
  ],
  compare: [
    { promise: 'finds the secret in the payload', ...byCompare, payload: { value: [{ clientState: SECRET }] } },
    { promise: 'rejects another', ...byCompare, payload: { value: [{ clientState: 'x' }] }, reason: 'does not match' },
    { promise: 'rejects none', ...byCompare, payload: { value: [] }, reason: 'no text at value[0].clientState' },
    { promise: 'rejects an object', ...byCompare, payload: { value: [{ clientState: {} }] }, reason: 'no text at' },
  ],
  standard_webhooks: [
    {
      promise: 'knows what the library of the scheme signs',
      config: KEY,
      env: STANDARD_ENV,
      headers: standardHeaders(),
      body: BODY,
      window: 300,
    },
    {
      promise: 'takes any of several signatures, others beside it',
      config: KEY,
      env: STANDARD_ENV,
      headers: {
        ...standardHeaders(),
        'webhook-signature': `v1a,AAAA v1,${mac('other', 'base64')} ${standardHeaders()['webhook-signature']}`,
      },
      body: BODY,
      hasSpare: true,
    },
    {
      promise: 'rejects the signature of another version',
      config: KEY,
      env: STANDARD_ENV,
      headers: {
        ...standardHeaders(),
        'webhook-signature': standardHeaders()['webhook-signature'].replace('v1,', 'v2,'),
      },
      body: BODY,
      reason: 'does not match',
    },
    {
      promise: 'rejects an id that could be read differently',
      config: KEY,
      env: STANDARD_ENV,
      headers: standardHeaders('msg.1'),
      body: BODY,
      reason: 'the id of the message',
    },
    {
      promise: 'rejects a secret that is only its prefix',
      config: KEY,
      env: { SECRET: 'whsec_' },
      headers: standardHeaders(),
      body: BODY,
      reason: 'the secret is empty',
    },
  ],
  any_of: [
    {
      promise: 'takes the new secret',
      ...simple,
      config: { verifications: [previous, current] },
      env: { NEW: SECRET, OLD: 'old' },
      hasSpare: true,
    },
    {
      promise: 'takes the old one too',
      ...simple,
      config: { verifications: [previous, current] },
      env: { NEW: 'new', OLD: SECRET },
      hasSpare: true,
    },
    {
      promise: 'rejects with all reasons',
      ...simple,
      config: { verifications: [previous, current] },
      env: { NEW: 'new', OLD: '' },
      reason: 'the secret is empty; the signature does not match',
    },
  ],
  all_of: [
    {
      promise: 'wants everything',
      ...simple,
      config: { verifications: [single('hmac', simple.config), single('bearer', { token: '{{env.TOKEN}}' })] },
      env: { ...env, TOKEN: 't' },
      headers: { ...simple.headers, authorization: 'Bearer t' },
    },
    {
      promise: 'rejects when one is missing',
      ...simple,
      config: { verifications: [single('hmac', simple.config), single('bearer', { token: '{{env.TOKEN}}' })] },
      env: { ...env, TOKEN: 't' },
      reason: 'no bearer token',
    },
  ],
  none: [{ promise: 'takes everything', hasSpare: true, proves: [] }],
}
