import { decodeText } from './charset.ts'

/** Most characters of a document; a page of records has about one in ten of them. */
const LENGTH_MAX = 8 * 1024 * 1024
/** Most tags, opening and closing ones together. */
const TAGS_MAX = 500_000
/** Longest single tag with its attributes. */
const TAG_LENGTH_MAX = 64 * 1024

const ENCODING = /^<\?xml[^>]{0,64}?\sencoding\s*=\s*["']([\w.-]{1,40})["']/

/**
 * The text of a document in the encoding that its byte order mark, its content type or its declaration names, in this order (RFC
 * 7303 §3).
 *
 * @throws CharsetError
 */
export function decodeXml(body: Uint8Array, charset: string | undefined): string {
  return decodeText(body, charset ?? ENCODING.exec(Buffer.from(body.subarray(0, 256)).toString('latin1'))?.[1])
}

/**
 * Refuses, in one pass, what would cost a parser more than its length suggests.
 *
 * @throws when a limit is exceeded
 */
export function boundXml(text: string): void {
  if (text.length > LENGTH_MAX) throw new Error(`is longer than ${LENGTH_MAX} characters`)
  let tags = 0
  for (let at = text.indexOf('<'); at !== -1; at = text.indexOf('<', endOfMarkup(text, at))) {
    tags += 1
    if (tags > TAGS_MAX) throw new Error(`has more than ${TAGS_MAX} tags`)
  }
}

/** Where the search for the next `<` goes on. Comments, CDATA sections and declarations hold no attributes. */
function endOfMarkup(text: string, at: number): number {
  if (text.startsWith('<!--', at)) return endBefore(text, '-->', at + 4)
  if (text.startsWith('<![CDATA[', at)) return endBefore(text, ']]>', at + 9)
  if (text[at + 1] === '!') return at + 1
  const end = tagEnd(text, at)
  if (end - at > TAG_LENGTH_MAX) throw new Error(`has a tag of more than ${TAG_LENGTH_MAX} characters`)
  return end
}

function endBefore(text: string, mark: string, from: number): number {
  const end = text.indexOf(mark, from)
  return end === -1 ? text.length : end
}

/** Where a tag ends, `>` in quotes aside; not looked for beyond the limit. */
function tagEnd(text: string, start: number): number {
  const limit = start + TAG_LENGTH_MAX + 1
  let quote = ''
  for (let at = start; at < limit && at < text.length; at += 1) {
    const character = text[at] ?? ''
    if (quote === '' && character === '>') return at
    if (quote === character) quote = ''
    else if (quote === '' && (character === '"' || character === "'")) quote = character
  }
  return limit
}
