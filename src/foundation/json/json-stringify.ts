import { yieldToEventLoop } from '../fair/event-loop-turns.ts'
import { exceedsJsonSize, isJsonObject, type Json, type JsonObject } from './json.ts'

/** Largest value that is stringified without yielding, in characters; takes some milliseconds. */
const DIRECT_LENGTH_MAX = 512 * 1024

/** Characters between two yields to the event loop: about a millisecond of work. */
const SLICE_LENGTH = 64 * 1024

/** Pieces between two yields: measuring a piece may cost as much as a slice, however short its text is. */
const PIECES_PER_TURN = 16

/** Most elements or members of one chunk. */
const PART_ENTRIES_MAX = 8_192

/** `JSON.stringify`: a text for small values, else UTF-8 made in slices with yields between them. */
export function stringifyJson(value: Json): string | Promise<Buffer> {
  return exceedsJsonSize(value, DIRECT_LENGTH_MAX) ? stringifyInSlices(value) : JSON.stringify(value)
}

/**
 * `JSON.stringify` to UTF-8 that yields to the event loop between slices. Members that are `undefined` are left out.
 */
async function stringifyInSlices(value: Json): Promise<Buffer> {
  const slices: Buffer[] = []
  let text = ''
  let pieces = 0
  for (const piece of piecesOf(value)) {
    text += piece
    pieces += 1
    if (text.length < SLICE_LENGTH && pieces < PIECES_PER_TURN) continue
    slices.push(Buffer.from(text))
    text = ''
    pieces = 0
    await yieldToEventLoop()
  }
  slices.push(Buffer.from(text))
  return Buffer.concat(slices)
}

/** Some entries of a list or object as a smaller list or object, or a single entry that exceeds the size of a chunk. */
export type JsonChunk =
  | { readonly kind: 'entries'; readonly value: readonly Json[] | JsonObject }
  | { readonly kind: 'large'; readonly key: string; readonly value: Json }

/**
 * Splits a list or an object into chunks, in order.
 *
 * @param lengthMax size of a chunk, characters as JSON
 */
export function* chunkJson(value: readonly Json[] | JsonObject, lengthMax: number): Generator<JsonChunk> {
  const object = isJsonObject(value) ? value : undefined
  const list = Array.isArray(value) ? (value as readonly Json[]) : []
  const keys = object === undefined ? [] : Object.keys(object).filter((key) => object[key] !== undefined)
  const count = object === undefined ? list.length : keys.length
  const slice = (start: number, end: number): readonly Json[] | JsonObject =>
    object === undefined
      ? list.slice(start, end)
      : Object.fromEntries(keys.slice(start, end).map((key) => [key, object[key] ?? null]))
  let size = 1
  for (let at = 0; at < count; ) {
    const entries = slice(at, at + size)
    const isLarge = exceedsJsonSize(entries, lengthMax)
    if (isLarge && size > 1) {
      size = Math.ceil(size / 2)
      continue
    }
    const key = keys[at] ?? ''
    yield isLarge
      ? { kind: 'large', key, value: (object === undefined ? list[at] : object[key]) ?? null }
      : { kind: 'entries', value: entries }
    at += size
    size = Math.min(PART_ENTRIES_MAX, size * 2)
  }
}

/** The text of a value in pieces, in order. */
function* piecesOf(value: Json): Generator<string> {
  if (typeof value === 'string') yield* piecesOfText(value)
  else if (Array.isArray(value) || isJsonObject(value)) {
    const isList = Array.isArray(value)
    let before = isList ? '[' : '{'
    for (const part of chunkJson(value, SLICE_LENGTH)) {
      yield before
      before = ','
      if (part.kind === 'entries') yield JSON.stringify(part.value).slice(1, -1)
      else {
        if (!isList) yield `${JSON.stringify(part.key)}:`
        yield* piecesOf(part.value)
      }
    }
    if (before !== ',') yield before
    yield isList ? ']' : '}'
  } else yield JSON.stringify(value)
}

function* piecesOfText(text: string): Generator<string> {
  yield '"'
  for (let start = 0; start < text.length; ) {
    const isInPair = /[\ud800-\udbff]/.test(text[start + SLICE_LENGTH - 1] ?? '')
    const end = start + SLICE_LENGTH + (isInPair ? 1 : 0)
    yield JSON.stringify(text.slice(start, end)).slice(1, -1)
    start = end
  }
  yield '"'
}
