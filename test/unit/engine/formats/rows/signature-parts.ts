import { createHash, createHmac } from 'node:crypto'
import type { JsonObject } from '../../../../../src/foundation/json/index.ts'
import { SECONDS, type SignatureRow } from './delivery.ts'
import type { SignatureConfigRow } from './signature-config.ts'

const SECRET = 'shared secret'
const BODY = '{"a":1}'
const ADDRESS = 'https://hooks.example.com:8443/x?b=c'
const env = { SECRET }
const KEY = { secret: '{{env.SECRET}}', compare_with: '$header.x-signature' }

const mac = (content: string, key: string | Uint8Array = SECRET) =>
  createHmac('sha256', key).update(content).digest('hex')

/** A delivery whose signature is over `content`. */
function signing(content: string, settings: JsonObject): Omit<SignatureRow, 'promise'> {
  return { config: { ...KEY, ...settings }, env, headers: { 'x-signature': mac(content) }, body: BODY }
}

const sentTwice = { ...signing(BODY, { parts: ['$body'] }), headers: { 'x-other': 'x', 'x-signature': mac(BODY) } }
const twoPlaces = { ...KEY, parts: ['$body'], compare_with: ['$header.x-other', '$header.x-signature'] }
const optional = { parts: ['$payload.a', ['$payload.b'], ['/c/', '$payload.c']], separator: ':' }
const ITEMS = { secret: '{{env.SECRET}}', items: 'list', parts: ['$item.id'], compare_with: '$item.mac' }
const item = (id: string, signed = id) => ({ id, mac: mac(signed) })
const clerkSecret = Buffer.from('a secret of at least 24 bytes')
const clerkHeaders = {
  'svix-id': 'msg_1',
  'svix-timestamp': SECONDS,
  'svix-signature': `v1,${createHmac('sha256', clerkSecret).update(`msg_1.${SECONDS}.${BODY}`).digest('base64')}`,
}
const clerk = {
  config: { secret: '{{env.SECRET}}' },
  env: { SECRET: `whsec_${clerkSecret.toString('base64')}` },
  headers: clerkHeaders,
  body: BODY,
}

