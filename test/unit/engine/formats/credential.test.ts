import { describe, expect, test } from 'vitest'
import { fieldList } from '../../../../src/engine/formats/credential/fields.ts'
import { CREDENTIAL_FORMATS, compileCredential } from '../../../../src/engine/formats/credential/registry.ts'
import { collectFields } from '../../../../src/engine/formats/index.ts'
import { CREDENTIAL_ROWS } from './rows/credential.ts'

const METHODS = ['api_key', 'oauth2', 'oauth2_client_credentials', 'vendor_oauth']

describe.each(CREDENTIAL_FORMATS.map((entry) => entry.format))('credentials %s', (format) => {
  const rows = CREDENTIAL_ROWS[format] ?? []

  test('has rows, and an authentication method of the specification', () => {
    expect(rows.length).toBeGreaterThan(0)
    expect(METHODS).toContain(CREDENTIAL_FORMATS.find((entry) => entry.format === format)?.authenticationMethod)
  })

  test.each(rows)('$promise', ({ config, given, secrets = {}, visible = {}, violations }) => {
    const plan = compileCredential({ format, config })
    const collected = collectFields(plan.fields, given, 'credentials')
    if (violations === undefined) expect(collected).toEqual({ kind: 'collected', secrets, visible })
    else
      expect(collected.kind === 'invalid' && collected.violations.map(({ field, rule }) => `${field} ${rule}`)).toEqual(
        violations,
      )
  })
})

test('rows exist for registered formats only', () => {
  const registered = CREDENTIAL_FORMATS.map((entry) => entry.format)
  expect(Object.keys(CREDENTIAL_ROWS).filter((format) => !registered.includes(format))).toEqual([])
})

describe('a field is judged when it is written', () => {
  test.each([
    ['a name that is a placeholder root', { name: 'query' }, 'is reserved'],
    ['a name that no placeholder can say', { name: 'a b' }, 'must start with a letter'],
    ['a choice without options', { name: 'a', type: 'single_select' }, 'needs options'],
    ['options without a choice', { name: 'a', options: [{ value: 'x' }] }, 'only a single_select or multi_select has'],
    ['a pattern that does not parse', { name: 'a', pattern: '(' }, 'is not a regular expression'],
    ['a pattern that refers back', { name: 'a', pattern: '(a)\\1' }, 'no back references'],
    ['a pattern that refers back by name', { name: 'a', pattern: '(?<n>a)\\k<n>' }, 'no back references'],
    ['a pattern that looks ahead', { name: 'a', pattern: '(?=a)b' }, 'no lookaround'],
    ['a pattern that looks behind', { name: 'a', pattern: '(?<!a)b' }, 'no lookaround'],
    ['a pattern too long to compile quickly', { name: 'a', pattern: `(?:${'a'.repeat(490)}){1000}` }, 'too much'],
    ['a pattern with too large a program', { name: 'a', pattern: 'a{0,99}'.repeat(9) }, 'too much'],
    ['a pattern with many wide classes that ignore case', { name: 'a', pattern: '(?i)\\PL\\PL\\pL\\pN\\PL' }, 'ranges'],
    ['a pattern with a wide range that ignores case', { name: 'a', pattern: '(?si:[a-\u{10ffff}])' }, 'ranges'],
    ['a pattern with such a range in hexadecimal', { name: 'a', pattern: '(?i)[\\x41-\\x{10ffff}]' }, 'ranges'],
    ['a pattern with nested repetition', { name: 'a', pattern: '((((a{10}){10}){10}){10}){10}' }, 'too much'],
  ])('%s is rejected', (_what, field, problem) => {
    const parsed = fieldList().safeParse([field])
    expect(parsed.success).toBe(false)
    expect(parsed.error?.issues[0]?.message).toContain(problem)
  })

  test.each([
    '^[a-z0-9-]+$',
    '[*+(){}]{1,5}',
    '\\(\\)+',
    '(?:a|b)',
    '(?:ab)?c',
    '\\d{3}-\\d{4}',
    '(a+)+$',
    'a*b*c*d*',
    '.{1,512}',
    '(?:[a-f0-9]{2}:){5}[a-f0-9]{2}',
    "(?i)[\\p{L}\\p{N} .'-]{1,80}",
    '(?i)[一-龥a-z]+',
    '[a-\u{10ffff}]+\\PL\\PL\\PL\\PL\\PL',
  ])('the pattern %s is fine', (pattern) => {
    expect(fieldList().safeParse([{ name: 'a', pattern }]).success).toBe(true)
  })

  test('two fields of one name are rejected', () => {
    expect(fieldList().safeParse([{ name: 'a' }, { name: 'a' }]).success).toBe(false)
  })
})

test('patterns that are valid alone are rejected when they exceed the limit of a form together', () => {
  const fields = Array.from({ length: 20 }, (_, index) => ({ name: `f${index}`, pattern: `${index}.{1,99}` }))
  expect(fieldList().safeParse(fields.slice(0, 5)).success).toBe(true)
  expect(fieldList().safeParse(fields).error?.issues[0]?.message).toContain('together')
})

// Each of these takes a backtracking engine minutes or years.
test.each([`${'a{0,99}'.repeat(5)}b`, '(\\+\\\\+)+', '(a+)+b', '(?:a|a)*b', '(.*){9}b'])(
  'the pattern %s is decided without backtracking',
  (pattern) => {
    const fields = fieldList().parse([{ name: 'a', pattern }])
    const collected = collectFields(fields, { a: 'a'.repeat(512) }, 'credentials')
    expect(collected.kind).toBe('invalid')
  },
)

test.each([
  ['[a-z]+', 'abc', true],
  ['[a-z]+', 'abc1', false],
  ['a|b', 'ab', false],
  ['.', '😀', true],
  ['\\d{2}', '٣٣', false],
])('the pattern %s matches whole values: %s is %s', (pattern, value, isMatch) => {
  const collected = collectFields(fieldList().parse([{ name: 'a', pattern }]), { a: value }, 'credentials')
  expect(collected.kind === 'collected').toBe(isMatch)
})
