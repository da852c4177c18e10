import { generateKeyPairSync, verify } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { createEvaluator } from '../../../../src/engine/expressions/index.ts'
import type { QuarantineEvent } from '../../../../src/engine/expressions/sandbox-evaluation.ts'
import { Failure } from '../../../../src/foundation/base/index.ts'
import type { Json, JsonObject } from '../../../../src/foundation/json/index.ts'
import { caseCount, someCases } from '../../../support/case-count.ts'
import { bindingsFrom, expressionText, roots } from './expression-generator.ts'
import { ESCAPING, EXHAUSTING } from './malicious-expressions.ts'
import { evaluateWithJsonata, outcomeOf } from './reference-evaluator.ts'

const evaluator = createEvaluator({ poolSize: 2 })
afterAll(() => evaluator[Symbol.asyncDispose]())

const RESPONSE: JsonObject = {
  response: {
    status: 429,
    headers: { 'retry-after': '7', 'x-limit': '100' },
    body: {
      items: [
        { id: 1, open: true },
        { id: 2, open: false },
      ],
      error: { message: 'slow down' },
      next: null,
    },
  },
}

function evaluate(text: string, input: JsonObject = RESPONSE): Promise<Json | undefined> {
  return evaluator.evaluate(text, input)
}

/** Of each input the value, or the failure. */
async function evaluateEach(text: string, inputs: readonly JsonObject[], options = {}) {
  const [column] = await evaluator.evaluateAll([text], inputs, options)
  return inputs.map((_input, at) => {
    const failure = column?.failures.get(at)
    return failure === undefined ? { value: column?.values[at] } : { failure }
  })
}

async function failureOf(promise: Promise<unknown>): Promise<Failure> {
  const error = await promise.then(
    (value) => `gave ${JSON.stringify(value)}`,
    (thrown) => thrown,
  )
  if (error instanceof Failure) return error
  throw new Error(`expected a Failure: ${error}`)
}

describe('evaluateAll', () => {
  const inputs = [{ a: 'x1' }, { a: 7 }, {}, { a: 'x2' }]

  it.each([
    ['inline', '$uppercase(a)'],
    ['in the sandbox', '$uppercase($replace(a, /x/, "x"))'],
  ])('gives each input its own result, %s', async (_lane, text) => {
    const results = await evaluateEach(text, inputs)
    expect(results.map((result) => ('failure' in result ? result.failure.reason : result.value))).toEqual([
      'X1',
      'EXPRESSION_FAILED',
      undefined,
      'X2',
    ])
  })

  it('binds the same variables for all', async () => {
    const bindings = { ctx: { zone: 'UTC' } }
    const results = await evaluateEach('$join([a, $ctx.zone], "/")', [{ a: '1' }, { a: '2' }], { bindings })
    expect(results).toEqual([{ value: '1/UTC' }, { value: '2/UTC' }])
  })

  it('keeps the results before and after an input that takes too long', async () => {
    const text = '($f := function($n) { $n = 0 ? 0 : $f($n - 1) }; $f(n))'
    const results = await evaluateEach(text, [{ n: 1 }, { n: -1 }, { n: 2 }])
    expect(results[0]).toEqual({ value: 0 })
    expect(results[1]).toMatchObject({ failure: { reason: 'EXPRESSION_FAILED' } })
    expect(results[2]).toEqual({ value: 0 })
  })

  it('rejects when the expression does not parse', async () => {
    expect((await failureOf(evaluateEach('a b', inputs))).reason).toBe('EXPRESSION_FAILED')
  })

  it('fails the one input that is too large, and sends the others in several requests', async () => {
    const long = (length: number) => ({ a: 'x'.repeat(length) })
    const results = await evaluateEach('$count($split(a, /y/))', [long(600), long(600), long(2_000), long(600)], {
      inputBytesMax: 1_000,
    })
    expect(results[2]).toMatchObject({ failure: { metadata: { code: 'INPUT_TOO_LARGE' } } })
    expect([results[0], results[1], results[3]]).toEqual([{ value: 1 }, { value: 1 }, { value: 1 }])
  })

  it('takes no input', async () => {
    expect(await evaluateEach('a', [])).toEqual([])
  })
})

