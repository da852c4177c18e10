import { yieldToEventLoop } from '../fair/event-loop-turns.ts'
import type { Json } from './json.ts'
import { endOfString, JSON_NESTING_MAX, JsonTextError, nestedTooDeep, notJson, parseJson } from './json-parse.ts'

/** Characters that are scanned, and at least parsed, between two yields to the event loop: about a millisecond of work. */
const SLICE_LENGTH = 64 * 1024

/** Most members of one object: to list the keys of a larger one takes V8 tens of milliseconds, each time. */
const OBJECT_MEMBERS_MAX = 65_536

/** Most elements of one list: a longer one is copied for milliseconds whenever it grows. */
const LIST_ELEMENTS_MAX = 1_000_000

/** Most characters of one number, or blanks in a row: the parser cannot be interrupted within them. */
const RUN_LENGTH_MAX = 1024 * 1024

const QUOTE = 0x22
const COMMA = 0x2c
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** A list or object whose end has not been reached. */
interface OpenContainer {
  readonly isList: boolean
  /** Offset of the opening bracket. */
  readonly open: number
  /** The entries parsed so far; absent while the container can still be parsed as a part of the one around it. */
  value: Json[] | Record<string, Json> | undefined
  /** Elements or members parsed so far. */
  count: number
  /** Offset of the text that has not been parsed yet. */
  rest: number
  /** Start and end of the latest string in it; in an object, the latest string before a value is its key. */
  key: readonly [start: number, end: number]
  /** The latest entry was parsed in slices: only blanks may follow before the next comma or the end. */
  isEntryDone: boolean
}

/**
 * `parseJson` that yields to the event loop after each slice.
 *
 * One scan finds the lists and objects that are longer than a slice; the text between is parsed in pieces of whole entries,
 * and the pieces are merged. A single string is never divided. Errors are what cannot be divided: an object with more than
 * 65 536 members, a list with more than 1 000 000 elements, a number or blanks of more than 1 MiB.
 *
 * @throws JsonTextError
 */
export async function parseJsonInSlices(text: string): Promise<Json> {
  if (text.length <= SLICE_LENGTH) return parseJson(text)
  const parser = new SliceParser(text)
  while (!parser.scanSlice()) await yieldToEventLoop()
  return parser.result()
}

class SliceParser {
  readonly #text: string
  readonly #frames: OpenContainer[] = []
  #at = 0
  /** A string outside of any list and object: it must be the whole document. */
  #hasString = false
  /** Offset after the latest string, bracket or comma. */
  #runStart = 0
  #root: { readonly value: Json; readonly end: number } | undefined

  constructor(text: string) {
    this.#text = text
  }

