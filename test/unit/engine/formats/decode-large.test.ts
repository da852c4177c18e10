import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CharsetError, decodeLarge, responseFormat } from '../../../../src/engine/formats/index.ts'
import { JsonTextError, parseJson, parseJsonInSlices } from '../../../../src/foundation/json/index.ts'
import { caseCount } from '../../../support/case-count.ts'
import { turnsDuring } from '../../../support/event-loop-turns.ts'

const SLICE = 64 * 1024

/** Either the value or that there is none. */
async function outcome(parsing: () => Promise<unknown>): Promise<unknown> {
  try {
    return { value: await parsing() }
  } catch {
    return 'rejected'
  }
}

const inSlices = (text: string) => outcome(() => parseJsonInSlices(text))
const atOnce = (text: string) => outcome(async () => parseJson(text))

/** JSON values with parts longer than a slice, as text with blanks. */
const long = fc.tuple(
  fc.constantFrom('"a', '1, ', '1.10, ', '12345678901234567890, ', '{"k": [1]}, ', ' '),
  fc.integer({ min: 30_000, max: 90_000 }),
)
const filler = long.map(([unit, length]) => {
  const repeated = unit.repeat(length / unit.length)
  return unit === '"a' ? `"${'a'.repeat(length)}"` : unit === ' ' ? `[${repeated}]` : `[${repeated}0]`
})
const json: fc.Arbitrary<string> = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.json({ maxDepth: 2 }),
    filler,
    fc.array(tie('value'), { maxLength: 4 }).map((items) => `[ ${items.join(' ,\n')} ]`),
    fc
      .array(fc.tuple(fc.constantFrom('a', '__proto__', '1', 'b"\\', 'a', 'é'), tie('value')), { maxLength: 4 })
      .map((entries) => `{${entries.map(([key, item]) => `${JSON.stringify(key)} : ${item}`).join(', ')}\t}`),
  ),
})).value

describe('JSON in slices', () => {
  it('reads what parseJson reads', async () => {
    await fc.assert(
      fc.asyncProperty(json, async (text) => {
        expect(await inSlices(text)).toEqual(await atOnce(text))
      }),
      { numRuns: caseCount(10, 100) },
    )
  })

  it('rejects what parseJson rejects, with the fault anywhere', async () => {
    const damage = fc.tuple(json, fc.nat(), fc.constantFrom('', ',', ']', '}', '[', '{', ':', '"', '\\', '1', '\u00a0'))
    await fc.assert(
      fc.asyncProperty(damage, async ([text, place, replacement]) => {
        const at = place % (text.length + 1)
        const damaged = text.slice(0, at) + replacement + text.slice(at + 1)
        expect(await inSlices(damaged)).toEqual(await atOnce(damaged))
      }),
      { numRuns: caseCount(15, 150) },
    )
  })

  const big = `[${'1,'.repeat(SLICE)}1]`
  it.each([
    ['a comma at the end', `${big.slice(0, -1)},]`],
    ['a comma behind a long entry', `[${big},]`],
    ['no comma between long entries', `[${big} ${big}]`],
    ['a comma before a long entry only', `[,${big}]`],
    ['two values', `${big}${big}`],
    ['brackets that do not match', `${big.slice(0, -1)}}`],
    ['no end', big.slice(0, -1)],
    ['no colon', `{"a" ${big}}`],
    ['no key', `{${big}}`],
    ['a no-break space', `[\u00a0${big}]`],
    ['nesting without end', '['.repeat(SLICE * 2)],
  ])('rejects %s', async (_what, text) => {
    expect(await inSlices(text)).toBe('rejected')
  })

  it('keeps the order of keys and __proto__ as a key', async () => {
    const text = `{"b": ${big}, "__proto__": ${big}, "a": {"__proto__": 1}}`
    const value = (await parseJsonInSlices(text)) as Record<string, unknown>
    expect(Object.keys(value)).toEqual(['b', '__proto__', 'a'])
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
  })

  it('lets other work have its turn', async () => {
    const text = `[${'{"a":1},'.repeat(SLICE)}1]`
    expect(await turnsDuring(() => parseJsonInSlices(text))).toBeGreaterThan(1)
  })

  const members = (count: number) => `{${Array.from({ length: count }, (_, index) => `"${index}k":1`).join(',')}}`
  it.each([
    ['an object with 65 536 members', members(65_536)],
    ['a list of 1 000 000 elements', `[${'1,'.repeat(999_999)}1]`],
    ['a text of 2 MiB', `["${'1'.repeat(2_097_152)}"]`],
  ])('reads %s', async (_what, text) => {
    expect(await inSlices(text)).not.toBe('rejected')
  })

  it.each([
    ['an object with one member more', members(65_537), 'an object of more than 65536 members'],
    ['a list with one element more', `{"a":[${'1,'.repeat(1_000_000)}1]}`, 'a list of more than 1000000 elements'],
    ['a number of 2 MiB', `[${'1'.repeat(2_097_152)}]`, 'a number or blanks of more than 1048576 characters'],
    ['2 MiB of blanks', `[1,${' '.repeat(2_097_152)}1]`, 'a number or blanks of more than 1048576 characters'],
  ])('rejects what would hold the event loop: %s', async (_what, text, problem) => {
    await expect(parseJsonInSlices(text)).rejects.toThrow(new JsonTextError('size', `holds ${problem}`))
  })
})