describe('evaluate', () => {
  it.each<[string, Json | undefined]>([
    ['response.status = 429', true],
    ['$number(response.headers."retry-after")', 7],
    [
      'response.body.items',
      [
        { id: 1, open: true },
        { id: 2, open: false },
      ],
    ],
    ['response.body.items[1].id', 2],
    ['response.body.items.id', [1, 2]],
    ['response.body.items[open].id', 1],
    ['response.body.missing', undefined],
    ['response.body.next', null],
    [
      'response.status >= 400 ? {"status": response.status, "message": response.body.error.message}',
      { status: 429, message: 'slow down' },
    ],
    ['$sum(response.body.items.id)', 3],
    ['$map(response.body.items, function($i) { $i.id * 2 })', [2, 4]],
    ['($x := response.status; $x + 1)', 430],
    ['$keys($)', 'response'],
    ['function($x) { $x }', undefined],
    ['[function($x) { $x }, 1]', [null, 1]],
    ['{"f": $sum, "n": 1}', { n: 1 }],
  ])('%s', async (text, expected) => {
    expect(await evaluate(text)).toEqual(expected)
  })

  it('gives the results of JSONata, inline and in the sandbox', async () => {
    await fc.assert(
      fc.asyncProperty(expressionText, roots, roots, async (text, input, others) => {
        const bindings = bindingsFrom(others)
        const ours = await outcomeOf(evaluator.evaluate(text, input, { bindings }))
        expect(ours, text).toBe(await outcomeOf(evaluateWithJsonata(text, input, bindings)))
      }),
      { numRuns: caseCount(100, 2_000) },
    )
  })

  it.each([
    ['$previous.id', 7],
    ['$previous.tags[0]', 'a'],
    ['$sum([$previous.id, 1])', 8],
    ['$map($previous.tags, function($tag) { $tag & response.status })', ['a429', 'b429']],
    ['$exists($steps)', false],
    ['$other', undefined],
  ])('resolves bound variables: %s', async (text, expected) => {
    const bindings = { previous: { id: 7, tags: ['a', 'b'] } }
    expect(await evaluator.evaluate(text, RESPONSE, { bindings })).toEqual(expected)
  })

  it('forgets what was bound before', async () => {
    const text = '$count([$secret, 1])'
    expect(await evaluator.evaluate(text, {}, { bindings: { secret: 's' } })).toBe(2)
    expect(await evaluator.evaluate(text, {})).toBe(1)
  })

  it('does not change the roots', async () => {
    const before = JSON.stringify(RESPONSE)
    await evaluate('$ ~> |response|{"status": 1}|')
    await evaluate('$sort(response.body.items, function($a, $b) { $a.id < $b.id })')
    expect(JSON.stringify(RESPONSE)).toBe(before)
  })

  it('starts nothing for cheap expressions', async () => {
    const startSandbox = vi.fn()
    await using lazy = createEvaluator({ startSandbox })
    expect(await lazy.evaluate('response.body.items[0].id', RESPONSE)).toBe(1)
    expect(await lazy.evaluate('$previous.id = 1', {}, { bindings: { previous: { id: 1 } } })).toBe(true)
    expect(startSandbox).not.toHaveBeenCalled()
  })
})

describe('a failing expression', () => {
  it.each([
    ['a +', 'S0207', '3'],
    ['"a" + 1', 'T2001', '5'],
    ['$sum("x")', 'T0412', '5'],
    ['{"k": 1, "k": 2}', 'D1009', '1'],
    ['$error("out of cheese")', 'D3137', '7'],
    ['$hash("x", "rot13")', 'ARGUMENT', '6'],
    ['1/0', 'D1001', undefined],
  ])('names code and position: %s', async (text, code, position) => {
    const failure = await failureOf(evaluate(text))
    expect(failure).toMatchObject({ reason: 'EXPRESSION_FAILED', metadata: { code } })
    expect(failure.metadata.position).toBe(position)
  })

  it('passes on the author’s own words', async () => {
    const failure = await failureOf(evaluate('$error("out of " & "cheese")'))
    expect(failure.publicMessage).toBe('the expression failed at position 7: out of cheese')
  })

  it.each(['$number(token)', 'token + 1', '{token: 1, $string(token): 2}', '$sort([token, 1])^($)', '-token'])(
    'does not repeat values of the input: %s',
    async (text) => {
      const failure = await failureOf(evaluate(text, { token: 'sk_live_12345' }))
      expect(`${failure.message} ${JSON.stringify(failure.metadata)}`).not.toContain('sk_live')
    },
  )

  it('fails when the input is larger than allowed, and not before', async () => {
    const text = '$count($each($, function($value) { $value }))'
    const fits = { a: 'é'.repeat(500_000) }
    expect(await evaluator.evaluate(text, fits)).toBe(1)
    const large = { a: 'é'.repeat(600_000) }
    expect((await failureOf(evaluator.evaluate(text, large))).metadata).toEqual({ code: 'INPUT_TOO_LARGE' })
    const bound = { bindings: large }
    expect((await failureOf(evaluator.evaluate(text, {}, bound))).metadata).toEqual({ code: 'INPUT_TOO_LARGE' })
    expect(await evaluator.evaluate(text, large, { inputBytesMax: 5_000_000 })).toBe(1)
  })

  it('fails when the result is larger than allowed, and not before', async () => {
    const text = '[1..20].$pad("é", 30000)'
    expect(await evaluator.evaluate(text, {})).toHaveLength(20)
    const failure = await failureOf(evaluator.evaluate(text, {}, { resultBytesMax: 100_000 }))
    expect(failure.metadata).toEqual({ code: 'RESULT_TOO_LARGE' })
  })

  it('takes an object of many members', async () => {
    const members = Array.from({ length: 400 }, (_, i) => `"k${i}": $sum([${i}])`).join(', ')
    expect(Object.keys((await evaluate(`{${members}}`)) as JsonObject)).toHaveLength(400)
  })
})

