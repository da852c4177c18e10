/** A secret in one encoding, as the matcher searches for it: folded units, and where a match counts. */
export interface SecretPattern {
  readonly units: Uint8Array
  /** `anywhere`; `word`: as a whole word; `base64`: anywhere, and the whole base64 text around it is masked. */
  readonly match: 'anywhere' | 'word' | 'base64'
}

/** A text with some layers of escapes decoded, and the position of each unit in the original text. */
export interface DecodedText {
  readonly codes: Uint16Array
  /** `codes` folded to 8 bits: letters in lower case, characters that encodings substitute for one another made equal. */
  readonly folded: Uint8Array
  readonly starts: Uint32Array
  readonly ends: Uint32Array
}

/** Layers of escapes that are decoded at most. */
const LAYERS_MAX = 4

const ESCAPE = /[%\\&]/

/** The text verbatim, then with one more layer of percent, JSON, XML and HTML escapes decoded each. */
export function decodeLayers(text: string): DecodedText[] {
  let layer = undecodedText(text)
  const layers = [layer]
  if (!ESCAPE.test(text)) return layers
  for (let round = 0; round < LAYERS_MAX; round++) {
    const next = decodeOneLayer(layer)
    if (next.codes.length === layer.codes.length) return layers
    layer = next
    layers.push(layer)
  }
  return layers
}

function undecodedText(text: string): DecodedText {
  const { length } = text
  const codes = new Uint16Array(length)
  const starts = new Uint32Array(length)
  const ends = new Uint32Array(length)
  for (let at = 0; at < length; at++) {
    codes[at] = text.charCodeAt(at)
    starts[at] = at
    ends[at] = at + 1
  }
  return { codes, folded: foldAll(codes), starts, ends }
}

function decodeOneLayer(layer: DecodedText): DecodedText {
  const { length } = layer.codes
  const codes = new Uint16Array(length)
  const starts = new Uint32Array(length)
  const ends = new Uint32Array(length)
  let to = 0
  for (let at = 0; at < length; ) {
    const found = readEscape(layer.codes, at)
    const last = at + (found?.length ?? 1) - 1
    for (const code of found?.units ?? [layer.codes[at] ?? 0]) {
      codes[to] = code
      starts[to] = layer.starts[at] ?? 0
      ends[to] = layer.ends[last] ?? 0
      to += 1
    }
    at = last + 1
  }
  const kept = codes.subarray(0, to)
  return { codes: kept, folded: foldAll(kept), starts: starts.subarray(0, to), ends: ends.subarray(0, to) }
}

/** An escape sequence: its length in characters, and the units it decodes to, never more than characters. */
interface EscapeSequence {
  readonly length: number
  readonly units: readonly number[]
}

const [PERCENT, BACKSLASH, AMPERSAND, SEMICOLON] = ['%', '\\', '&', ';'].map((text) => text.charCodeAt(0))

function readEscape(codes: Uint16Array, at: number): EscapeSequence | undefined {
  switch (codes[at]) {
    case PERCENT:
      return readPercent(codes, at)
    case BACKSLASH:
      return readBackslash(codes, at)
    case AMPERSAND:
      return readEntity(codes, at)
    default:
      return undefined
  }
}

/** One percent-encoded character of UTF-8; a byte that begins none decodes to itself. */
function readPercent(codes: Uint16Array, at: number): EscapeSequence | undefined {
  const first = percentByte(codes, at)
  if (first === undefined) return undefined
  const size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1
  const bytes = [first]
  while (bytes.length < size) {
    const next = percentByte(codes, at + 3 * bytes.length)
    if (next === undefined || next >> 6 !== 2) return { length: 3, units: [first] }
    bytes.push(next)
  }
  return { length: 3 * size, units: size === 1 ? [first] : unitsOf(Buffer.from(bytes).toString('utf8')) }
}

function percentByte(codes: Uint16Array, at: number): number | undefined {
  return codes[at] === PERCENT ? hexAt(codes, at + 1, 2) : undefined
}

const CONTROLS: Readonly<Record<string, number>> = { b: 8, t: 9, n: 10, f: 12, r: 13 }
const PLAIN_AFTER_BACKSLASH = `"'\\/`

function readBackslash(codes: Uint16Array, at: number): EscapeSequence | undefined {
  const next = String.fromCharCode(codes[at + 1] ?? 0)
  const control = CONTROLS[next]
  if (control !== undefined) return { length: 2, units: [control] }
  if (PLAIN_AFTER_BACKSLASH.includes(next)) return { length: 2, units: unitsOf(next) }
  const digits = next === 'u' ? 4 : next === 'x' ? 2 : 0
  const code = digits === 0 ? undefined : hexAt(codes, at + 2, digits)
  return code === undefined ? undefined : { length: 2 + digits, units: [code] }
}

/** Length limit of an entity, `&` and `;` included. */
const ENTITY_LENGTH_MAX = 10
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

