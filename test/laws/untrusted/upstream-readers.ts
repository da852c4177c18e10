import { isDeepStrictEqual } from 'node:util'
import { findPatternProblem } from '../../../src/engine/formats/credential/field-pattern.ts'
import { FIELD_FORMATS, fieldList } from '../../../src/engine/formats/credential/fields.ts'
import { readRedirect, readRedirectContext } from '../../../src/engine/formats/credential/redirect.ts'
import { parseExpiry, tokenErrorFrom } from '../../../src/engine/formats/credential/token-response.ts'
import {
  collectFields,
  decodeLarge,
  isJsonType,
  parseLooseBody,
  responseFormat,
} from '../../../src/engine/formats/index.ts'
import { absoluteLink, findLink } from '../../../src/engine/formats/pagination/link-header.ts'
import type { ListingState } from '../../../src/engine/formats/pagination/listing.ts'
import { compilePagination } from '../../../src/engine/formats/pagination/registry.ts'
import { parseIsoDuration } from '../../../src/engine/formats/pagination/window.ts'
import { readPublicKey } from '../../../src/engine/formats/signature/public-key.ts'
import { compileSignature } from '../../../src/engine/formats/signature/registry.ts'
import { decodeExactly } from '../../../src/engine/formats/signature/secret.ts'
import { compileSource, decodeUrl } from '../../../src/engine/formats/signature/source.ts'
import { decodeCursor, encodeCursor } from '../../../src/engine/proxy/cursor.ts'
import { createSealer, parseTime } from '../../../src/foundation/base/index.ts'
import { parseRange } from '../../../src/foundation/egress/address.ts'
import {
  createEgressPolicy,
  DecodingError,
  decodeBody,
  findUrlViolation,
  parseRetryAfter,
} from '../../../src/foundation/egress/index.ts'
import { yieldToEventLoop } from '../../../src/foundation/fair/index.ts'
import { parseJson, parseJsonInSlices } from '../../../src/foundation/json/index.ts'
import { Redactor } from '../../../src/foundation/redaction/index.ts'
import { bytes, KIB, MIB, never, numbered, type Reader, repeated, withError, withFailure } from './reader.ts'

/** In one piece as in slices, from the text that UTF-8 gives. */
function isParsedAlike(input: string, result: unknown): boolean {
  return isDeepStrictEqual(parseJson(new TextDecoder().decode(bytes(input))), result)
}

const HEADER = 32 * KIB
const NOW = new Date('2026-01-02T03:04:05Z')
const URL_HERE = 'https://api.example.com/things'
const RECORD = '{"id":123456,"name":"some name","tags":["x","y"],"nested":{"a":1.5,"b":null}}'
const POLICY = createEgressPolicy({ allow: '' })

/** An answer's body in one format, at any size: large ones are not read in the event loop. */
function answer(
  format: string,
  lengthMax: number,
  covers: string[],
  rest: Pick<Reader, 'seeds' | 'attacks' | 'isFaithful'>,
): Reader {
  const read = (input: string) => decodeLarge(responseFormat(format), bytes(input), undefined, { owner: 'one' })
  return {
    name: `answer ${format}`,
    covers,
    lengthMax,
    read,
    rejects: withError,
    isOffLoop: format !== 'json',
    ...rest,
  }
}

