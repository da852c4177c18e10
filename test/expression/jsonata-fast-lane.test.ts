import fc from 'fast-check'
import jsonata from 'jsonata'
import { describe, expect, it } from 'vitest'
import { compileFast, LEFT } from '../../src/expression/jsonata/fast-lane/compile.ts'
import { parseTree } from '../../src/expression/jsonata/parse.ts'
import { expressionText, roots } from './jsonata-generator.ts'

function fast(text: string) {
  const parsed = parseTree(text)
  return 'tree' in parsed ? compileFast(parsed.tree) : undefined
}

describe('the fast lane', () => {
  it('gives the results of JSONata, or none', { timeout: 60_000 }, async () => {
    let answered = 0
    let mapped = 0
    await fc.assert(
      fc.asyncProperty(expressionText, roots, async (text, input) => {
        const run = fast(text)
        const result = run?.(input)
        if (!run || result === LEFT) return
        const expected = await jsonata(text).evaluate(structuredClone(input))
        expect(JSON.stringify(result), text).toBe(JSON.stringify(expected))
        answered++
        if (result !== undefined) mapped++
      }),
      { numRuns: 6_000 },
    )
    // Enough of what was generated must have been answered here, or the comparison says nothing.
    expect(answered).toBeGreaterThan(2_000)
    expect(mapped).toBeGreaterThan(1_000)
  })
})
