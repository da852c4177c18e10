import { afterAll, describe, expect, it } from 'vitest'
import { evaluateInline } from '../../../../src/engine/expressions/evaluator.ts'
import { createEvaluator } from '../../../../src/engine/expressions/index.ts'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { cpuMsOf } from '../../../support/cpu-time.ts'

const evaluator = createEvaluator({ poolSize: 2 })
afterAll(() => evaluator[Symbol.asyncDispose]())

const INPUT: JsonObject = {
  status: 'OPEN',
  codes: ['A', 'X', 'B'],
  level: 3,
  none: null,
  blank: '',
  list: [],
  contact: { name: 'Ada', email: '', phones: [], address: { city: null }, tags: ['a', '', null] },
  users: [{ id: 7, name: 'Ada' }, { id: 8, name: 'Bob' }, { name: 'Eve' }, { id: 7, name: 'Cy' }],
  html: '<p>Dear &amp; <b>kind</b>&nbsp;A,</p><script>alert("<p>")</script><!-- x --><ul><li>1 &lt; 2<li>two</ul>&#8364;&#x41;&bogus; a<br/>b',
}

describe('functions for mappings', () => {
  it.each<[string, unknown]>([
    ['$mapValue(status, {"OPEN": "open"})', 'open'],
    ['$mapValue(status, {"open": "open"})', undefined],
    ['$mapValue(status, {"open": "open"}, "other")', 'other'],
    ['$mapValue(level, {"3": "high"})', 'high'],
    ['$mapValue(codes, {"A": 1, "B": 2})', [1, 2]],
    ['$mapValue(missing, {"A": 1}, "other")', undefined],
    ['$mapValue(none, {"A": 1}, "other")', undefined],
    ['$mapValue("constructor", {"A": 1})', undefined],
    ['$mapValue(status, "OPEN")', undefined],
    ['$firstNonEmpty(missing, none, blank, list, contact.address, level)', { city: null }],
    ['$firstNonEmpty(missing, none, blank, list, {}, level, status)', 3],
    ['$firstNonEmpty(false, status)', false],
    ['$firstNonEmpty(missing)', undefined],
    ['$removeEmpty(contact)', { name: 'Ada', tags: ['a'] }],
    ['$removeEmpty([blank, none, 0, false])', [0, false]],
    ['$removeEmpty({"a": {"b": [null]}})', undefined],
    ['$pick(contact, ["name", "phones", "missing"])', { name: 'Ada', phones: [] }],
    ['$pick(contact, "name")', { name: 'Ada' }],
    ['$pick(status, "name")', undefined],
    ['$omit(contact, ["email", "phones", "address", "tags"])', { name: 'Ada' }],
    ['$compact(contact.tags)', ['a']],
    ['$compact(status)', ['OPEN']],
    ['$compact(none)', []],
    ['$compact(missing)', undefined],
    ['$keyBy(users, "id")', { 7: { id: 7, name: 'Cy' }, 8: { id: 8, name: 'Bob' } }],
    ['$lookup($keyBy(users, "id"), "8").name', 'Bob'],
    ['$isoDate("2024-01-31")', '2024-01-31T00:00:00.000Z'],
    ['$isoDate("2024-01-31T10:15:00+02:00")', '2024-01-31T08:15:00.000Z'],
    ['$isoDate("2024-01-31 10:15:00")', '2024-01-31T10:15:00.000Z'],
    ['$isoDate("2024-01-31 10:15:00", "America/New_York")', '2024-01-31T15:15:00.000Z'],
    ['$isoDate("2024-07-01 10:15:00", "America/New_York")', '2024-07-01T14:15:00.000Z'],
    ['$isoDate("2024-07-01", "Europe/Berlin")', '2024-06-30T22:00:00.000Z'],
    ['$isoDate("2024-01-31T10:15:00Z", "America/New_York")', '2024-01-31T10:15:00.000Z'],
    ['$isoDate("2024-01-31 10:15:00", "Mars/Base")', undefined],
    ['$isoDate(1706696100)', '2024-01-31T10:15:00.000Z'],
    ['$isoDate(1706696100000)', '2024-01-31T10:15:00.000Z'],
    ['$isoDate("1706696100000")', '2024-01-31T10:15:00.000Z'],
    ['$isoDate("/Date(1706696100000+0100)/")', '2024-01-31T10:15:00.000Z'],
    ['$isoDate("Wed, 31 Jan 2024 10:15:00 GMT")', '2024-01-31T10:15:00.000Z'],
    ['$isoDate("2024-02-30 10:15:00")', undefined],
    ['$isoDate("soon")', undefined],
    ['$isoDate(none)', undefined],
    ['$dateOnly("2024-01-31T23:00:00-08:00")', '2024-01-31'],
    ['$dateOnly("2024-01-31")', '2024-01-31'],
    ['$dateOnly("2024-02-30")', undefined],
    ['$dateOnly("0000-01-01")', undefined],
    ['$isoDate("0000-01-01T00:00:00Z")', undefined],
    ['$dateOnly(1706696100)', '2024-01-31'],
    ['$dateOnly("/Date(1706696100000)/")', '2024-01-31'],
    ['$dateOnly("today")', undefined],
    ['$decimal(1e21)', '1000000000000000000000'],
    ['$decimal(1e-7)', '0.0000001'],
    ['$decimal("12.50")', '12.50'],
    ['$decimal("-0012.50")', '-12.50'],
    ['$decimal(".5")', '0.5'],
    ['$decimal("1,250")', undefined],
    ['$decimal("-0")', '0'],
    ['$decimal(none)', undefined],
    ['$minorToDecimal(1250)', '12.50'],
    ['$minorToDecimal(5)', '0.05'],
    ['$minorToDecimal(-5, 3)', '-0.005'],
    ['$minorToDecimal("1250", 0)', '1250'],
    ['$minorToDecimal(1250, -1)', undefined],
    ['$decimalToMinor("12.50")', 1250],
    ['$decimalToMinor(0.29)', 29],
    ['$decimalToMinor("12.505")', undefined],
    ['$decimalToMinor("12.500", 2)', 1250],
    ['$decimalToMinor("-1", 3)', -1000],
    ['$decimalToMinor("99999999999999999999")', undefined],
    ['$htmlToText(html)', 'Dear & kind A,\n1 < 2\ntwo\n€A&bogus; a\nb'],
    ['$htmlToText("a < b > c")', 'a < b > c'],
    ['$htmlToText("<p")', ''],
    ['$htmlToText(none)', undefined],
    ['$jsonParse("{\\"a\\": 1}").a', 1],
    ['$jsonParse("{a")', undefined],
    ['$jsonParse(level)', undefined],
    [
      '$parseUrl("https://u:p@Example.com:8443/a%20b?q=1&q=2&r=#top")',
      { scheme: 'https', host: 'example.com', port: 8443, path: '/a%20b', query: { q: '1', r: '' }, fragment: 'top' },
    ],
    ['$parseUrl("no address")', undefined],
    ['users[0].{"id": $decimal(id), "name": $firstNonEmpty(nick, name)}', { id: '7', name: 'Ada' }],
  ])('%s', async (text, expected) => {
    expect(evaluateInline(text, INPUT)).toEqual({ value: expected })
    // A regular expression keeps it out of the inline evaluator.
    expect(await evaluator.evaluate(`($match("a", /b/); ${text})`, INPUT)).toEqual(expected)
  })

  it.each<[string, string, JsonObject]>([
    ['a long text of tags', '$htmlToText(a)', { a: '<'.repeat(200_000) }],
    ['unclosed scripts', '$htmlToText(a)', { a: '<script>'.repeat(25_000) }],
    ['unclosed comments', '$htmlToText(a)', { a: '<!--'.repeat(50_000) }],
    ['closing tags of other scripts', '$htmlToText(a)', { a: `<script>${'</style>'.repeat(25_000)}` }],
    ['many ampersands', '$htmlToText(a)', { a: '&'.repeat(200_000) }],
    ['many blanks', '$htmlToText(a)', { a: ' '.repeat(200_000) }],
    ['deep JSON', '$jsonParse(a)', { a: '['.repeat(200_000) }],
    ['a long decimal', '$decimal(a)', { a: '9'.repeat(200_000) }],
    ['a large exponent', '$decimal(a)', { a: '1e9999' }],
    ['a long date', '$isoDate(a)', { a: '1'.repeat(200_000) }],
    ['a long address', '$parseUrl(a)', { a: `https://a/${'b'.repeat(200_000)}` }],
    ['a deep object', '$removeEmpty(a)', { a: nested(3_000) }],
  ])('end soon with %s', (_what, text, input) => {
    expect(cpuMsOf(() => evaluateInline(text, input))).toBeLessThan(100)
  })

  it.each<[string, string, JsonObject]>([
    ['$removeEmpty', `[${Array(60).fill('$removeEmpty(a)').join()}]`, { a: Array(50_000).fill(1) }],
    ['$htmlToText', `[${Array(60).fill('$htmlToText(a)').join()}]`, { a: 'x'.repeat(50_000) }],
    ['$keyBy', 'a.($keyBy($$.a, "b"))', { a: Array(2_000).fill({ b: 1 }) }],
    ['$mapValue', 'a.($mapValue($$.a, {"x": 1}))', { a: Array(2_000).fill('x') }],
    ['data that poses as a function', '$jsonParse(a)', { a: '{"_jsonata_lambda": true}' }],
  ])('leave to the sandbox what %s would take long for', (_what, text, input) => {
    expect(evaluateInline(text, input)).toBeUndefined()
  })

  it('do not reach prototypes', () => {
    const input = JSON.parse('{"a": {"__proto__": {"x": 1}}, "l": [{"k": "__proto__", "x": 1}]}')
    expect(JSON.stringify(evaluateInline('$pick(a, "__proto__")', input)?.value)).toBe('{"__proto__":{"x":1}}')
    expect(evaluateInline('$keyBy(l, "k").x', input)).toEqual({ value: undefined })
    expect(evaluateInline('$mapValue("toString", a)', input)).toEqual({ value: undefined })
    expect(({} as Record<string, unknown>).x).toBeUndefined()
  })
})

function nested(depth: number): JsonObject {
  let value: JsonObject = { a: '' }
  for (let level = 0; level < depth; level++) value = { a: value }
  return value
}
