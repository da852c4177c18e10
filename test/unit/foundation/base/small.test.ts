import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  backoffMs,
  createSuggester,
  isUuid,
  LazyMap,
  mustBeOneOf,
  newId,
  suggest,
  suggestOneOf,
  systemClock,
  trimEnd,
  wholeSeconds,
} from '../../../../src/foundation/base/index.ts'
import { formatDotPath, getAtPath, parseDotPath, tryParseDotPath } from '../../../../src/foundation/json/index.ts'

describe('LazyMap', () => {
  it('computes the value of a key when it is asked for, once', () => {
    const computed: string[] = []
    const map = new LazyMap({ a: 1, b: 2 }, (key, source) => {
      computed.push(key)
      return source * 10
    })
    expect([map.size, map.has('a'), map.has('toString'), [...map.keys()]]).toEqual([2, true, false, ['a', 'b']])
    expect([map.get('b'), map.get('b'), map.get('toString')]).toEqual([20, 20, undefined])
    expect(computed).toEqual(['b'])
  })

  it('throws the error of a value each time', () => {
    const map = new LazyMap({ a: 1 }, () => {
      throw new Error('no value')
    })
    for (let time = 0; time < 2; time++) expect(() => map.get('a')).toThrow('no value')
  })
})

describe('newId', () => {
  it('makes UUIDs of version 7 that sort by the moment they were made', () => {
    const ids = [1, 2, 3, 1_800_000_000_000].map((ms) => newId(ms))
    expect(ids.every(isUuid)).toBe(true)
    expect(ids.every((id) => id[14] === '7' && '89ab'.includes(id.charAt(19)))).toBe(true)
    expect(ids.toSorted()).toEqual(ids)
  })

  it('never repeats, also within one millisecond', () => {
    expect(new Set(Array.from({ length: 10_000 }, () => newId(5))).size).toBe(10_000)
  })

  it('of one millisecond sort in the order in which they were made', () => {
    for (let ms = 100; ms < 120; ms++) {
      const ids = Array.from({ length: 2_000 }, () => newId(ms))
      expect(ids).toEqual(ids.toSorted())
    }
  })
})

describe('a dotted path', () => {
  const value = {
    data: { items: [{ id: 7 }], '0': 'zero' },
    '@odata.nextLink': 'odata',
    'p.q': [{ c: 'dotted' }],
    a: { 'x.y.z': 'deep', 'v.y': { w: 'nested' }, u: {}, 'u.y': 'hidden' },
    'it"s': 'quoted',
    ' ': 'blank',
    名前: { 'é.': 'unicode' },
    $: { x: 'dollar' },
  }

  it.each([
    ['data.items[0].id', 7],
    ['data.items.0.id', 7],
    ['data.0', 'zero'],
    ['data.items[1].id', undefined],
    ['data.items.length', undefined],
    ['constructor', undefined],
    ['', value],
    ['["@odata.nextLink"]', 'odata'],
    ["['@odata.nextLink']", 'odata'],
    ['@odata.nextLink', 'odata'],
    ['$["@odata.nextLink"]', 'odata'],
    ['$.data.items[0].id', 7],
    ['data["items"][0]["id"]', 7],
    ["['p.q'][0].c", 'dotted'],
    ['p.q[0].c', 'dotted'],
    ['a.x.y.z', 'deep'],
    ['a.v.y.w', 'nested'],
    ['a.u.y', undefined],
    ['a["u.y"]', 'hidden'],
    ['["it\\"s"]', 'quoted'],
    [`['it"s']`, 'quoted'],
    ['[" "]', 'blank'],
    ['名前["é."]', 'unicode'],
    ['["$"].x', 'dollar'],
    ['a.x', undefined],
  ])('%j leads to %j', (path, found) => {
    expect(getAtPath(value, parseDotPath(path))).toEqual(found)
  })

  it.each([
    ['', ''],
    ['$', ''],
    ['a..b', 'wildcards and'],
    ['.a.b', 'did you mean a.b?'],
    ['a.b.', ''],
    ['a[b]', ''],
    ['a[-1]', ''],
    ['a["b', ''],
    ['a["b"]c', ''],
    ['@odata\\.nextLink', 'did you mean ["@odata.nextLink"]?'],
    ['next page', 'did you mean ["next page"]?'],
    ['/meta/next~1x', 'did you mean meta.next/x?'],
    ['items[*].id', 'wildcards and'],
    ['items.*.id', 'wildcards and'],
    ['{{context.path}}', 'placeholders have no effect here'],
    ['a`b', ''],
    ['x'.repeat(1025), 'at most 1024 characters'],
  ])('%j is not a path, and a likely one is suggested', (path, hint) => {
    const read = tryParseDotPath(path)
    expect('problem' in read ? read.problem : read).toContain('must be a path such as data.items')
    expect('problem' in read ? read.problem : read).toContain(hint)
  })

  it('is parsed as it was formatted, with any names', () => {
    const step = fc.oneof(
      fc.string({ unit: 'binary', minLength: 1, maxLength: 20 }),
      fc.nat(999),
      fc.constantFrom('$', '*', '/', '"', '\\', 'a.b'),
    )
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 8 }), (path) => {
        expect(tryParseDotPath(formatDotPath(path))).toEqual({ steps: path })
      }),
    )
  })
})

