import { explainSignature } from '../../../src/engine/formats/index.ts'
import { KIB, MIB, never, type Reader, repeated } from './reader.ts'

const NOW = new Date('2026-01-02T03:04:05Z')
const KEYS = { read: async () => ({ kind: 'invalid', reason: 'no key' }) } as never
const NO_VALUES = { account: { context: {}, credentials: {}, environmentVariables: {} }, call: {} }
const CHOICE = {
  format: 'hmac',
  config: {
    secret: 'known to the sender',
    parts: ['$url', '$header.x-timestamp', '$body', ['$form.a']],
    compare_with: '$header.x-signature',
    timestamp: { value: '$header.x-timestamp' },
  },
}

function explain(body: string, signature: string, url = 'https://hooks.example.com/1') {
  const headers = { 'x-signature': signature, 'x-timestamp': '1767323045' }
  const delivery = { method: 'POST', url, headers, query: {}, body: Buffer.from(body), payload: null }
  return explainSignature(CHOICE, delivery, NO_VALUES, { now: () => NOW, keys: KEYS })
}

/** Readers of rejected webhooks. */
export const SIGNATURE_READERS: readonly Reader[] = [
  {
    name: 'body of a rejected webhook',
    covers: ['engine/formats/signature/explain.ts#explainSignature'],
    lengthMax: MIB,
    read: (input) => explain(input, '00'),
    rejects: never,
    seeds: ['{"a":1}', ' [1, 2]\r\n', 'a=b&c=d', ''],
    attacks: {
      letters: repeated('a'),
      blanks: repeated(' ', '', 'x'),
      'line breaks': repeated('\r\n', '{', '}'),
      'open JSON': repeated('['),
      'texts to escape': repeated('"é/",', '[', '0]'),
      fields: repeated('a=b&'),
    },
  },
  {
    name: 'signature and address of a rejected webhook',
    covers: [],
    lengthMax: 16 * KIB,
    read: (input) => explain('{}', input, `https://hooks.example.com/${input}`),
    rejects: never,
    seeds: ['sha256=00ff', 'v1,AA==', '?a=b'],
    attacks: { slashes: repeated('/'), questions: repeated('?'), colons: repeated(':1'), equals: repeated('=') },
  },
]