describe('the functions of this product', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const ed = generateKeyPairSync('ed25519')
  const keys = { rsa, ec, ed }
  const pem = (name: keyof typeof keys) => keys[name].privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

  it.each<[string, Json | undefined]>([
    // RFC 4231, test case 2.
    [
      '$hmac("what do ya want for nothing?", "Jefe")',
      '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    ],
    [
      '$hmac("what do ya want for nothing?", "4a656665", "sha256", "base64", "hex")',
      'W9zBRr9gdU5qBCQmCJV1x1oAPwidJzmDnexYuWTsOEM=',
    ],
    ['$hash("abc", "sha1")', 'a9993e364706816aba3e25717850c26c9cd0d89d'],
    ['$hash("abc", "sha256", "base64url")', 'ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0'],
    ['$base64url("a?>é")', 'YT8-w6k'],
    ['$hmac(missing, "k")', undefined],
    ['$hash(missing)', undefined],
    ['$parseDate("2024-02-29")', 1_709_164_800_000],
    ['$parseDate("2024-02-29T12:00:00")', 1_709_208_000_000],
    ['$parseDate("2024-02-29 13:00:00.5+0100")', 1_709_208_000_500],
    ['$parseDate("Thu, 29 Feb 2024 12:00:00 GMT")', 1_709_208_000_000],
    ['$parseDate("Thursday, 29-Feb-24 12:00:00 GMT")', 1_709_208_000_000],
    ['$parseDate(1709208000)', 1_709_208_000_000],
    ['$parseDate("1709208000.25")', 1_709_208_000_250],
    ['$parseDate(1709208000123)', 1_709_208_000_123],
    ['$parseDate("30")', undefined],
    ['$parseDate("soon")', undefined],
    ['$parseDate("2024-13-45")', undefined],
    ['$pad("x", 5, "ab")', 'xabab'],
    ['$pad("x", -3)', '  x'],
    ['$pad("é𝄞", 3, "")', 'é𝄞 '],
    ['$pad("long", 2)', 'long'],
    ['$fromMillis($toMillis("2024-02-29T12:00:00"))', '2024-02-29T12:00:00.000Z'],
  ])('%s', async (text, expected) => {
    expect(await evaluate(text)).toEqual(expected)
  })

  it('$uuid gives another version 4 each time', async () => {
    const ids = (await evaluate('[1..50].$uuid()')) as string[]
    expect(new Set(ids).size).toBe(50)
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  })

  it('$jwtSign makes the token of RFC 7515 for a shared secret', async () => {
    const token = await evaluate('$jwtSign({"sub": "1"}, "secret", "HS256", {"kid": "k1", "alg": "none"})')
    const [header = '', claims = '', signature] = String(token).split('.')
    expect(JSON.parse(Buffer.from(header, 'base64url').toString())).toEqual({ kid: 'k1', alg: 'HS256', typ: 'JWT' })
    expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toEqual({ sub: '1' })
    expect(signature).toBe(await evaluate(`$hmac("${header}.${claims}", "secret", "sha256", "base64url")`))
  })

  it.each([
    ['RS256', 'rsa', 'sha256', {}],
    ['PS256', 'rsa', 'sha256', { padding: 6 }],
    ['ES256', 'ec', 'sha256', { dsaEncoding: 'ieee-p1363' }],
    ['EdDSA', 'ed', null, {}],
  ] as const)('$jwtSign makes an %s signature that verifies', async (algorithm, name, digest, options) => {
    const token = await evaluator.evaluate('$jwtSign({"sub": "1"}, key, algorithm)', { key: pem(name), algorithm })
    const [header, claims, signature = ''] = String(token).split('.')
    const key = { key: keys[name].publicKey, ...options }
    expect(verify(digest, Buffer.from(`${header}.${claims}`), key, Buffer.from(signature, 'base64url'))).toBe(true)
  })

  it('$jwtSign does not repeat a key it cannot read', async () => {
    const failure = await failureOf(evaluate('$jwtSign({"a": 1}, "-----BEGIN sk_live_1", "RS256")'))
    expect(failure.publicMessage).not.toContain('sk_live')
  })
})

