import { create, type DescMessage } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FORBIDDEN_KEYS, findUnstorable, type Json } from '../../../../src/foundation/json/index.ts'
import { decodeJson, encodeJson } from '../../../../src/server/api/messages/codec.ts'
import { parseRequestJson, parseRequestJsonInSlices } from '../../../../src/server/api/messages/json-text.ts'
import { findUnstorableFields, isStorable } from '../../../../src/server/api/messages/storable.ts'
import { caseCount } from '../../../support/case-count.ts'
import { turnsDuring } from '../../../support/event-loop-turns.ts'
import { message } from './support/contract.ts'

describe('a JSON text', () => {
  const parse = (text: string) => parseRequestJson(Buffer.from(text))

  it('reads back as it was written', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
        const text = JSON.stringify(value)
        expect(parse(text)).toEqual(JSON.parse(text))
      }),
    )
  })

  it.each(['{"a":1,"a":1}', '[{"b":{"a":1,"\\u0061":1}}]', '{"__proto__":1,"__proto__":1}', '{"\\"":1,"\\"":2}'])(
    'must not repeat a key: %s',
    (text) => {
      expect(() => parse(text)).toThrow('same key twice')
    },
  )

  it.each(['{"a":{"a":1},"b":{"a":1}}', '{"a:":":","b\\\\":"\\\\:"}', '["a","a",{"":1}]'])(
    'may repeat what is no key of the same object: %s',
    (text) => {
      expect(parse(text)).toEqual(JSON.parse(text))
    },
  )

  it('may be nested 100 deep and no deeper', () => {
    expect(parse('['.repeat(100) + ']'.repeat(100))).toBeInstanceOf(Array)
    expect(() => parse('['.repeat(101) + ']'.repeat(101))).toThrow('nested deeper')
    expect(parse(`{"a":"${'['.repeat(500)}"}`)).toEqual({ a: '['.repeat(500) })
  })

  describe('of a large body', () => {
    const filler = `"filler":[${'1.10,"x",'.repeat(10_000)}0]`
    const later = (text: string) => parseRequestJsonInSlices(Buffer.from(text))

    it('is read as that of a small one, with other work in between', async () => {
      const text = `{${filler},"a":{"__proto__":[1],"b":"é"}}`
      expect(await later(text)).toEqual(parse(text))
      expect(await turnsDuring(() => later(text))).toBeGreaterThan(1)
    })

    it.each([
      ['a key that is repeated after a slice', `{"a":1,${filler},"a":1}`],
      ['a key that is repeated within', `{${filler},"b":{"a":1,"a":2}}`],
      ['nesting', `{${filler},"a":${'['.repeat(101)}${']'.repeat(101)}}`],
      ['what is no JSON', `{${filler},"a":nul}`],
      ['too many values', `[${'1,'.repeat(60_000)}1]`],
    ])('is rejected with the same words for %s', async (_what, text) => {
      const refused = await later(text).then(
        () => 'read',
        (error: Error) => error.message,
      )
      let atOnce = 'read'
      try {
        parse(text)
      } catch (error) {
        atOnce = (error as Error).message
      }
      expect(refused).toBe(atOnce)
    })
  })

  it('may be empty', () => {
    expect(parse('')).toEqual({})
  })

  it.each(['{', 'nul', '{"a":01}', "{'a':1}", '{"a":1}x', '\uFEFF{}', '"\\x"'])('must be JSON: %s', (text) => {
    expect(() => parse(text)).toThrow('not valid JSON')
  })
})

describe('what can be stored', () => {
  const key = fc.oneof(fc.string(), fc.constantFrom(...FORBIDDEN_KEYS, 'a\u0000', '\ud800'))
  const leaf = fc.oneof(fc.string(), fc.double(), fc.constantFrom(null, true, 'x\u0000', '\udfff', Number.NaN))
  const { tree } = fc.letrec<{ tree: Json }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4 },
      leaf as fc.Arbitrary<Json>,
      fc.array(tie('tree'), { maxLength: 3 }),
      fc.array(fc.tuple(key, tie('tree')), { maxLength: 3 }).map((entries) => Object.fromEntries(entries) as Json),
    ),
  }))

  it('is judged alike by the fast test and by the one that explains', () => {
    fc.assert(
      fc.property(tree, fc.integer({ min: 26, max: 33 }), (value, depth) => {
        expect(isStorable(value, depth)).toBe(findUnstorable(value, '', depth).length === 0)
      }),
      { numRuns: caseCount(200, 2_000) },
    )
  })

  it('is looked for in every kind of field, any protocol the message came by', () => {
    const desc = message('CreateRequest')
    const value = (kind: object) => ({ kind })
    const request = create(desc, {
      name: 'a\u0000',
      tags: ['ok', '\ud800'],
      groupKey: undefined,
      destination: { case: 'groupKey', value: '\u0000' },
      attributes: { deep: [Number.POSITIVE_INFINITY] },
      parts: [{ name: '\u0000' }],
      partsByName: { 'x\u0000': { name: '\u0000' } },
      anything: value({
        case: 'structValue',
        value: { fields: { n: value({ case: 'numberValue', value: Number.NaN }) } },
      }),
    } as never)
    expect(findUnstorableFields(desc, request).map(({ field, rule }) => `${field} ${rule}`)).toEqual([
      'name nul',
      'attributes.deep[0] finite',
      'tags[1] surrogate',
      'parts[0].name nul',
      'group_key nul',
      'parts_by_name.x\u0000 nul',
      'parts_by_name.x\u0000.name nul',
      'anything.n finite',
    ])
  })
})

describe('decoding', () => {
  it('collects no more findings than one can read', () => {
    const json = { name: 'a', tags: Array.from({ length: 10_000 }, () => 1) }
    expect(decodeJson(message('CreateRequest'), json).findings).toHaveLength(100)
  })

  it('keeps what fits, so that its rules can be checked too', () => {
    const draft = decodeJson(message('CreateRequest'), { name: 'a', size: 'x', parts: [{ name: 'p' }, 1], tags: ['t'] })
    expect(draft.message).toMatchObject({ name: 'a', parts: [], tags: ['t'] })
    expect(Reflect.get(draft.message, 'size')).toBeUndefined()
  })
})

describe('times', () => {
  const json = (seconds: bigint, nanos: number) =>
    encodeJson(message('Widget') as DescMessage, { createdAt: { seconds, nanos } } as never).created_at

  it.each([
    [0n, 0, '1970-01-01T00:00:00.000Z'],
    [1_800_000_000n, 120_000_000, '2027-01-15T08:00:00.120Z'],
    [1_800_000_000n, 1_000_000, '2027-01-15T08:00:00.001Z'],
    [1_800_000_000n, 999_999_999, '2027-01-15T08:00:00.999Z'],
  ])('of %s s %s ns have three decimals: %s', (seconds, nanos, text) => {
    expect(json(seconds, nanos)).toBe(text)
  })

  it('that only look like times stay as they are', () => {
    const answer = encodeJson(message('Widget'), { attributes: { at: '2027-01-15T08:00:00Z' } } as never)
    expect(answer.attributes).toEqual({ at: '2027-01-15T08:00:00Z' })
  })

  it('a free-form object that a handler leaves out stays out', () => {
    expect(encodeJson(message('Widget'), {})).not.toHaveProperty('attributes')
  })
})