const ANSWERS: readonly Reader[] = [
  answer(
    'json',
    16 * MIB,
    [
      'engine/formats/response/decode-large.ts#decodeLarge',
      'foundation/json/json-parse-sliced.ts#parseJsonInSlices',
      'foundation/json/json-parse.ts#parseJson',
      'foundation/json/json-parse.ts#parseScanned',
      'foundation/json/json-parse.ts#scanJson',
    ],
    {
      isFaithful: isParsedAlike,
      seeds: ['[1,{"a":[true,null,"x\\u0041"]}]', '{"a":{"b":[{}]}}', `[${RECORD}]`, '\ufeff[]'],
      attacks: {
        records: repeated(`${RECORD},`, '[', '1]'),
        objects: repeated('{},', '[', '1]'),
        keys: numbered((index) => `"k${index}":1,`, '{', '"z":1}'),
        nesting: repeated('['),
        closed: (length) => '['.repeat(length / 2) + ']'.repeat(length / 2),
        text: repeated('x', '"', '"'),
        backslashes: repeated('\\', '"'),
        quotes: repeated('"'),
        blanks: repeated(' ', '[', ']'),
        'exact numbers': repeated('12345678901234567890,', '[', '1]'),
        'one number': repeated('9'),
        'numbers in objects': repeated('{"a":1.10,"b":[-0]},', '[', '1]'),
      },
    },
  ),
  answer('text', 16 * MIB, ['engine/formats/response/charset.ts#decodeText'], {
    seeds: ['plain', '\xc3\xa9', '\xff\xfea\x00'],
    attacks: {
      letters: repeated('a'),
      'two bytes': repeated('\xc3\xa9'),
      'the other charset': repeated('a\x00', '\xff\xfe'),
    },
  }),
  answer('csv', 16 * MIB, ['engine/formats/response/csv.ts'], {
    seeds: ['a,b\n1,"x, ""y"""\n', 'a;a;b\r\n1;2;3', 'a\tb\n1'],
    attacks: {
      rows: repeated('1,some name\n', 'id,name\n'),
      'one name for every column': (length) =>
        `${'a,'.repeat(Math.min(8_000, length / 4))}a\n${'b,'.repeat(length / 4)}`,
      'short rows under many columns': (length) =>
        `${numbered((index) => `c${index},`)(Math.min(length / 2, 60_000))}z\n${'1\n'.repeat(Math.min(20_000, length / 4))}`,
      quotes: repeated('"'),
      'open quote': repeated('x\n', 'a\n"'),
    },
  }),
  answer(
    'xml',
    8 * MIB,
    [
      'engine/formats/response/xml.ts',
      'engine/formats/response/xml.ts#decodeXml',
      'engine/formats/response/xml.ts#boundXml',
    ],
    {
      seeds: [
        '<?xml version="1.0" encoding="utf-8"?><a b="c">x<d/>&amp;<![CDATA[y]]></a>',
        '<a><!-- c --><b>1</b><b>2</b></a>',
      ],
      attacks: {
        '<': repeated('<'),
        elements: repeated('<b c="d">x</b>', '<a>', '</a>'),
        'open elements': repeated('<a>'),
        entities: repeated('&amp;', '<a>', '</a>'),
        'open comments': repeated('<!--', '<a>'),
        'open CDATA': repeated('<![CDATA[', '<a>'),
        doctype: repeated('<!ENTITY a "b">', '<!DOCTYPE a [', ']><a/>'),
        attributes: numbered((index) => `a${index}="b" `, '<a ', '/>'),
        quotes: repeated('"', '<a b=', '>'),
        blanks: repeated(' ', '<a', '/>'),
      },
    },
  ),
  answer('ndjson', 16 * MIB, ['engine/formats/response/response.ts'], {
    seeds: [`${RECORD}\n${RECORD}\n`, '1\n\n2'],
    attacks: { records: repeated(`${RECORD}\n`), numbers: repeated('1\n'), blanks: repeated('\n') },
  }),
]