describe('backoffMs', () => {
  const policy = { baseMs: 100, factor: 2, maxMs: 1_000, jitterFloor: 0.5 }

  it.each([
    [1, 0, 50],
    [1, 1, 100],
    [3, 1, 400],
    [9, 1, 1_000],
    [9, 0, 500],
  ])('after attempt %i with chance %d is %i ms', (attempt, chance, ms) => {
    expect(backoffMs(policy, attempt, () => chance)).toBe(ms)
  })
})

describe('trimEnd', () => {
  it.each([
    ['a//', 'a'],
    ['//', ''],
    ['/a/b', '/a/b'],
  ])('%j becomes %j', (text, trimmed) => {
    expect(trimEnd(text, '/')).toBe(trimmed)
  })
})

describe('suggest', () => {
  it('finds swapped and missing letters at the edge of the allowed edits only', () => {
    expect(suggest('authroizatoin', ['authorization'])).toBe(', did you mean authorization?')
    expect(suggest('abcdef', ['abxyef', 'abxdef'])).toBe(', did you mean abxdef?')
    expect(suggest('abcdef', ['abwxyz'])).toBe('')
  })

  it('compares neither long words nor endless lists', () => {
    expect(suggest('a'.repeat(65), ['a'.repeat(65)])).toBe('')
    expect(suggest('name', [...Array.from({ length: 500 }, () => 'x'.repeat(20)), 'name'])).toBe('')
  })

  it('falls silent after the first hundred words of a document', () => {
    const suggester = createSuggester()
    const hints = Array.from({ length: 101 }, () => suggester('naem', ['name']))
    expect(hints.filter((hint) => hint !== '')).toHaveLength(100)
  })

  it.each([
    ['overide', ', did you mean override?'],
    ['naem', ', did you mean name?'],
    ['xyz', ''],
  ])('answers %j with %j', (word, hint) => {
    expect(suggest(word, ['name', 'override', 'base_url'])).toBe(hint)
  })
})

describe('the system clock', () => {
  it('ends a sleep when its signal aborts, and does not begin one that is aborted', async () => {
    const stop = new AbortController()
    const asleep = systemClock.sleep(3_600_000, stop.signal)
    stop.abort()
    await asleep
    await systemClock.sleep(3_600_000, stop.signal)
    expect(stop.signal.aborted).toBe(true)
  })
})

describe('what to write instead of an unknown name', () => {
  const many = Array.from({ length: 21 }, (_, index) => `name-${index}`)
  it.each<[string, readonly string[], string]>([
    ['alpah', ['beta', 'alpha', 'beta'], ', did you mean alpha? There are alpha, beta'],
    ['gamma', ['omicron', 'xi'], '; there are omicron, xi'],
    ['gamma', ['xi'], '; there is xi'],
    ['gamma', [], '; there are none'],
    ['nmae-7', many, ', did you mean name-7?'],
    ['gamma', many, ''],
  ])('%s', (word, known, advice) => expect(suggestOneOf(word, known)).toBe(advice))

  it('of a set of values keeps their order, and lists 20', () => {
    expect(mustBeOneOf('wran', ['info', 'warn'])).toBe('must be one of info, warn, did you mean warn?')
    expect(mustBeOneOf(3, ['warn', 'info'])).toBe('must be one of warn, info')
    expect(mustBeOneOf('x', many)).toMatch(/name-19 and 1 more$/)
  })
})

it.each([
  [0, 0],
  [0.4, 1],
  [1_000, 1],
  [1_001, 2],
  [20_000.000_000_000_004, 20],
  [-1, 0],
])('%f milliseconds are covered by %i seconds', (ms, seconds) => {
  expect(wholeSeconds(ms) + 0).toBe(seconds)
})
