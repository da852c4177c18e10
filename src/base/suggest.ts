/** Edits that still look like a slip of the pen, by the length of the word. */
const EDITS_MAX = 3
const LETTERS_PER_EDIT = 3

/** `, did you mean x?` when a known word is close to the given one, else nothing. */
export function suggest(word: string, known: readonly string[]): string {
  const nearest = known
    .map((candidate) => ({ candidate, edits: editDistance(word.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.edits - b.edits)[0]
  if (nearest === undefined) return ''
  const allowed = Math.min(EDITS_MAX, Math.max(1, Math.floor(word.length / LETTERS_PER_EDIT)))
  return nearest.edits <= allowed ? `, did you mean ${nearest.candidate}?` : ''
}

/** Levenshtein distance with swapped neighbours counted as one edit. */
function editDistance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > EDITS_MAX) return EDITS_MAX + 1
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, column) => column)]
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const above = rows[i - 1] ?? []
      const substitution = (above[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swap = isSwap ? (rows[i - 2]?.[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY
      row.push(Math.min((above[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, substitution, swap))
    }
    rows.push(row)
  }
  return rows[a.length]?.[b.length] ?? EDITS_MAX + 1
}
