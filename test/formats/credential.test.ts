import { describe, expect, test } from 'vitest'
import { CREDENTIAL_FORMATS, collectFields, compileCredential, fieldList } from '../../src/formats/index.ts'
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
      expect(collected.kind === 'refused' && collected.violations.map(({ field, rule }) => `${field} ${rule}`)).toEqual(
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
    ['options without a choice', { name: 'a', options: [{ value: 'x' }] }, 'only a single_select has'],
    ['a pattern that does not parse', { name: 'a', pattern: '(' }, 'is not a regular expression'],
    ['a pattern that can take for ever', { name: 'a', pattern: '(a+)+$' }, 'must not repeat a group'],
    ['a pattern that repeats a group lazily', { name: 'a', pattern: '(?:a|a)*?b' }, 'must not repeat a group'],
    ['a pattern that refers back', { name: 'a', pattern: '(a)\\1' }, 'back references'],
    ['a pattern with many repetitions', { name: 'a', pattern: 'a*b*c*d*' }, 'more than 3'],
  ])('%s is refused', (_what, field, problem) => {
    const parsed = fieldList().safeParse([field])
    expect(parsed.success).toBe(false)
    expect(parsed.error?.issues[0]?.message).toContain(problem)
  })

  test.each(['^[a-z0-9-]+$', '[*+(){}]{1,5}', '\\(\\)+', '(?:a|b)', '(?:ab)?c', '\\d{3}-\\d{4}'])(
    'the pattern %s is fine',
    (pattern) => {
      expect(fieldList().safeParse([{ name: 'a', pattern }]).success).toBe(true)
    },
  )

  test('two fields of one name are refused', () => {
    expect(fieldList().safeParse([{ name: 'a' }, { name: 'a' }]).success).toBe(false)
  })
})

test('the slowest pattern that is allowed answers in time', () => {
  const fields = fieldList().parse([{ name: 'a', pattern: 'a*a*a*b' }])
  const start = performance.now()
  const collected = collectFields(fields, { a: 'a'.repeat(512) }, 'credentials')
  expect(collected.kind).toBe('refused')
  expect(performance.now() - start).toBeLessThan(2_000)
})