function readEntity(codes: Uint16Array, at: number): EscapeSequence | undefined {
  const limit = Math.min(codes.length, at + ENTITY_LENGTH_MAX)
  let text = ''
  let end = at + 1
  while (end < limit && codes[end] !== SEMICOLON) text += String.fromCharCode(codes[end++] ?? 0)
  if (end === limit || text === '') return undefined
  const name = text.toLowerCase()
  const character = ENTITIES[name] ?? numericEntity(name)
  return character === undefined ? undefined : { length: end + 1 - at, units: unitsOf(character) }
}

function numericEntity(name: string): string | undefined {
  const digits = /^#(?:x([0-9a-f]{1,6})|(\d{1,7}))$/.exec(name)
  if (digits === null) return undefined
  const point = digits[1] === undefined ? Number(digits[2]) : Number.parseInt(digits[1], 16)
  return point <= 0x10ffff ? String.fromCodePoint(point) : undefined
}

function unitsOf(text: string): number[] {
  if (text.length === 1) return [text.charCodeAt(0)]
  return Array.from({ length: text.length }, (_, at) => text.charCodeAt(at))
}

function hexAt(codes: Uint16Array, at: number, digits: number): number | undefined {
  let value = 0
  for (let index = at; index < at + digits; index++) {
    const digit = HEX[codes[index] ?? 0] ?? NOT_HEX
    if (digit === NOT_HEX) return undefined
    value = value * 16 + digit
  }
  return value
}

const NOT_HEX = 255
const HEX = Uint8Array.from({ length: 128 }, (_, code) => {
  const digit = '0123456789abcdef'.indexOf(String.fromCharCode(code).toLowerCase())
  return digit === -1 ? NOT_HEX : digit
})

/** Case folding; `+`, `-` and the space become one character (forms, base64url), and so do `/` and `_`. */
const FOLDED = Uint8Array.from({ length: 256 }, (_, code) => {
  const character = String.fromCharCode(code)
  if ('+ '.includes(character)) return '-'.charCodeAt(0)
  if (character === '/') return '_'.charCodeAt(0)
  return /[A-ZÀ-ÖØ-Þ]/.test(character) ? code + 32 : code
})

/** Characters beyond Latin-1 fold to 128 values: two secrets differ in more than these. */
function foldAll(codes: Uint16Array): Uint8Array {
  const folded = new Uint8Array(codes.length)
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at] ?? 0
    folded[at] = code < 256 ? (FOLDED[code] ?? 0) : 128 + (code & 127)
  }
  return folded
}

/** Shorter secrets could be parts of words; they match as whole words only. */
const LENGTH_MIN = 4
/** Encodings of shorter secrets occur by chance. */
const ENCODED_BYTES_MIN = 6
/** Lines of a multi-line secret, such as those of a PEM key, of at least this length match by themselves. */
const LINE_LENGTH_MIN = 16

/**
 * The patterns that a secret is found by. Escapes are decoded in the text and in the secret alike, so that no escape needs a
 * pattern of its own.
 */
export function patternsOf(secret: string): SecretPattern[] {
  // URLs lose trailing slashes.
  const value = secret.replace(/\/+$/, '')
  if (value === '') return []
  if (value.length < LENGTH_MIN) return plainPatterns(value, 'word')
  const lines = value.split(/\r?\n/).filter((line) => line.length >= LINE_LENGTH_MIN && !line.startsWith('-----'))
  return [
    ...plainPatterns(value, 'anywhere'),
    ...(lines.length > 1 ? lines.flatMap((line) => plainPatterns(line, 'anywhere')) : []),
    ...encodedPatterns(Buffer.from(value)),
  ]
}

/** Verbatim, and with every escape in it decoded. */
function plainPatterns(text: string, match: SecretPattern['match']): SecretPattern[] {
  const layers = decodeLayers(text)
  const [first, last] = [layers[0], layers.at(-1)]
  const folded = [first, last].flatMap((layer) => (layer === undefined ? [] : [layer.folded]))
  return folded.map((units) => ({ units, match }))
}

function encodedPatterns(bytes: Buffer): SecretPattern[] {
  if (bytes.length < ENCODED_BYTES_MIN) return []
  const base64 = [0, 1, 2].map((offset) => ({ text: base64At(bytes, offset), match: 'base64' as const }))
  return [...base64, { text: bytes.toString('hex'), match: 'anywhere' as const }].flatMap(({ text, match }) =>
    decodeLayers(text)
      .slice(0, 1)
      .map(({ folded }) => ({ units: folded, match })),
  )
}

/** Characters of base64 that depend on the bytes before the value, by the number of those bytes modulo 3. */
const BASE64_LEADING = [0, 2, 3] as const

/** The characters of base64 that depend on the value alone, after `offset` bytes (modulo 3). */
function base64At(bytes: Buffer, offset: number): string {
  const text = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64')
  return text.slice(BASE64_LEADING[offset], Math.floor(((offset + bytes.length) * 4) / 3))
}