describe('malicious expressions', () => {
  it('cost a process at most, and come to an end', async () => {
    await using sandbox = createEvaluator({ poolSize: 2 })
    for (const { attack, text } of someCases(EXHAUSTING, 6)) {
      await outcomeOf(sandbox.evaluate(text, { a: 1 }, { owner: attack, timeoutMs: 100 }))
    }
    expect(await sandbox.evaluate('$sum([1, 2])', {})).toBe(3)
  })

  it.each(ESCAPING)('find no way out: $attack', async ({ text }) => {
    await outcomeOf(evaluate(text, { a: { b: 1 } }))
    expect(Object.prototype).not.toHaveProperty('polluted')
    expect(await evaluate('$count($keys({}.polluted)) + $count(polluted)', {})).toBe(0)
    const result = await evaluate(`$type(${text})`, { a: { b: 1 } }).catch(() => 'failed')
    expect(['failed', 'string', 'object', 'function', 'array', undefined]).toContain(result)
  })

  it('are quarantined after three kills, for their owner alone, for an hour', async () => {
    const told: QuarantineEvent[] = []
    let now = new Date('2030-01-01T00:00:00Z')
    await using strict = createEvaluator({ clock: { now: () => now }, onQuarantine: (event) => told.push(event) })
    const text = '$contains("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", /^(a+)+$/)'
    const attempt = (owner: string) => failureOf(strict.evaluate(text, {}, { owner, timeoutMs: 50 }))
    for (let i = 0; i < 3; i++) {
      expect(told).toEqual([])
      expect(await attempt('mallory')).toMatchObject({ reason: 'EXPRESSION_FAILED', metadata: { code: 'TIME_LIMIT' } })
    }
    expect(told).toMatchObject([{ owner: 'mallory', expression: text, hash: expect.stringMatching(/^[0-9a-f]{64}$/) }])
    expect(await attempt('mallory')).toMatchObject({
      reason: 'EXPRESSION_QUARANTINED',
      metadata: { until: '2030-01-01T01:00:00.000Z' },
    })
    expect(await attempt('alice')).toMatchObject({ metadata: { code: 'TIME_LIMIT' } })
    expect(await strict.evaluate('$sum([1])', {}, { owner: 'mallory' })).toBe(1)
    now = new Date('2030-01-01T01:00:01Z')
    expect(await attempt('mallory')).toMatchObject({ metadata: { code: 'TIME_LIMIT' } })
    expect(told).toHaveLength(1)
  })

  it('of unverified inputs are quarantined apart from verified ones', async () => {
    await using strict = createEvaluator()
    const text = '$contains(body, /^(a+)+$/)'
    const attempt = (body: string, isUnverified: boolean) =>
      strict.evaluate(text, { body }, { owner: 'alice', timeoutMs: 50, isUnverified })
    for (let i = 0; i < 3; i++)
      expect(await failureOf(attempt(`${'a'.repeat(40)}!`, true))).toMatchObject({ metadata: { code: 'TIME_LIMIT' } })
    expect(await failureOf(attempt('a', true))).toMatchObject({ reason: 'EXPRESSION_QUARANTINED' })
    expect(await attempt('a', false)).toBe(true)
  })

  it('of one owner do not hold up another', async () => {
    await using fair = createEvaluator({ poolSize: 2 })
    await Promise.all([1, 2, 3].map((i) => fair.evaluate(`$sum([${i}])`, {})))
    let finished = 0
    const hog = Array.from({ length: 60 }, async (_, i) => {
      // Different texts: nothing is known of any before it has run.
      const text = `($f := function($n) { $f($n + 1) }; $f(${i}))`
      await outcomeOf(fair.evaluate(text, {}, { owner: 'hog', timeoutMs: 200 }))
      finished++
    })
    for (let i = 0; i < 30; i++) await fair.evaluate('$sum([1, 2])', {}, { owner: 'polite' })
    // Had every polite evaluation waited for one of the hog's, thirty of them would be through.
    expect(finished).toBeLessThan(20)
    await fair[Symbol.asyncDispose]()
    await Promise.all(hog)
  })
})
