import { parseRequest, type RawRequest } from '../../../src/webhooks/inbound/parsed-request.ts'
import { bytes, KIB, MIB, never, numbered, type Reader, repeated } from './reader.ts'

function parse(type: string, body: Uint8Array, more: Partial<RawRequest> = {}) {
  const request = {
    method: 'POST',
    path: '/hook',
    query: '',
    headers: [['content-type', type]] as const,
    body,
    ...more,
  }
  return parseRequest(
    request,
    'https://hooks.example.com',
    { owner: 'one' },
    { bodyBytesMax: 1_048_576, formJsonField: undefined },
  )
}

/** Readers of webhooks before their signature is verified. */
export const INBOUND_READERS: readonly Reader[] = [
  {
    name: 'form of a webhook',
    covers: [
      'webhooks/inbound/parsed-request.ts#parseHead',
      'webhooks/inbound/parsed-request.ts#parseBodyOf',
      'webhooks/inbound/parsed-request.ts#decodeBodyOf',
      'webhooks/inbound/parsed-request.ts#parseRequest',
      'foundation/base/url-encoded-form.ts#parseFormFields',
      'engine/formats/form.ts#readForm',
    ],
    lengthMax: MIB,
    read: (input) => parse('application/x-www-form-urlencoded', bytes(input)),
    rejects: never,
    seeds: ['a=1&b=%20x&a=2', ''],
    attacks: {
      fields: repeated('a&'),
      'different fields': numbered((index) => `${index.toString(36)}=1&`),
      separators: repeated('&'),
      letters: repeated('a'),
      percents: repeated('%41'),
      'broken percents': repeated('%'),
    },
  },
  {
    name: 'form of a webhook in another charset',
    covers: [],
    lengthMax: MIB,
    read: (input) => parse('application/x-www-form-urlencoded; charset=windows-1252', bytes(input)),
    rejects: never,
    seeds: ['a=1&b=%EB&a=2', ''],
    attacks: {
      'different fields': numbered((index) => `${index.toString(36)}=1&`),
      percents: repeated('%EB'),
      'broken percents': repeated('%'),
      pluses: repeated('+'),
    },
  },
  {
    name: 'multipart of a webhook',
    covers: ['engine/formats/multipart.ts#readMultipart'],
    lengthMax: MIB,
    read: (input) => parse('multipart/form-data; boundary=b', bytes(input)),
    rejects: never,
    seeds: ['--b\r\ncontent-disposition: form-data; name="a"\r\n\r\n1\r\n--b--\r\n', '--b'],
    attacks: {
      parts: repeated('--b\r\ncontent-disposition: form-data; name="a"\r\n\r\n1\r\n'),
      boundaries: repeated('--b\r\n'),
      headers: repeated('x: y\r\n', '--b\r\n'),
      dashes: repeated('\r\n--'),
    },
  },
  {
    name: 'JSON of a webhook',
    covers: ['engine/formats/response/charset.ts#decodeJsonText', 'engine/formats/response/charset.ts#decodeAnyText'],
    lengthMax: MIB,
    read: (input) => parse('application/json', bytes(input)),
    rejects: never,
    isOffLoop: true,
    seeds: ['{"a":[1,"b"]}', 'no JSON'],
    attacks: { lists: repeated('['), numbers: repeated('1,', '[', '1]'), texts: repeated('"a",', '[', '1]') },
  },
  {
    name: 'query of a webhook',
    covers: [],
    lengthMax: 16 * KIB,
    read: (query) => parse('text/plain', Buffer.from('a'), { query }),
    rejects: never,
    seeds: ['validationToken=a%20b', 'a=1&a=2'],
    attacks: { fields: repeated('a&'), percents: repeated('%41') },
  },
]