  /** Scans the next slice and parses what it completes. @returns true at the end of the text */
  scanSlice(): boolean {
    const limit = Math.min(this.#text.length, this.#at + SLICE_LENGTH)
    for (; this.#at < limit; this.#at += 1) {
      const unit = this.#text.charCodeAt(this.#at)
      let isSliceParsed = false
      if (unit === QUOTE) this.#skipText()
      else if (unit === OPEN_LIST || unit === OPEN_OBJECT) this.#openFrame(unit === OPEN_LIST)
      else if (unit === CLOSE_LIST || unit === CLOSE_OBJECT) this.#closeFrame(unit === CLOSE_LIST)
      else if (unit === COMMA) isSliceParsed = this.#endEntry()
      else continue
      this.#runStart = this.#at + 1
      if (!isSliceParsed) continue
      this.#at += 1
      return false
    }
    if (this.#at - this.#runStart > RUN_LENGTH_MAX)
      throw tooLarge(`a number or blanks of more than ${RUN_LENGTH_MAX} characters`)
    return this.#at >= this.#text.length
  }

  result(): Json {
    if (this.#frames.length > 0) throw notJson()
    if (this.#root === undefined) return parseJson(this.#text)
    this.#requireBlank(this.#root.end, this.#text.length)
    return this.#root.value
  }

  #skipText(): void {
    const start = this.#at
    this.#at = endOfString(this.#text, start)
    const frame = this.#frames.at(-1)
    if (frame === undefined && this.#hasString) throw notJson()
    if (frame === undefined) this.#hasString = true
    if (frame !== undefined && !frame.isList) frame.key = [start, this.#at + 1]
  }

  #openFrame(isList: boolean): void {
    if (this.#frames.length === 0) this.#requireBlank(this.#root?.end ?? 0, this.#at)
    if (this.#root !== undefined) throw notJson()
    if (this.#frames.length === JSON_NESTING_MAX) throw nestedTooDeep(JSON_NESTING_MAX)
    const at = this.#at
    this.#frames.push({ isList, open: at, value: undefined, count: 0, rest: at + 1, key: [at, at], isEntryDone: false })
  }

  #closeFrame(isList: boolean): void {
    const frame = this.#frames.pop()
    if (frame === undefined || frame.isList !== isList) throw notJson()
    const end = this.#at + 1
    const isSliced = frame.value !== undefined
    if (!isSliced && this.#frames.length > 0 && end - frame.open <= SLICE_LENGTH) return
    if (!isSliced) this.#parseBefore(frame.open)
    const value = isSliced ? this.#finish(frame) : parseJson(this.#text.slice(frame.open, end))
    const around = this.#frames.at(-1)
    if (around === undefined) this.#root = { value, end }
    else this.#addEntry(around, value, end)
  }

  /** Parses the last entries of a container that was parsed in slices. */
  #finish(frame: OpenContainer): Json {
    if (frame.isEntryDone) this.#requireBlank(frame.rest, this.#at)
    else this.#parseEntries(frame, this.#at)
    return frame.value ?? null
  }

  /** At a comma: parses the entries of the container when they fill a slice. @returns true when it parsed */
  #endEntry(): boolean {
    const frame = this.#frames.at(-1)
    if (frame === undefined) throw notJson()
    if (frame.isEntryDone) {
      this.#requireBlank(frame.rest, this.#at)
      frame.isEntryDone = false
      frame.rest = this.#at + 1
      return false
    }
    if (this.#at - frame.rest < SLICE_LENGTH) return false
    if (frame.value === undefined) this.#parseBefore(frame.open)
    this.#parseEntries(frame, this.#at)
    frame.rest = this.#at + 1
    return true
  }

  /** In every enclosing container, parses the entries before the container that opens at `open`. */
  #parseBefore(open: number): void {
    const around = this.#frames.filter((frame) => frame.open < open)
    for (const [depth, frame] of around.entries()) {
      const inner = around[depth + 1]?.open ?? open
      if (frame.rest !== inner) this.#parseUpTo(frame, inner)
    }
  }

  /** Parses the entries before the one that opens at `inner`, whose key (in an object) is read later. */
  #parseUpTo(frame: OpenContainer, inner: number): void {
    const [start, end] = frame.isList ? [inner, inner] : frame.key
    const isKeyed = frame.isList || /^[ \t\r\n]*:[ \t\r\n]*$/.test(this.#text.slice(end, inner))
    const before = trimBlanks(this.#text.slice(frame.rest, start))
    if (!isKeyed || frame.isEntryDone || (before !== '' && !before.endsWith(','))) throw notJson()
    if (before !== '') this.#parseEntries(frame, frame.rest + before.length - 1)
    frame.value ??= frame.isList ? [] : {}
    frame.rest = inner
  }

  /** Parses whole entries from `rest` to `end` and adds them; at least one. */
  #parseEntries(frame: OpenContainer, end: number): void {
    const entries = this.#text.slice(frame.rest, end)
    if (entries.trim() === '') throw notJson()
    const parsed = parseJson(frame.isList ? `[${entries}]` : `{${entries}}`)
    frame.value ??= frame.isList ? [] : {}
    const added = frame.isList ? (parsed as readonly Json[]) : Object.entries(parsed as object)
    this.#count(frame, added.length)
    if (Array.isArray(frame.value)) for (const item of added as readonly Json[]) frame.value.push(item)
    else for (const [key, item] of added as readonly [string, Json][]) setOwn(frame.value, key, item)
  }

  #count(frame: OpenContainer, added: number): void {
    frame.count += added
    if (frame.isList && frame.count > LIST_ELEMENTS_MAX)
      throw tooLarge(`a list of more than ${LIST_ELEMENTS_MAX} elements`)
    if (!frame.isList && frame.count > OBJECT_MEMBERS_MAX)
      throw tooLarge(`an object of more than ${OBJECT_MEMBERS_MAX} members`)
  }

  #addEntry(frame: OpenContainer, value: Json, end: number): void {
    frame.value ??= frame.isList ? [] : {}
    if (Array.isArray(frame.value)) frame.value.push(value)
    else setOwn(frame.value, String(parseJson(this.#text.slice(...frame.key))), value)
    frame.rest = end
    frame.isEntryDone = true
    this.#count(frame, 1)
  }

  #requireBlank(start: number, end: number): void {
    if (!/^[ \t\r\n]*$/.test(this.#text.slice(start, end))) throw notJson()
  }
}

function tooLarge(part: string): JsonTextError {
  return new JsonTextError('size', `holds ${part}`)
}

/** Trims JSON's four blanks at the end; `String.trimEnd` trims more. */
function trimBlanks(text: string): string {
  let end = text.length
  while (end > 0 && ' \t\r\n'.includes(text[end - 1] ?? '')) end -= 1
  return text.slice(0, end)
}

/** Sets an own property, as JSON.parse does: `__proto__` is an ordinary key. */
function setOwn(target: Record<string, Json>, key: string, value: Json): void {
  if (key === '__proto__')
    Object.defineProperty(target, key, { value, configurable: true, enumerable: true, writable: true })
  else target[key] = value
}
