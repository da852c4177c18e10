/** Longest value that is matched against a pattern. */
export const PATTERN_VALUE_LENGTH_MAX = 512

/** Unbounded repetitions in one pattern; with the length limit they bound the time of a match to tens of milliseconds. */
const REPETITIONS_MAX = 3

const QUANTIFIER = /^(?:[*+]|\{\d+,\}|\{\d+(?:,\d+)?\})\??/

/**
 * A sentence about why a definition may not use this regular expression, `undefined` when it may.
 *
 * Patterns come from whoever writes a definition and run in this process, so the ones that can take exponential time are
 * refused by construction: no repeated groups that repeat inside, no back references, few unbounded repetitions.
 */
export function findPatternProblem(pattern: string): string | undefined {
  try {
    new RegExp(pattern, 'u')
  } catch {
    return 'is not a regular expression'
  }
  if (/\\(?:[1-9]|k<)/.test(pattern)) return 'must not hold back references'
  const { repetitions, isNested } = scan(pattern)
  if (isNested) return 'must not repeat a group'
  return repetitions > REPETITIONS_MAX ? `must not hold more than ${REPETITIONS_MAX} of *, + and {n,}` : undefined
}

/** The compiled pattern, matching whole values. Only for patterns without a problem. */
export function compilePattern(pattern: string): RegExp {
  return new RegExp(`^(?:${pattern})$`, 'u')
}

/** Counts unbounded quantifiers outside character classes and finds quantified groups. */
function scan(pattern: string): { repetitions: number; isNested: boolean } {
  let repetitions = 0
  let isNested = false
  let inClass = false
  for (let index = 0; index < pattern.length; index += 1) {
    const character = pattern[index]
    if (character === '\\') {
      index += 1
      continue
    }
    if (inClass) {
      inClass = character !== ']'
      continue
    }
    if (character === '[') inClass = true
    const quantifier = QUANTIFIER.exec(pattern.slice(index))?.[0]
    if (quantifier === undefined) continue
    if (pattern[index - 1] === ')' && pattern[index - 2] !== '\\') isNested = true
    if (/^[*+]|,\}/.test(quantifier)) repetitions += 1
    index += quantifier.length - 1
  }
  return { repetitions, isNested }
}