const HEADERS: readonly Reader[] = [
  {
    name: 'Link header',
    covers: ['engine/formats/pagination/link-header.ts#findLink'],
    lengthMax: HEADER,
    read: (input) => findLink(input, 'next', URL_HERE),
    rejects: withFailure,
    seeds: ['<https://a.example/?p=2>; rel="next", </x>; rel=last', '</a>;title="a\\"b, c;";rel="prev next"'],
    attacks: {
      '<': repeated('<'),
      'open quotes': repeated('<a>;a="'),
      semicolons: repeated(';', '<a>'),
      blanks: repeated(' ', '<a>', 'x'),
      parameters: repeated(';a', '<a>'),
      'blanks and parameters': repeated(' ;a ', '<a>'),
      backslashes: repeated('\\', '<a>;rel="'),
      links: repeated('<a>;rel=x,'),
    },
  },
  {
    name: 'next link',
    covers: ['engine/formats/pagination/link-header.ts#absoluteLink'],
    lengthMax: HEADER,
    read: (input) => absoluteLink(input, URL_HERE),
    rejects: withFailure,
    seeds: ['/a?b=c', 'https://a.example', '//x', '?p=2'],
    attacks: { dots: repeated('../'), slashes: repeated('/'), percents: repeated('%2e'), blanks: repeated(' ') },
  },
  {
    name: 'Retry-After',
    covers: ['foundation/egress/retry-hints.ts#parseRetryAfter'],
    lengthMax: HEADER,
    read: (input) => parseRetryAfter(input, NOW),
    rejects: never,
    seeds: ['120', '1.5', 'Wed, 21 Oct 2026 07:28:00 GMT', '1767323045'],
    attacks: { digits: repeated('1'), blanks: repeated(' ', '1', 'x'), date: repeated('('), dots: repeated('.') },
  },
  {
    name: 'content type',
    covers: ['engine/proxy/decode-response.ts#isJsonType'],
    lengthMax: HEADER,
    read: isJsonType,
    rejects: never,
    seeds: ['application/vnd.api+json; charset=utf-8', 'text/json'],
    attacks: {
      plus: repeated('+', 'application/'),
      letters: repeated('a', 'application/'),
      both: repeated('a+', 'text/'),
    },
  },
  {
    name: 'Content-Range',
    covers: ['engine/formats/pagination/range.ts'],
    lengthMax: HEADER,
    read: (input) => RANGE.paginator.total?.({ headers: { 'content-range': input } } as never),
    rejects: never,
    seeds: ['items 0-99/1234', 'items 0-99/*'],
    attacks: { digits: repeated('1'), ranges: repeated('1-1/'), blanks: repeated(' ', '0-1/2', 'x') },
  },
  {
    name: 'content encoding',
    covers: ['foundation/egress/content-decoding.ts#decodeBody', 'foundation/egress/content-decoding.ts#decodeContent'],
    lengthMax: HEADER,
    read: (input) => decodeBody(input, Buffer.from('x'), 100),
    rejects: (error) => error instanceof DecodingError,
    seeds: ['gzip', 'identity, br', 'GZIP ,deflate'],
    attacks: { commas: repeated(','), identities: repeated('identity,'), blanks: repeated(' ') },
  },
]

const SECRETS = ['sk_live_4eC39HqLyjWDarjtT1zdp7dc', 'p@ss "word" <and> more', 'aaaaaaaab', '1234']
const REDACTION = new Redactor(() => SECRETS)

const MESSAGES_OF_OTHERS: readonly Reader[] = [
  {
    name: 'message that may quote a secret',
    covers: [
      'foundation/redaction/redactor.ts#Redactor',
      'foundation/redaction/matcher.ts#createSecretMatcher',
      'foundation/redaction/encodings.ts#decodeLayers',
    ],
    lengthMax: 256 * KIB,
    read: (input) => REDACTION.redactText(input),
    rejects: never,
    isFaithful: (_input, text) => !SECRETS.some((secret) => String(text).includes(secret)),
    seeds: [
      'token sk_live_4eC39HqLyjWDarjtT1zdp7dc',
      'p%40ss%20%22word%22%20&lt;and&gt; more',
      'c2tfbGl2ZV80ZUMzOUhxTHlqV0Rh',
    ],
    attacks: {
      'nearly the secret': repeated('a'),
      'the secret': repeated('aaaaaaaab'),
      escapes: repeated('%25'),
      'escapes of escapes': repeated('\\u005c'),
      entities: repeated('&amp;'),
      'open entities': repeated('&#'),
      'short secrets': repeated('1234 '),
      base64: repeated('c2tfbGl2ZV80ZUMz'),
    },
  },
  {
    name: 'error body that may quote a secret',
    covers: [],
    lengthMax: MIB,
    read: async (input) => {
      const body = await parseJsonInSlices(input)
      await yieldToEventLoop()
      return REDACTION.redactJson(body)
    },
    rejects: withError,
    seeds: ['{"error":{"a":["sk_live_4eC39HqLyjWDarjtT1zdp7dc",1234,12345678901234567890]}}'],
    attacks: {
      texts: repeated('"aaaaaaaa",', '[', '1]'),
      numbers: repeated('1,', '[', '1]'),
      keys: numbered((index) => `"k${index}":1,`, '{', '"z":1}'),
      text: repeated('%25', '"', '"'),
      escapes: repeated(`"${'\\\\u005c'.repeat(1_000)}",`, '[', '1]'),
    },
  },
]

