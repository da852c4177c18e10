import { describe, expect, it } from 'vitest'
import { validateExpression } from '../../../../src/engine/expressions/parse.ts'
import { cpuMsOf } from '../../../support/cpu-time.ts'
import { ESCAPING, EXHAUSTING } from './malicious-expressions.ts'

describe('parseExpression', () => {
  it.each([
    'a.b[0].c',
    '$.data.items',
    '(status = 429) ? {"retry_after": $number(headers."retry-after")}',
    'items[status = "open"].{"id": id, "name": name ?? "none"}',
    '($x := a ?: b; $map(items, function($i) { $i.id & $x }))',
    'a ?? b ?? c ?? d ?? e ?? f ?? g ?? h ?? i ?? j ?? k ?? l',
    `{${Array.from({ length: 60 }, (_, i) => `"k${i}": body.some.path.field${i} ?? defaults.field${i} ?: "x"`).join(', ')}}`,
    '/[a-z]+/i',
  ])('takes %s', (text) => {
    expect(validateExpression(text)).toEqual({ ok: true })
  })

  it.each([
    ['', 'S0207', 0],
    ['a +', 'S0207', 3],
    ['a b', 'S0201', 3],
    ['(a', 'S0203', 2],
    ['"a', 'S0101', 2],
    ['a.1', 'S0213', 3],
    ['/a**/', 'SYNTAX', 0],
    ['function($x) { $x', 'S0203', 17],
  ])('rejects %j with %s at %i', (text, code, position) => {
    expect(validateExpression(text)).toMatchObject({ code, position, problem: expect.stringMatching(/\w/) })
  })

  it('reports the position', () => {
    expect(validateExpression('a b')).toMatchObject({ problem: 'Syntax error: "b" at position 3' })
  })

  it.each([
    ['16 KiB', `"${'x'.repeat(16_382)}"`, `"${'x'.repeat(16_383)}"`, 'TOO_LONG'],
    ['200 levels', `${'['.repeat(199)}1${']'.repeat(199)}`, `${'['.repeat(200)}1${']'.repeat(200)}`, 'TOO_DEEP'],
    ['1500 dots', `a${'.a'.repeat(1_500)}`, `a${'.a'.repeat(1_501)}`, 'TOO_COMPLEX'],
  ])('allows %s and not one more', (_limit, allowed, rejected, code) => {
    expect(validateExpression(allowed)).toEqual({ ok: true })
    expect(validateExpression(rejected)).toMatchObject({ code })
  })

  it('takes a fraction of a second for any text', () => {
    for (const { attack, text } of [...EXHAUSTING, ...ESCAPING]) {
      expect(
        cpuMsOf(() => validateExpression(text)),
        attack,
      ).toBeLessThan(500)
    }
  })

  it('leaves the parser as it found it after a text that was too complex', () => {
    const bomb = EXHAUSTING.find(({ attack }) => attack === 'nests defaults in the parser')?.text ?? ''
    expect(validateExpression(bomb)).toMatchObject({ code: 'TOO_COMPLEX' })
    expect(validateExpression('a ?: b')).toEqual({ ok: true })
  })
})
