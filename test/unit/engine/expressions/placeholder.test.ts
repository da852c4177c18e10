import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { lexTemplate } from '../../../../src/engine/expressions/placeholder.ts'
import { caseCount } from '../../../support/case-count.ts'

describe('a text is split into literals and placeholders', () => {
  test.each([
    ['plain', ['plain']],
    ['', []],
    ['{{a}}', [{ source: 'a', paths: ['a'] }]],
    ['x {{ a.b[0].c }} y', ['x ', { source: 'a.b[0].c', paths: ['a.b[0].c'] }, ' y']],
    [
      '{{a}}{{b}}',
      [
        { source: 'a', paths: ['a'] },
        { source: 'b', paths: ['b'] },
      ],
    ],
    ['{{a|b.c | d}}', [{ source: 'a|b.c | d', paths: ['a', 'b.c', 'd'] }]],
    ['{{a?:}}', [{ source: 'a?:', paths: ['a'], defaultText: '' }]],
    ['{{a?:some text: here}}', [{ source: 'a?:some text: here', paths: ['a'], defaultText: 'some text: here' }]],
    ['{{a|b?:1:int}}', [{ source: 'a|b?:1:int', paths: ['a', 'b'], defaultText: '1', cast: 'int' }]],
    ['{{a?:date}}', [{ source: 'a?:date', paths: ['a'], defaultText: 'date' }]],
    ['{{a?:date:date}}', [{ source: 'a?:date:date', paths: ['a'], defaultText: 'date', cast: 'date' }]],
    ['{{a?::int}}', [{ source: 'a?::int', paths: ['a'], defaultText: '', cast: 'int' }]],
    ['n {{a:epoch}}', ['n ', { source: 'a:epoch', paths: ['a'], cast: 'epoch' }]],
    ['{{a:json}}', [{ source: 'a:json', paths: ['a'], cast: 'json' }]],
    ['{{x-y.$z_1}}', [{ source: 'x-y.$z_1', paths: ['x-y.$z_1'] }]],
    ['{{body["a.b"][0]}}', [{ source: 'body["a.b"][0]', paths: ['body["a.b"][0]'] }]],
    ["{{query['$top']:int}}", [{ source: "query['$top']:int", paths: ["query['$top']"], cast: 'int' }]],
    ['\\{{a}}', ['{{a}}']],
    ['a\\{{b}}{{c}}', ['a{{b}}', { source: 'c', paths: ['c'] }]],
    ['{"q":{{a}}}', ['{"q":', { source: 'a', paths: ['a'] }, '}']],
    ['}} {', ['}} {']],
  ])('%s', (text, expected) => {
    const lexed = lexTemplate(text)
    const parts = lexed.kind === 'parts' ? lexed.parts : []
    const simple = parts.map((part) => {
      if (typeof part === 'string') return part
      const { source, paths, defaultText, cast } = part
      return JSON.parse(JSON.stringify({ source, paths: paths.map((path) => path.text), defaultText, cast }))
    })
    expect(lexed.kind).toBe('parts')
    expect(simple).toEqual(expected)
  })
})

describe('a text that is not a template has a problem', () => {
  test.each([
    ['{{a', 'without closing'],
    ['{{}}', 'names nothing'],
    ['{{a|}}', 'names nothing'],
    ['{{a b}}', 'is not a path'],
    ['{{a..b}}', 'is not a path'],
    ['{{a[x]}}', 'is not a path'],
    ['{{.a}}', 'is not a path'],
    ['{{a:datum}}', 'unknown cast'],
    ['{{a:date(yyyy-MM-dd)}}', 'its parts are YYYY, MM, DD'],
    ['{{a:date(DD.MM)}}', 'YYYY is one of them'],
    ['{{a:date()}}', 'YYYY is one of them'],
    ['{{"a"}}', 'is not a path'],
    ['n {{a:int}}', 'needs the placeholder to be the whole text'],
    ['{{a|b|c|d|e|f|g|h|i}}', 'more than 8 alternatives'],
  ])('%s', (text, problem) => {
    const lexed = lexTemplate(text)
    expect(lexed.kind === 'problem' && lexed.description).toContain(problem)
  })
})

test('named roots are distinguished from bare names', () => {
  const lexed = lexTemplate('{{context.subdomain|subdomain}}')
  const [part] = lexed.kind === 'parts' ? lexed.parts : []
  const paths = typeof part === 'object' ? part.paths : []
  expect(paths.map(({ root, steps }) => [root, steps])).toEqual([
    ['context', ['subdomain']],
    [undefined, ['subdomain']],
  ])
})

test('no text makes the lexer throw, and literals come back as they were', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      const lexed = lexTemplate(text)
      if (lexed.kind === 'parts' && !text.includes('{{')) expect(lexed.parts.join('')).toBe(text)
    }),
    { numRuns: caseCount(60, 300) },
  )
})