/** Rows of parts, places of signatures, secrets and lists, beside those of each format. */
export const PART_ROWS: Readonly<Record<string, readonly SignatureRow[]>> = {
  hmac: [
    {
      promise: 'knows a signature in one of several headers',
      ...sentTwice,
      config: twoPlaces,
      hasSpare: true,
    },
    {
      promise: 'takes the place that is there',
      ...sentTwice,
      config: twoPlaces,
      headers: { 'x-signature': mac(BODY) },
    },
    {
      promise: 'rejects without a signature in any place',
      ...sentTwice,
      config: twoPlaces,
      headers: {},
      reason: 'the header x-other is missing',
    },
    {
      promise: 'takes the text before a token as the prefix of the signature',
      ...signing(BODY, { parts: ['$body'], compare_with: 'v0=$header.x-signature' }),
      headers: { 'x-signature': `v0=${mac(BODY)}` },
    },
    {
      promise: 'signs a text with several tokens',
      ...signing(`v0:${SECONDS}:${BODY}.POST`, {
        parts: ['v0:$header.x-time:$body.$method'],
        timestamp: { value: '$header.x-time' },
      }),
      headers: { 'x-time': SECONDS, 'x-signature': mac(`v0:${SECONDS}:${BODY}.POST`) },
      proves: ['body', 'method'],
      window: 300,
    },
    { promise: 'signs the path alone', ...signing('/x', { parts: ['$path'] }), url: ADDRESS, proves: [] },
    {
      promise: 'signs the address with the port of its scheme',
      ...signing('https://a.example:443/x', { parts: ['$url.with_port'] }),
      url: 'https://a.example/x',
      proves: ['url'],
    },
    {
      promise: 'signs the address without its port',
      ...signing(ADDRESS.replace(':8443', ''), { parts: ['$url.without_port'] }),
      url: ADDRESS,
      proves: [],
    },
    {
      promise: 'signs a field of a form',
      ...signing('b c', { parts: ['$form.a'] }),
      body: 'a=b+c',
      proves: [],
    },
    {
      promise: 'rejects a form without the field',
      ...signing('', { parts: ['$form.a'] }),
      body: 'b=c',
      reason: 'the form has no field a',
    },
    {
      promise: 'rejects a form that has the field twice',
      ...signing('b', { parts: ['$form.a'] }),
      body: 'a=b&a=c',
      reason: 'more than once',
    },
    ...['$form.a', '$form.sorted'].map((part) => ({
      promise: `rejects a form with too many fields for ${part}`,
      ...signing('', { parts: [part] }),
      body: 'a=b&'.repeat(10_000),
      reason: 'more than 10000 fields',
    })),
    {
      promise: 'leaves out groups without a value, and keeps the separators',
      ...signing('1::', optional),
      payload: { a: '1' },
      proves: ['payload'],
    },
    {
      promise: 'signs groups with a value',
      ...signing('1:2:/c/3', optional),
      payload: { a: '1', b: '2', c: '3' },
      proves: ['payload'],
    },
    {
      promise: 'verifies every entry of a list',
      config: ITEMS,
      env,
      payload: { list: [item('1'), item('2')] },
      proves: ['payload'],
    },
    {
      promise: 'rejects a list with one forged entry',
      config: ITEMS,
      env,
      payload: { list: [item('1'), item('2', '3')] },
      reason: 'does not match',
    },
    {
      promise: 'rejects an empty list',
      config: ITEMS,
      env,
      payload: { list: [] },
      reason: 'no list with entries at list',
    },
    { promise: 'rejects a payload without the list', config: ITEMS, env, payload: {}, reason: 'no list with entries' },
    {
      promise: 'rejects a list that is too long',
      config: ITEMS,
      env,
      payload: { list: Array.from({ length: 1001 }, () => item('1')) },
      reason: 'more than 1000 entries',
    },
    {
      promise: 'takes the digest of the secret as the key',
      ...signing(BODY, { parts: ['$body'], secret_hash: 'sha256' }),
      headers: { 'x-signature': mac(BODY, createHash('sha256').update(SECRET).digest()) },
    },
    {
      promise: 'takes the secret without its prefix',
      ...signing(BODY, { parts: ['$body'], secret_prefix: 'whsec_' }),
      env: { SECRET: `whsec_${SECRET}` },
    },
    {
      promise: 'rejects a secret that is only its prefix',
      ...signing(BODY, { parts: ['$body'], secret_prefix: 'whsec_' }),
      env: { SECRET: 'whsec_' },
      reason: 'the secret is empty',
    },
    {
      promise: 'knows sha384',
      ...signing(BODY, { parts: ['$body'], algorithm: 'sha384' }),
      headers: { 'x-signature': createHmac('sha384', SECRET).update(BODY).digest('hex') },
    },
  ],
  clerk: [
    { promise: 'knows the headers of Svix', ...clerk, window: 300 },
    {
      promise: 'rejects the headers of Standard Webhooks',
      ...clerk,
      headers: {
        'webhook-id': 'msg_1',
        'webhook-timestamp': SECONDS,
        'webhook-signature': clerkHeaders['svix-signature'],
      },
      reason: 'svix-timestamp is missing',
    },
  ],
  compare: [
    {
      promise: 'compares every entry of a list',
      config: { secret: '{{env.SECRET}}', items: 'list', compare_with: '$item.token' },
      env,
      payload: { list: [{ token: SECRET }, { token: SECRET }] },
      proves: ['payload'],
    },
  ],
}

/** Rows of their configs. */
export const PART_CONFIG_ROWS: Readonly<Record<string, readonly SignatureConfigRow[]>> = {
  hmac: [
    {
      promise: 'takes groups, places and tokens in a text',
      config: {
        ...KEY,
        parts: ['v0:$header.x-time:$body', ['/', '$payload.a']],
        compare_with: ['v0=$header.a', '$header.b[v1]'],
        timestamp: { value: '$header.x-time' },
      },
    },
    {
      promise: 'takes no placeholder in a group, which could leave a secret out',
      config: { ...KEY, parts: ['$body', ['{{env.SECRET}}']] },
      invalidAt: 'config.parts.1.0',
    },
    {
      promise: 'takes no timestamp in a group, which could leave it out',
      config: { ...KEY, parts: ['$body', ['$header.x-time']], timestamp: { value: '$header.x-time' } },
      invalidAt: 'config',
    },
    {
      promise: 'takes no placeholder before the signature',
      config: { ...KEY, parts: ['$body'], compare_with: '{{env.A}}$header.x' },
      invalidAt: 'config.compare_with',
    },
    {
      promise: 'knows the tokens within a text',
      config: { ...KEY, parts: ['$header.x:$bodi'] },
      invalidAt: 'config.parts.0',
    },
    {
      promise: 'takes one place at least',
      config: { ...KEY, parts: ['$body'], compare_with: [] },
      invalidAt: 'config.compare_with',
    },
  ],
  hash: [
    {
      promise: 'rejects a secret that may be left out',
      config: { parts: ['$body', ['{{env.SECRET}}']], compare_with: '$header.x' },
      invalidAt: 'config.parts.1.0',
    },
  ],
  clerk: [{ promise: 'takes a secret', config: { secret: '{{env.SECRET}}' } }],
}
