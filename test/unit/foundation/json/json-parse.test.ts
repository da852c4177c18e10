import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  canonicalJson,
  decimalForm,
  JSON_NESTING_MAX,
  JsonNumber,
  JsonTextError,
  jsonNumberOf,
  parseJson,
  scanJson,
  toDoubles,
} from '../../../../src/foundation/json/index.ts'
import { caseCount } from '../../../support/case-count.ts'
import { NUMBER_TEXTS, NUMBERS_JSON } from '../../../support/json-numbers.ts'

const digits = (options: { readonly minLength: number; readonly maxLength: number }) =>
  fc.string({ unit: fc.constantFrom(...'0123456789'), ...options })
const numberText = fc
  .record({
    sign: fc.constantFrom('', '-'),
    whole: fc.oneof(
      fc.constant('0'),
      fc
        .tuple(fc.constantFrom(...'123456789'), digits({ minLength: 0, maxLength: 25 }))
        .map(([first, rest]) => first + rest),
    ),
    fraction: fc.option(digits({ minLength: 1, maxLength: 40 }), { nil: undefined }),
    exponent: fc.option(
      fc.tuple(fc.constantFrom('e', 'E'), fc.constantFrom('', '+', '-'), digits({ minLength: 1, maxLength: 3 })),
      { nil: undefined },
    ),
  })
  .map(
    ({ sign, whole, fraction, exponent }) =>
      `${sign}${whole}${fraction === undefined ? '' : `.${fraction}`}${exponent?.join('') ?? ''}`,
  )
const blank = fc.string({ unit: fc.constantFrom(' ', '\n', '\t', '\r'), maxLength: 2 })

/** JSON text without blanks, its numbers in every notation. */
const jsonText = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    numberText,
    fc.string({ unit: 'binary' }).map((text) => JSON.stringify(text)),
    // Texts that look like numbers, and quotes behind backslashes.
    numberText.map((text) => JSON.stringify(text)),
    fc.string({ unit: fc.constantFrom('\\', '"', '1', ':', '.', '0', '[', '}') }).map((text) => JSON.stringify(text)),
    fc.constantFrom('true', 'false', 'null'),
    fc.array(tie('value'), { maxLength: 5 }).map((items) => `[${items.join(',')}]`),
    fc
      .dictionary(
        fc.string({ unit: 'binary' }).filter((key) => !/^\d+$/.test(key)),
        tie('value'),
        { maxKeys: 5 },
      )
      .map(
        (entries) =>
          `{${Object.entries(entries)
            .map(([key, item]) => `${JSON.stringify(key)}:${item}`)
            .join(',')}}`,
      ),
  ),
})).value

describe('parseJson', () => {
  it('gives back every number as it was, by way of JSON.stringify', () => {
    fc.assert(
      fc.property(numberText, (text) => JSON.stringify(parseJson(text)) === text),
      { numRuns: caseCount(500, 5_000) },
    )
  })

  it('gives back any JSON as it was', () => {
    fc.assert(
      fc.property(jsonText, (text) => JSON.stringify(parseJson(text)) === text),
      { numRuns: caseCount(200, 2_000) },
    )
  })

  it('reads what JSON.parse reads, numbers as the nearest doubles', () => {
    fc.assert(
      fc.property(jsonText, (text) => {
        const finite = JSON.parse(text, (_key, value) =>
          value === Number.POSITIVE_INFINITY
            ? Number.MAX_VALUE
            : value === Number.NEGATIVE_INFINITY
              ? -Number.MAX_VALUE
              : value,
        )
        expect(toDoubles(parseJson(text))).toEqual(finite)
      }),
    )
  })

  it('reads blanks anywhere', () => {
    fc.assert(
      fc.property(numberText, blank, (text, space) => {
        expect(
          JSON.stringify(
            parseJson(`${space}[${space}${text}${space},${space}{"a"${space}:${space}${text}${space}}${space}]`),
          ),
        ).toBe(`[${text},{"a":${text}}]`)
      }),
    )
  })

  it.each(NUMBER_TEXTS)('knows %s from every other number', (text) => {
    const same = NUMBER_TEXTS.filter((other) => canonicalJson(parseJson(other)) === canonicalJson(parseJson(text)))
    expect(same).toEqual([text])
  })

  it('keeps doubles that are written back the same as doubles', () => {
    for (const text of ['0', '42', '-7.25', '0.1', '9007199254740991', '1.7976931348623157e+308', '5e-324'])
      expect(parseJson(text), text).toBe(Number(text))
  })

  it('reads down to its depth and no deeper, however the levels are written', () => {
    const nested = (levels: number) => `${'[{"a":'.repeat(levels / 2)}1.10${'}]'.repeat(levels / 2)}`
    expect(JSON.stringify(parseJson(nested(JSON_NESTING_MAX)))).toBe(nested(JSON_NESTING_MAX))
    expect(() => parseJson(nested(JSON_NESTING_MAX + 2))).toThrow(JsonTextError)
    expect(() => parseJson('['.repeat(1_000_000))).toThrow('is nested deeper than 256 levels')
  })

  it.each([
    '',
    '{',
    '01',
    '1.',
    '.5',
    '+1',
    '1e',
    '-',
    'NaN',
    '[1.10,]',
    '{"a":1.0',
    '{1.10:1}',
    '{1.10 :1,"a":2}',
    '{"a":{1.10:1},"a":2}',
    '01.10',
    '[1.10 1.10]',
    '"a"1.10',
    'true1.10',
    '1.10.10',
    '[1e]',
  ])('rejects %j and quotes none of it', (text) => {
    expect(() => parseJson(text)).toThrow(new JsonTextError('syntax', 'is not valid JSON'))
  })

  it('reads numbers under the same key twice, under __proto__ and in texts', () => {
    const text = '{"a":1.10,"a":[1.20,"1.30"],"__proto__":{"b":1.40}}'
    expect(JSON.stringify(parseJson(text))).toBe('{"a":[1.20,"1.30"],"__proto__":{"b":1.40}}')
  })

  it('takes only numbers out that a double would change, however long they are', () => {
    expect(scanJson('[0.30000000000000004,1e21,1e+21,52.52000659999999,1.50]').inexact).toEqual([21, 25, 50, 54])
  })

  it('does not fall for brackets, colons and quotes in texts', () => {
    const text = '{"[[{\\"":"}:]\\\\","a":["\\\\\\"[",1]}'
    expect(scanJson(text)).toEqual({ nesting: 2, members: 2, values: 5, inexact: [] })
  })
})

describe('a JsonNumber', () => {
  it('is its text wherever a text is asked for, and a double in arithmetic', () => {
    const number = new JsonNumber('12345678901234567890')
    expect([`${number}`, String(number), JSON.stringify({ number })]).toEqual([
      '12345678901234567890',
      '12345678901234567890',
      '{"number":12345678901234567890}',
    ])
    expect(Number(number) / 2).toBe(6172839450617284000)
  })

  it.each([
    ['1.50e2', '15e1', 1],
    ['150', '15e1', 1],
    ['-0.0', '0', 0],
    ['0.0100', '1e-2', -2],
    ['12345678901234567890', '1234567890123456789e1', 1],
    ['1e400', '1e400', 400],
  ])('%s is %s', (text, form, exponent) => {
    expect(decimalForm(jsonNumberOf(text))).toEqual({ text: form, exponent })
  })
})

it('the corpus holds what the paths are tested with', () => {
  expect(JSON.stringify(parseJson(NUMBERS_JSON))).toBe(NUMBERS_JSON)
})
