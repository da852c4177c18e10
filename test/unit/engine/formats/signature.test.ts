import { describe, expect, test } from 'vitest'
import { createKeySource } from '../../../../src/engine/formats/index.ts'
import {
  compileSignature,
  SIGNATURE_FORMATS,
  signatureSchema,
} from '../../../../src/engine/formats/signature/registry.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../../src/foundation/json/index.ts'
import { caseCount, someCases } from '../../../support/case-count.ts'
import { NOW, type SignatureRow } from './rows/delivery.ts'
import { SIGNATURE_ROWS } from './rows/signature.ts'
import { SIGNATURE_CONFIG_ROWS } from './rows/signature-config.ts'
import { MORE_PROVIDER_ROWS } from './rows/signature-more-providers.ts'
import { PART_CONFIG_ROWS, PART_ROWS } from './rows/signature-parts.ts'
import { PROVIDER_ROWS as FIRST_PROVIDER_ROWS } from './rows/signature-providers.ts'

const PROVIDER_ROWS = { ...FIRST_PROVIDER_ROWS, ...MORE_PROVIDER_ROWS }

type Case = Omit<SignatureRow, 'promise'>

/** The result of a row; its config has to pass the schema first, as every stored one has. */
async function judge(format: string, row: Case) {
  const choice = signatureSchema.parse(row.config === undefined ? { format } : { format, config: row.config })
  const { documents = {}, headers = {}, query = {}, env = {}, body = '' } = row
  const now = () => new Date(row.now ?? NOW)
  const keys = createKeySource({
    now,
    fetchKey: async (url) => {
      const document = documents[url]
      return { status: document === undefined ? 404 : 200, body: Buffer.from(document ?? '') }
    },
  })
  const bytes = Buffer.from(body)
  const payload = row.payload ?? parse(bytes.toString())
  return compileSignature(choice)(
    {
      method: row.method ?? 'POST',
      url: row.url ?? 'https://hooks.example.com/1',
      headers,
      query,
      body: bytes,
      payload,
    },
    { account: { context: {}, credentials: {}, environmentVariables: env }, call: {} },
    { now, keys },
  )
}

function parse(text: string): Json {
  try {
    return JSON.parse(text) as Json
  } catch {
    return null
  }
}

const VALID = { kind: 'valid' }

describe.each(SIGNATURE_FORMATS.map((entry) => entry.format))('signature_verification %s', (format) => {
  const configs = [...(SIGNATURE_CONFIG_ROWS[format] ?? []), ...(PART_CONFIG_ROWS[format] ?? [])]
  const rows = [...(SIGNATURE_ROWS[format] ?? []), ...(PART_ROWS[format] ?? [])]

  test('has rows', () => {
    expect(configs.length).toBeGreaterThan(0)
    expect(rows.length).toBeGreaterThan(0)
  })

  test.each(configs)('config $promise', ({ config, invalidAt }) => {
    const parsed = signatureSchema.safeParse(config === undefined ? { format } : { format, config })
    const paths = parsed.success ? [] : parsed.error.issues.map((issue) => issue.path.join('.'))
    expect(paths).toEqual(invalidAt === undefined ? [] : [invalidAt])
  })

  test.each(rows)('$promise', async (row) => {
    const expected = row.reason === undefined ? VALID : { kind: 'invalid', reason: expect.stringContaining(row.reason) }
    expect(await judge(format, row)).toMatchObject(expected)
  })
})

describe('the schemes of providers', () => {
  test.each(Object.entries(PROVIDER_ROWS))('%s is valid', async (_provider, { format, ...row }) => {
    expect(await judge(format, row)).toMatchObject(VALID)
  })
})

test('rows exist for registered formats only', () => {
  const registered = SIGNATURE_FORMATS.map((entry) => entry.format)
  const named = [...Object.keys(SIGNATURE_CONFIG_ROWS), ...Object.keys(SIGNATURE_ROWS)]
  expect(named.filter((format) => !registered.includes(format))).toEqual([])
})

const validRows: readonly (readonly [name: string, format: string, row: Case])[] = [
  ...[...Object.entries(SIGNATURE_ROWS), ...Object.entries(PART_ROWS)].flatMap(([format, rows]) =>
    rows
      .filter(({ reason, hasSpare }) => reason === undefined && !hasSpare)
      .map((row) => [`${format} ${row.promise}`, format, row] as const),
  ),
  ...Object.entries(PROVIDER_ROWS)
    .filter(([, row]) => !row.hasSpare)
    .map(([provider, row]) => [provider, row.format, row] as const),
]

