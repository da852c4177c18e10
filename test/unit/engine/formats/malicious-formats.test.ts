import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { bodyFormat } from '../../../../src/engine/formats/body/registry.ts'
import { responseFormat } from '../../../../src/engine/formats/index.ts'
import { isXmlText } from '../../../../src/engine/formats/response/xml.ts'
import { isJsonObject, type Json } from '../../../../src/foundation/json/index.ts'
import { caseCount } from '../../../support/case-count.ts'
import { cpuMsOf } from '../../../support/cpu-time.ts'

const readXml = (text: string) => responseFormat('xml').decode(Buffer.from(text))
const readCsv = (text: string) => responseFormat('csv').decode(Buffer.from(text))

/** Far above what any of these takes, far below what an unbounded reader would. */
const MILLISECONDS_MAX = 5_000

describe('a malicious document is rejected before it costs anything', () => {
  const laughs = Array.from({ length: 9 }, (_, n) => `<!ENTITY l${n + 1} "${`&l${n};`.repeat(10)}">`).join('')

  test.each<[string, string, string]>([
    ['a billion laughs', `<!DOCTYPE a [<!ENTITY l0 "lol">${laughs}]><a>&l9;</a>`, 'entities of its own'],
    [
      'one long entity, many times',
      `<!DOCTYPE a [<!ENTITY x "${'y'.repeat(9_999)}">]><a>${'&x;'.repeat(99_999)}</a>`,
      'entities of its own',
    ],
    ['depth', '<a>'.repeat(100_000) + '</a>'.repeat(100_000), 'nested tags'],
    ['a long attribute', `<a b="${'c'.repeat(5_000_000)}"/>`, 'a tag of more than'],
    ['many attributes', `<a${' b'.repeat(2_000_000)}/>`, 'a tag of more than'],
    ['a tag without end', `<a ${"b='".repeat(1_000_000)}`, 'a tag of more than'],
    ['many tags', `<a>${'<b/>'.repeat(500_000)}</a>`, 'more than 500000 tags'],
    ['length', `<a>${'b'.repeat(8 * 1024 * 1024)}</a>`, 'longer than'],
    ['comments without end', '<a>'.concat('<!--'.repeat(400_000)), 'not well-formed'],
    ['CDATA without end', '<a>'.concat('<![CDATA['.repeat(400_000)), 'not well-formed'],
    ['document types', '<!DOCTYPE a ['.repeat(400_000), 'not well-formed'],
    ['ampersands', `<a>${'&'.repeat(5_000_000)}</a>`, 'not well-formed'],
  ])('%s', (_what, document, message) => {
    const cpuMs = cpuMsOf(() => expect(() => readXml(document)).toThrow(message))
    expect(cpuMs).toBeLessThan(MILLISECONDS_MAX)
  })

  test('a table that does not end', () => {
    expect(() => readCsv(`a\n${'1\n'.repeat(500_001)}`)).toThrow('more than 500000 rows')
  })

  test('a table whose columns reach prototypes', () => {
    const [row] = readCsv('__proto__,constructor\n1,2\n') as readonly Json[]
    expect(Object.entries(isJsonObject(row) ? row : {})).toEqual([
      ['__proto__', '1'],
      ['constructor', '2'],
    ])
    expect(Object.getPrototypeOf(row)).toBe(Object.prototype)
  })
})

describe('what is written as XML is read as the same', () => {
  const name = fc
    .tuple(fc.constantFrom('a', 'b', '\u00e9t\u00e9', 'x-1', 'n:c', '_d'), fc.constantFrom('', '1', '.z'))
    .map(([head, tail]) => head + tail)
  // Blank texts are dropped, which is the one loss of the way back.
  const text = fc
    .string({ unit: 'binary' })
    .filter((value) => isXmlText(value) && (value === '' || value.trim() !== ''))
  const attributes = fc.dictionary(
    name.map((key) => `@${key}`),
    text,
    { maxKeys: 3 },
  )
  const { element } = fc.letrec<{ element: Json; branch: Json }>((tie) => ({
    element: fc.oneof({ depthSize: 'small' }, text, tie('branch')),
    branch: fc
      .tuple(
        attributes,
        fc.dictionary(name, fc.oneof(tie('element'), fc.array(tie('element'), { minLength: 2, maxLength: 3 })), {
          maxKeys: 3,
        }),
        text,
      )
      .map(
        ([attributed, children, own]): Json => ({
          ...attributed,
          ...children,
          ...(own === '' ? {} : { '#text': own }),
        }),
      )
      .filter((value) => Object.keys(value as object).some((key) => key !== '#text')),
  }))

  test('any tree', () => {
    fc.assert(
      fc.property(name, element, (root, value) => {
        const { content } = bodyFormat('xml').encode({ [root]: value }, { nonce: () => '' })
        expect(readXml(content.toString())).toEqual({ [root]: value })
      }),
      { numRuns: caseCount(50, 500) },
    )
  })
})