const RANGE = compilePagination({ format: 'range' })
const SEALER = createSealer([Buffer.alloc(32, 7)])
const LIST = { account: 'a' }
const RANGE_STATE = parseJson(
  '{"format":"range","position":{"from":5},"limit":null,"pages":1,"records":5,"empties":0,"loop":{"recent":[],"anchor":"","content":"","steps":0,"span":1}}',
) as unknown as ListingState

const REDIRECT = {
  codeParameter: 'code',
  isCodeEncoded: true,
  pendingWhen: { setup_action: 'request' },
  issuer: 'https://a.example',
  isIssuerRequired: false,
  hasCode: true,
}

const TOKENS: readonly Reader[] = [
  {
    name: 'token answer',
    covers: ['engine/formats/credential/token-response.ts#parseLooseBody'],
    lengthMax: MIB,
    read: (input) => tokenErrorFrom(parseLooseBody({ status: 400, headers: {}, body: input }), 'account', NOW),
    rejects: never,
    seeds: ['{"error":"invalid_grant","error_description":"x"}', 'error=access_denied&a=b', '<html>'],
    attacks: {
      json: repeated('{},', '[', '1]'),
      form: repeated('a=b&'),
      'many names': numbered((index) => `a${index}=b&`),
      blanks: repeated(' ', 'a', 'b'),
      letters: repeated('a'),
      equals: repeated('='),
    },
  },
  {
    name: 'redirect of a consent',
    covers: [
      'engine/formats/credential/redirect.ts#readRedirect',
      'engine/formats/credential/redirect.ts#readRedirectContext',
      'engine/formats/credential/redirect.ts#readRedirectError',
    ],
    lengthMax: 64 * KIB,
    read: (input) => {
      const params = Object.fromEntries(new URLSearchParams(input))
      const mapping = [{ key: 'realm_id', parameter: 'realmId', matches: () => true }]
      return [readRedirect(params, REDIRECT), readRedirectContext(params, mapping, 'code')]
    },
    rejects: never,
    seeds: ['code=a%2525b&state=s&iss=https%3A%2F%2Fa.example', 'error=access_denied&error_description=x', 'realmId=1'],
    attacks: {
      controls: repeated('%07', 'error=a&error_description='),
      percents: repeated('%25', 'code='),
      'many names': numbered((index) => `a${index}=b&`),
      issuer: repeated('i', 'iss='),
    },
  },
  {
    name: 'time',
    covers: ['foundation/base/parse-time.ts#parseTime'],
    lengthMax: MIB,
    read: parseTime,
    rejects: never,
    seeds: [
      '2026-01-01T00:00:00Z',
      '2026-01-01 00:00',
      'Wed, 21 Oct 2026 07:28:00 GMT (Greenwich Mean Time)',
      '2026-01',
    ],
    attacks: {
      zones: repeated('Z('),
      blanks: repeated(' ', 'Z', 'x'),
      digits: repeated('1'),
      offsets: repeated('+01:00'),
    },
  },
  {
    name: 'token lifetime',
    covers: ['engine/formats/credential/token-response.ts#parseExpiry'],
    lengthMax: MIB,
    read: (input) => parseExpiry(input, NOW),
    rejects: never,
    seeds: ['3600', '2026-01-01T00:00:00Z', '1767323045'],
    attacks: { digits: repeated('1'), open: repeated('('), blanks: repeated(' ', '1', 'x') },
  },
  {
    name: 'cursor of a call',
    covers: ['engine/proxy/cursor.ts#decodeCursor', 'engine/formats/pagination/listing.ts#parseListingState'],
    lengthMax: 16 * KIB,
    read: (input) => decodeCursor(SEALER, LIST, RANGE, input),
    rejects: withFailure,
    isFaithful: (_input, state) =>
      isDeepStrictEqual(decodeCursor(SEALER, LIST, RANGE, encodeCursor(SEALER, LIST, state as ListingState)), state),
    seeds: [encodeCursor(SEALER, LIST, RANGE_STATE)],
    attacks: { letters: repeated('A'), nesting: (length) => Buffer.from('['.repeat(length / 2)).toString('base64url') },
  },
]