describe.each(someCases(validRows, 24))('%s', (_name, format, row) => {
  test('a valid delivery with any change is invalid', async () => {
    const survivors: string[] = []
    for (const [what, mutated] of mutations(row))
      if ((await judge(format, mutated)).kind === 'valid') survivors.push(what)
    expect(survivors).toEqual([])
  })

  test('the clocks may differ by the tolerance, in both directions', async () => {
    const seconds = row.window
    if (seconds === undefined) return expect(JSON.stringify(row.config)).not.toContain('"timestamp"')
    const at = (offset: number) => new Date(Date.parse(row.now ?? NOW) + offset * 1000).toISOString()
    for (const offset of [-seconds, seconds])
      expect(await judge(format, { ...row, now: at(offset) })).toMatchObject(VALID)
    for (const offset of [-seconds - 1, seconds + 1])
      expect(await judge(format, { ...row, now: at(offset) })).toMatchObject({ kind: 'invalid' })
  })
})

/** Positions of a text that are changed, spread over it. */
const POSITIONS = caseCount(4, 16)

type Mutation<T> = readonly [what: string, changed: T]

/** Every way in which a delivery, its secret or its keys are changed by one bit, cut, or left out. */
function mutations(row: Case): Mutation<Case>[] {
  const { headers = {}, query = {}, env = {}, proves = ['body'] } = row
  const into = <T>(name: keyof Case, changes: readonly Mutation<T>[]) =>
    changes.map(([what, changed]): Mutation<Case> => [`${name} ${what}`, { ...row, [name]: changed }])
  const proved = {
    method: () => into('method', [['replaced', 'DELETE']]),
    url: () => into('url', ofText(row.url ?? '')),
    query: () => into('query', ofMap(query)),
    payload: () => into('payload', ofJson(row.payload ?? null)),
    body: () => into('body', ofBytes(Buffer.from(row.body ?? ''))),
  }
  return [
    ...into('headers', ofMap(headers)),
    ...into('env', ofVariables(env)),
    ...proves.flatMap((part) => proved[part]()),
  ]
}

function ofMap(map: Readonly<Record<string, string>>): Mutation<Record<string, string>>[] {
  return Object.entries(map).flatMap(([name, value]) => [
    [`${name} dropped`, without(map, name)] as const,
    ...ofText(value).map(([what, text]) => [`${name} ${what}`, { ...map, [name]: text }] as const),
  ])
}

/** Only their middle is flipped: the last characters of a key may mean nothing. */
function ofVariables(env: JsonObject): Mutation<JsonObject>[] {
  return Object.entries(env).flatMap(([name, value]) => [
    [`${name} dropped`, without(env, name)] as const,
    [`${name} empty`, { ...env, [name]: '' }] as const,
    [`${name} flipped`, { ...env, [name]: flip(String(value), String(value).length >> 1) }] as const,
  ])
}

function ofText(text: string): Mutation<string>[] {
  const step = Math.max(1, Math.floor(text.length / POSITIONS))
  const positions = Array.from({ length: Math.ceil(text.length / step) }, (_, index) => index * step)
  return [
    ...[...positions, text.length - 1].map((at) => [`flipped at ${at}`, flip(text, at)] as const),
    ['longer', `${text}x`],
    ['shorter', text.slice(0, -1)],
    ['empty', ''],
  ]
}

function ofBytes(bytes: Buffer): Mutation<Uint8Array>[] {
  return [
    ...[0, bytes.length >> 1, bytes.length - 1].map(
      (at) => [`flipped at ${at}`, bytes.map((byte, index) => (index === at ? byte ^ 1 : byte))] as const,
    ),
    ['longer', Buffer.concat([bytes, Buffer.from(' ')])],
    ['shorter', bytes.subarray(0, -1)],
    ['empty', Buffer.alloc(0)],
  ]
}

function ofJson(value: Json): Mutation<Json>[] {
  if (typeof value === 'string') return ofText(value)
  if (Array.isArray(value)) {
    const list: readonly Json[] = value
    return list.flatMap((item, index) =>
      ofJson(item).map(([what, changed]) => [`[${index}] ${what}`, list.with(index, changed)] as const),
    )
  }
  if (!isJsonObject(value)) return []
  return Object.entries(value).flatMap(([key, item]) =>
    ofJson(item).map(([what, changed]) => [`${key} ${what}`, { ...value, [key]: changed }] as const),
  )
}

function without<T>(map: Readonly<Record<string, T>>, name: string): Record<string, T> {
  return Object.fromEntries(Object.entries(map).filter(([key]) => key !== name))
}

/** The text with the lowest bit of one character changed. */
function flip(text: string, at: number): string {
  return text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ 1) + text.slice(at + 1)
}
