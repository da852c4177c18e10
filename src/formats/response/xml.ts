import { XMLParser, XMLValidator } from 'fast-xml-parser'
import { isJsonObject, type Json } from '../../base/index.ts'
import { isXmlText } from '../xml-characters.ts'
import type { ResponseFormat } from './response.ts'
import { boundXml, decodeXml } from './xml-text.ts'

/** Deepest nesting of elements. */
const DEPTH_MAX = 64

/**
 * `xml`: elements are keys with their namespace prefix, attributes `@name`, text beside other content `#text`; an element
 * with nothing but text is its text, an empty one the empty text; elements that repeat are a list. Values are never guessed
 * at: `007` stays a text. Blank text between elements is dropped, comments and processing instructions are.
 *
 * Document types are not read. A document that declares entities of its own is refused, so that nothing is fetched and
 * nothing grows.
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
      if (Object.keys(entities).length > 0) throw new Error('declares entities of its own')
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

/** Replaces what every document may use; a text never grows by it. Anything else stays as it is written. */
function decodeEntities(text: string): string {
  return text.replace(ENTITY, (whole, decimal?: string, hexadecimal?: string, name?: string) => {
    if (name !== undefined) return NAMED[name] ?? whole
    const codePoint = decimal === undefined ? Number.parseInt(hexadecimal ?? '', 16) : Number(decimal)
    const character = codePoint > CODE_POINT_MAX ? '' : String.fromCodePoint(codePoint)
    return character !== '' && isXmlText(character) ? character : whole
  })
}

/** The parser takes several elements side by side; a document has one. */
function oneRoot(parsed: unknown): Json {
  const names = isJsonObject(parsed) ? Object.keys(parsed) : []
  const [name = ''] = names
  const root = isJsonObject(parsed) ? parsed[name] : undefined
  if (!isJsonObject(parsed) || names.length !== 1 || root === undefined || Array.isArray(root))
    throw new Error('must have one root element')
  return parsed
}
