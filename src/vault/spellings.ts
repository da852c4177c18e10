import { decodeLayers, type SecretPattern } from './text-view.ts'

/** Shorter values are words; they are found only where they stand alone. */
const LENGTH_MIN = 4
/** Shorter values have encodings that occur by chance. */
const ENCODED_BYTES_MIN = 6
/** Lines of a multi-line value, such as those of a key in PEM, that are found by themselves. */
const LINE_LENGTH_MIN = 16

/**
 * The texts by which a secret is recognised in a view of a text. Escapes are undone in the text and in the secret alike, so
 * that each of them needs no spelling of its own.
 */
export function patternsOf(secret: string): SecretPattern[] {
  // Addresses lose slashes at their end.
  const value = secret.replace(/\/+$/, '')
  if (value === '') return []
  if (value.length < LENGTH_MIN) return plainPatterns(value, 'alone')
  const lines = value.split(/\r?\n/).filter((line) => line.length >= LINE_LENGTH_MIN && !line.startsWith('-----'))
  return [
    ...plainPatterns(value, 'part'),
    ...(lines.length > 1 ? lines.flatMap((line) => plainPatterns(line, 'part')) : []),
    ...encodedPatterns(Buffer.from(value)),
  ]
}

/** As it is, and with every escape in it undone. */
function plainPatterns(text: string, match: SecretPattern['match']): SecretPattern[] {
  const views = decodeLayers(text)
  const [first, last] = [views[0], views.at(-1)]
  const folded = [first, last].flatMap((view) => (view === undefined ? [] : [view.folded]))
  return folded.map((units) => ({ units, match }))
}

function encodedPatterns(bytes: Buffer): SecretPattern[] {
  if (bytes.length < ENCODED_BYTES_MIN) return []
  const base64 = [0, 1, 2].map((offset) => ({ text: base64At(bytes, offset), match: 'word' as const }))
  return [...base64, { text: bytes.toString('hex'), match: 'part' as const }].flatMap(({ text, match }) =>
    decodeLayers(text)
      .slice(0, 1)
      .map(({ folded }) => ({ units: folded, match })),
  )
}

/** Characters of base64 that depend on bytes before the value, by their number. */
const BASE64_LEADING = [0, 2, 3] as const

/** The characters that depend on the value alone when so many bytes (modulo 3) stand before it. */
function base64At(bytes: Buffer, offset: number): string {
  const text = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64')
  return text.slice(BASE64_LEADING[offset], Math.floor(((offset + bytes.length) * 4) / 3))
}
