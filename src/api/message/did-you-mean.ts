/** Farthest edit distance that still reads as a slip of the keyboard. */
const DISTANCE_MAX = 3

/** The candidate that was probably meant, or `undefined` when none is near. */
export function didYouMean(given: string, candidates: Iterable<string>): string | undefined {
  const wanted = given.toLowerCase().replaceAll('-', '_')
  let best: string | undefined
  let bestDistance = Math.min(DISTANCE_MAX, Math.floor(wanted.length / 2)) + 1
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - wanted.length) >= bestDistance) continue
    const distance = editDistance(wanted, candidate)
    if (distance >= bestDistance) continue
    best = candidate
    bestDistance = distance
  }
  return best
}

/** The suggestion as the tail of a description: ` (did you mean label?)`, or nothing. */
export function suggestion(given: string, candidates: Iterable<string>): string {
  const meant = didYouMean(given, candidates)
  return meant === undefined ? '' : ` (did you mean ${meant}?)`
}

/** Levenshtein distance, one row at a time. */
function editDistance(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, column) => column)
  for (let line = 0; line < left.length; line += 1) {
    const next = [line + 1]
    for (let column = 0; column < right.length; column += 1) {
      const replaced = (row[column] ?? 0) + (left[line] === right[column] ? 0 : 1)
      next.push(Math.min(replaced, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1))
    }
    row = next
  }
  return row[right.length] ?? 0
}