const DELIVERY = { method: 'POST', url: 'https://hooks.example.com/1', query: {}, body: Buffer.from('{}'), payload: {} }
const NO_ONE = { account: { context: {}, credentials: {}, environmentVariables: {} }, call: {} }
const KEYS = { find: async () => ({ kind: 'rejected', why: 'no key' }) } as never
const SIGNATURE = compileSource('$header.x-signature[v1]')
const VERIFY_JWT = compileSignature({ format: 'jwt', config: { secret: 's'.repeat(32), token: '$header.x-token' } })
const VERIFY_WEBHOOK = compileSignature({
  format: 'standard_webhooks',
  config: { secret: 'whsec_c2VjcmV0c2VjcmV0c2VjcmV0' },
})
const HEADER_IN = 16 * KIB

const SIGNATURES: readonly Reader[] = [
  {
    name: 'signature header',
    covers: ['engine/formats/signature/source.ts#readText'],
    lengthMax: HEADER_IN,
    read: (input) => SIGNATURE({ ...DELIVERY, headers: { 'x-signature': input } }, NO_ONE),
    rejects: never,
    seeds: ['t=1,v1=abc', 'ts=1;v1=a;v1=b'],
    attacks: { commas: repeated(','), fields: repeated('v1=a,'), blanks: repeated(' ') },
  },
  {
    name: 'Standard Webhooks headers',
    covers: ['engine/formats/signature/digest.ts'],
    lengthMax: HEADER_IN,
    read: (input) =>
      VERIFY_WEBHOOK(
        { ...DELIVERY, headers: { 'webhook-id': '1', 'webhook-timestamp': '1767323045', 'webhook-signature': input } },
        NO_ONE,
        { now: () => NOW, keys: KEYS },
      ),
    rejects: never,
    seeds: ['v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=', 'v1,a v1a,b v1,c'],
    attacks: { blanks: repeated(' '), versions: repeated('v1,a '), letters: repeated('v') },
  },
  {
    name: 'signed token',
    covers: ['engine/formats/signature/jwt.ts#checkClaims', 'engine/formats/signature/jwt.ts#checkBodyHash'],
    lengthMax: HEADER_IN,
    read: (input) => VERIFY_JWT({ ...DELIVERY, headers: { 'x-token': input } }, NO_ONE, { now: () => NOW, keys: KEYS }),
    rejects: never,
    seeds: ['eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE4MDAwMDAwMDB9.c2lnbmF0dXJl', 'a.b.c'],
    attacks: {
      dots: repeated('.'),
      letters: repeated('A'),
      header: (length) => `${Buffer.from('{"alg":'.repeat(length / 12)).toString('base64url')}.e30.AA`,
    },
  },
  {
    name: 'encoded digest',
    covers: ['engine/formats/signature/secret.ts#decodeExactly'],
    lengthMax: HEADER_IN,
    read: (input) => [decodeExactly(input, 'hex'), decodeExactly(input, 'base64'), decodeExactly(input, 'base64url')],
    rejects: never,
    seeds: ['00ff', 'AA==', '-_'],
    attacks: { equals: repeated('='), letters: repeated('a') },
  },
  {
    name: 'signed address',
    covers: ['engine/formats/signature/source.ts#decodeUrl'],
    lengthMax: HEADER_IN,
    read: decodeUrl,
    rejects: never,
    seeds: ['https://a.example/x%3Ay?z=%2F%zz'],
    attacks: { percents: repeated('%3A'), broken: repeated('%') },
  },
  {
    name: 'public key',
    covers: ['engine/formats/signature/public-key.ts#readPublicKey'],
    lengthMax: 64 * KIB,
    read: readPublicKey,
    rejects: never,
    seeds: ['-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA\n-----END PUBLIC KEY-----', '{"kty":"OKP"}', 'MCow'],
    attacks: {
      dashes: repeated('-'),
      letters: repeated('A'),
      'open JSON': repeated('{"a":'),
      blanks: repeated(' ', '', 'x'),
    },
  },
]

const PATTERN_VALUE = 'a'.repeat(512)
const FIELDS = fieldList().parse([
  { name: 'a', pattern: '(?:a{0,99}){0,5}b', format: 'email' },
  ...FIELD_FORMATS.map((format, index) => ({ name: `f${index}`, format, suffix: '.example' })),
  ...(['textarea', 'file', 'number', 'checkbox'] as const).map((type) => ({ name: type, type })),
])