describe('a large body', () => {
  const rows = 2_000
  it.each([
    ['csv', `a,b\n${'1,x\n'.repeat(rows * 4)}`],
    ['xml', `<r>${'<a b="1">x</a>'.repeat(rows)}</r>`],
    ['ndjson', '{"a":1}\n'.repeat(rows * 2)],
    ['json', `[${'{"a":1},'.repeat(rows * 2)}1]`],
    ['text', 'x'.repeat(rows * 10)],
  ])('of format %s is read as a small one is', async (name, text) => {
    const format = responseFormat(name)
    expect(await decodeLarge(format, Buffer.from(text), undefined, { owner: 'one' })).toEqual(
      format.decode(Buffer.from(text)),
    )
  })

  it.each(['csv', 'xml', 'ndjson', 'json', 'text'])('of format %s is decoded by its charset', async (name) => {
    const one = { csv: 'a\n\xe9\n', xml: '', ndjson: '{"a":"\xe9"}\n', json: '', text: '\xe9' }[name] ?? ''
    const many = { xml: `<r>${'<a>\xe9</a>'.repeat(rows)}</r>`, json: `[${'"\xe9",'.repeat(rows * 20)}1]` }[name]
    const body = Buffer.from(many ?? one.repeat(rows * 10), 'latin1')
    const format = responseFormat(name)
    expect(await decodeLarge(format, body, 'iso-8859-1', { owner: 'one' })).toEqual(format.decode(body, 'iso-8859-1'))
    await expect(decodeLarge(format, body, 'utf-8', { owner: 'one' })).rejects.toThrow(CharsetError)
  })

  it('keeps the digits of its numbers', async () => {
    const body = Buffer.from('{"a":12345678901234567890,"b":1.10}\n'.repeat(rows))
    const read = (await decodeLarge(responseFormat('ndjson'), body, undefined, { owner: 'one' })) as unknown[]
    expect(JSON.stringify(read[0])).toBe('{"a":12345678901234567890,"b":1.10}')
  })

  it('that is nested too deeply is rejected like a small one', async () => {
    const line = `${'['.repeat(300)}${']'.repeat(300)}\n`
    const body = Buffer.from(line.repeat(40))
    await expect(decodeLarge(responseFormat('ndjson'), body, undefined, { owner: 'one' })).rejects.toThrow(
      new JsonTextError('nesting', 'is nested deeper than 256 levels'),
    )
  })

  it('that is not in its format is rejected with the reason', async () => {
    const body = Buffer.from(`<r>${'<a>'.repeat(8_000)}</r>`)
    await expect(decodeLarge(responseFormat('xml'), body, undefined, { owner: 'one' })).rejects.toThrow(
      'is not well-formed',
    )
  })
})
