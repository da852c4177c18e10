import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { arrayLiteral } from '../../src/database/array-literal.ts'
import { queryOne } from '../../src/database/database.ts'
import { testDatabase } from '../support/database.ts'

const { database } = await testDatabase()

describe('an array', () => {
  it.each<[string, readonly unknown[], string]>([
    ['of nothing', [], '{}'],
    [
      'of ids and moments',
      ['01a1fe21-b4dc-7dae-9d3f-44feef5d8ab7', new Date(0)],
      '{01a1fe21-b4dc-7dae-9d3f-44feef5d8ab7,1970-01-01T00:00:00.000Z}',
    ],
    [
      'of moments that repeat and change',
      [new Date(1), new Date(1), new Date(0), new Date(1)],
      '{1970-01-01T00:00:00.001Z,1970-01-01T00:00:00.001Z,1970-01-01T00:00:00.000Z,1970-01-01T00:00:00.001Z}',
    ],
    ['of numbers and truths', [1, -2.5, 1e21, true], '{1,-2.5,1e+21,true}'],
    ['with gaps and the word for one', [null, 'null', 'NULL'], '{NULL,"null","NULL"}'],
    [
      'of texts with signs of its own',
      ['', 'a b', '{,}', 'say "hi"', 'c:\\x'],
      '{"","a b","{,}","say \\"hi\\"","c:\\\\x"}',
    ],
  ])('%s is spelled as PostgreSQL reads it', (_, values, literal) => {
    expect(arrayLiteral(values)).toBe(literal)
  })

  it('of arrays, bytes or objects is left to the driver', () => {
    for (const value of [['a'], Buffer.from('a'), { a: 1 }, undefined]) expect(arrayLiteral([value])).toBeUndefined()
  })

  it('of any texts comes back from the database as it was sent', async () => {
    const text = fc.option(fc.string({ unit: 'binary' }).map((each) => each.replaceAll('\0', '')))
    await fc.assert(
      fc.asyncProperty(fc.array(text, { maxLength: 8 }), async (values) => {
        const found = await queryOne<{ texts: string[] }>(database.pool, 'select ?::text[] as texts', [values])
        expect(found?.texts).toEqual(values)
      }),
      { numRuns: 200 },
    )
  })
})
