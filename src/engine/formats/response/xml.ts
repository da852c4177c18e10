import { XMLParser, XMLValidator } from 'fast-xml-parser'
import { isJsonObject, type Json } from '../../../foundation/json/index.ts'
import { decodeText } from './charset.ts'
import { BodyFormatError, type ResponseFormat } from './response.ts'

/** Deepest nesting of elements. */
const DEPTH_MAX = 64

/**
 * `xml`: elements are keys with their namespace prefix, attributes `@name`, text beside other content `#text`; an element
 * with nothing but text is its text, an empty one the empty text; elements that repeat are a list. Types are not guessed:
 * `007` stays a text. Blank text between elements, comments and processing instructions are dropped.
 *
 * Document types are not read, and a document that declares entities is an error: no external entities, no entity expansion.
 */
export const xml: ResponseFormat = {
  format: 'xml',
  summary:
    'XML as JSON: elements are keys, attributes `@name`, text `#text`, an element with nothing but text its text; elements that repeat are a list. All values are texts.',
  accept: 'application/xml',
  decode: (body, charset) => {
    const text = decodeXml(body, charset)
    boundXml(text)
    const validity = XMLValidator.validate(text)
    if (validity !== true) throw new Error(`is not well-formed in line ${validity.err.line}: ${validity.err.msg}`)
    return oneRoot(parser.parse(text))
  },
}

const parser = new XMLParser({
  attributeNamePrefix: '@',
  ignoreAttributes: false,
  ignoreDeclaration: true,
  ignorePiTags: true,
  jPath: false,
  maxNestedTags: DEPTH_MAX,
  onDangerousProperty: (name) => name,
  parseTagValue: false,
  tagValueProcessor: (_name, value) => (value.trim() === '' ? '' : value),
  trimValues: false,
  entityDecoder: {
    addInputEntities: (entities) => {
      if (Object.keys(entities).length > 0) throw new BodyFormatError('declares entities of its own')
    },
    decode: decodeEntities,
    reset: () => undefined,
    setExternalEntities: () => undefined,
    setXmlVersion: () => undefined,
  },
})

const ENTITY = /&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(amp|lt|gt|quot|apos));/gi
const NAMED: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }
const CODE_POINT_MAX = 0x10ffff

/** Decodes predefined entities and character references, which never lengthens a text. Others stay as they are. */
function decodeEntities(text: string): string {
  return text.replace(ENTITY, (whole, decimal?: string, hexadecimal?: string, name?: string) => {
    if (name !== undefined) return NAMED[name] ?? whole
    const codePoint = decimal === undefined ? Number.parseInt(hexadecimal ?? '', 16) : Number(decimal)
    const character = codePoint > CODE_POINT_MAX ? '' : String.fromCodePoint(codePoint)
    return character !== '' && isXmlText(character) ? character : whole
  })
}

/** The parser accepts several root elements; a document has one. */
function oneRoot(parsed: unknown): Json {
  const names = isJsonObject(parsed) ? Object.keys(parsed) : []
  const [name = ''] = names
  const root = isJsonObject(parsed) ? parsed[name] : undefined
  if (!isJsonObject(parsed) || names.length !== 1 || root === undefined || Array.isArray(root))
    throw new Error('must have one root element')
  return parsed
}

/** Most characters of a document, about ten times a page of records. */
const LENGTH_MAX = 8 * 1024 * 1024
/** Most tags, opening and closing ones together. */
const TAGS_MAX = 500_000
/** Longest single tag with its attributes. */
const TAG_LENGTH_MAX = 64 * 1024

const ENCODING = /^<\?xml[^>]{0,64}?\sencoding\s*=\s*["']([\w.-]{1,40})["']/

/**
 * Decodes a document in the encoding of its byte order mark, its content type or its declaration, in this order (RFC 7303 §3).
 *
 * @throws CharsetError
 */
function decodeXml(body: Uint8Array, charset: string | undefined): string {
  return decodeText(body, charset ?? ENCODING.exec(Buffer.from(body.subarray(0, 256)).toString('latin1'))?.[1])
}

/**
 * Rejects documents that a parser could not handle in linear time, in one pass.
 *
 * @throws when a limit is exceeded
 */
function boundXml(text: string): void {
  if (text.length > LENGTH_MAX) throw new BodyFormatError(`is longer than ${LENGTH_MAX} characters`)
  let tags = 0
  for (let at = text.indexOf('<'); at !== -1; at = text.indexOf('<', endOfMarkup(text, at))) {
    tags += 1
    if (tags > TAGS_MAX) throw new BodyFormatError(`has more than ${TAGS_MAX} tags`)
  }
}

/** Offset at which the search for the next `<` continues. Comments, CDATA sections and declarations have no attributes. */
function endOfMarkup(text: string, at: number): number {
  if (text.startsWith('<!--', at)) return endBefore(text, '-->', at + 4)
  if (text.startsWith('<![CDATA[', at)) return endBefore(text, ']]>', at + 9)
  if (text[at + 1] === '!') return at + 1
  const end = tagEnd(text, at)
  if (end - at > TAG_LENGTH_MAX) throw new BodyFormatError(`has a tag of more than ${TAG_LENGTH_MAX} characters`)
  return end
}

function endBefore(text: string, mark: string, from: number): number {
  const end = text.indexOf(mark, from)
  return end === -1 ? text.length : end
}

/** End of a tag, ignoring `>` in quotes; not searched beyond the limit. */
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

const NAME_START =
  'A-Z_a-z\\u00C0-\\u00D6\\u00D8-\\u00F6\\u00F8-\\u02FF\\u0370-\\u037D\\u037F-\\u1FFF\\u200C\\u200D\\u2070-\\u218F\\u2C00-\\u2FEF\\u3001-\\uD7FF\\uF900-\\uFDCF\\uFDF0-\\uFFFD\\u{10000}-\\u{EFFFF}'
const NAME_PART = `${NAME_START}.0-9\\u00B7\\u0300-\\u036F\\u203F\\u2040-`
const NAME = `[${NAME_START}][${NAME_PART}]*`

const QUALIFIED_NAME = new RegExp(`^${NAME}(?::${NAME})?$`, 'u')
const ILLEGAL = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/u

/** True for a valid name of an element or attribute, with or without a namespace prefix (XML 1.0 §2.3, Namespaces §4). */
export function isXmlName(text: string): boolean {
  return QUALIFIED_NAME.test(text)
}

/** True for a text that a document can hold: no control characters, no lone surrogates (XML 1.0 §2.2). */
export function isXmlText(text: string): boolean {
  return !ILLEGAL.test(text)
}