const CREDENTIALS: readonly Reader[] = [
  {
    name: 'pattern of a field',
    covers: ['engine/formats/credential/field-pattern.ts#findPatternProblem'],
    lengthMax: 512,
    read: (input) =>
      findPatternProblem(input) ??
      collectFields(fieldList().parse([{ name: 'a', pattern: input }]), { a: PATTERN_VALUE }, 'a').kind,
    rejects: never,
    seeds: ['[A-Z0-9]{16,128}', '(?:a|b)+\\d{2,}', '[^@]+@[^@]+', '(?i)x'],
    attacks: {
      counted: repeated('a{0,99}', '', 'b'),
      'counted groups': (length) => `(?:${'a'.repeat(Math.max(1, length - 12))}){1000}`,
      stars: repeated('a*', '', 'b'),
      optional: repeated('a?', '(?:', '){4}'),
      nested: repeated('('),
      classes: repeated('\\PL', '(?i)'),
      'wide ranges': repeated('[a-\u{10ffff}]', '(?i)'),
      alternatives: repeated('a|', '(?:', 'b)*c'),
    },
  },
  {
    name: 'value of a field',
    covers: [
      'engine/formats/credential/check-field-value.ts#findValueProblem',
      'engine/formats/credential/check-field-value.ts#parseNumber',
    ],
    lengthMax: 4 * MIB,
    read: (input) => {
      const values = FIELDS.map(({ name }) => [name, input])
      return collectFields(FIELDS, { ...Object.fromEntries(values), [input.slice(0, 100)]: 1 }, 'credentials')
    },
    rejects: never,
    seeds: ['a@b.example', '', 'https://a.example/b', '1.50', '-----BEGIN KEY-----\\n'],
    attacks: {
      letters: repeated('a'),
      at: repeated('@'),
      blanks: repeated(' '),
      'blanks before a letter': repeated(' ', '', 'x'),
      quotes: repeated('"', '', 'x'),
      digits: repeated('0', '', 'x'),
      dots: repeated('a.'),
      breaks: repeated('\\n', '-----BEGIN KEY-----'),
    },
  },
  {
    name: 'field of a form',
    covers: [
      'engine/formats/credential/fields.ts#checkField',
      'engine/formats/credential/fields.ts#findPatternsProblem',
    ],
    lengthMax: 64 * KIB,
    read: (input) =>
      fieldList().safeParse([{ name: 'a', type: 'single_select', options: [{ value: input }], default: input }])
        .success,
    rejects: never,
    seeds: ['a', ''],
    attacks: { letters: repeated('a') },
  },
  {
    name: 'ISO duration',
    covers: ['engine/formats/pagination/window.ts#parseIsoDuration'],
    lengthMax: 64,
    read: parseIsoDuration,
    rejects: never,
    seeds: ['P1Y2M3DT4H5M6.7S', 'PT1H'],
    attacks: { digits: repeated('1', 'P'), units: repeated('1D', 'P') },
  },
]

const EGRESS: readonly Reader[] = [
  {
    name: 'URL of a call',
    covers: ['foundation/egress/address-policy.ts#findUrlViolation'],
    lengthMax: 64 * KIB,
    read: (input) => findUrlViolation(POLICY, input),
    rejects: never,
    seeds: ['https://a.example/x?y#z', 'http://[::ffff:127.0.0.1]/', 'http://0x7f.1/'],
    attacks: {
      dots: repeated('a.', 'http://'),
      colons: repeated(':', 'http://['),
      percents: repeated('%41', 'http://'),
    },
  },
  {
    name: 'address range',
    covers: ['foundation/egress/address.ts#parseRange'],
    lengthMax: 4 * KIB,
    read: parseRange,
    rejects: never,
    seeds: ['10.0.0.0/8', '::1/128', '1.2.3.4'],
    attacks: { dots: repeated('1.'), colons: repeated(':'), slashes: repeated('/') },
  },
]

export const UPSTREAM_READERS: readonly Reader[] = [
  ...ANSWERS,
  ...HEADERS,
  ...TOKENS,
  ...MESSAGES_OF_OTHERS,
  ...SIGNATURES,
  ...CREDENTIALS,
  ...EGRESS,
]
