import { Failure } from '../../../foundation/base/index.ts'
import { isJsonObject, type Json } from '../../../foundation/json/index.ts'
import { isXmlName, isXmlText } from '../response/xml.ts'
import type { BodyFormat } from './body.ts'

/** Deepest nesting of elements. */
const DEPTH_MAX = 64

/**
 * `xml`: the inverse of the response format: the only key at the top is the root element, keys are elements, lists repeat
 * them, `@name` is an attribute, `#text` the text. `null` is an empty element; an attribute that is `null` is left out.
 *
 * Own code and not the builder of fast-xml-parser: names, depth, characters and lists must be checked first in any case,
 * which is the larger half.
 */
export const xml: BodyFormat = {
  format: 'xml',
  summary:
    'XML (`application/xml`) of an object with one root element: `@name` attributes, `#text`, lists repeat an element. Elements are written in the order of the keys.',
  encode: (value) => {
    const [root, ...others] = isJsonObject(value) ? Object.entries(value) : []
    if (root === undefined || others.length > 0 || Array.isArray(root[1]))
      throw invalidXml('must be an object with one key, the root element')
    return {
      content: `<?xml version="1.0" encoding="UTF-8"?>${writeElement(root[0], root[1], 1)}`,
      contentType: 'application/xml',
    }
  },
}

function writeElement(name: string, value: Json, depth: number): string {
  if (depth > DEPTH_MAX) throw invalidXml(`is nested deeper than ${DEPTH_MAX} elements`)
  if (!isXmlName(name)) throw invalidXml(`has a key that no element can have: ${JSON.stringify(name)}`)
  if (Array.isArray(value)) throw invalidXml(`has a list within a list at ${name}`)
  const { '#text': text = null, ...rest } = isJsonObject(value) ? value : { '#text': value }
  const entries = Object.entries(rest)
  const attributes = entries
    .filter(([key]) => key.startsWith('@'))
    .map(([key, item]) => writeAttribute(key.slice(1), item))
  const children = entries
    .filter(([key]) => !key.startsWith('@'))
    .map(([key, item]) => writeChildren(key, item, depth + 1))
  const content = escapeXml(scalarText(text, '#text'), TEXT_ESCAPED) + children.join('')
  const head = `${name}${attributes.join('')}`
  return content === '' ? `<${head}/>` : `<${head}>${content}</${name}>`
}

function writeChildren(name: string, value: Json, depth: number): string {
  const items: readonly Json[] = Array.isArray(value) ? value : [value]
  return items.map((item) => writeElement(name, item, depth)).join('')
}

function writeAttribute(name: string, value: Json): string {
  if (!isXmlName(name)) throw invalidXml(`has a key that no attribute can have: ${JSON.stringify(`@${name}`)}`)
  return value === null ? '' : ` ${name}="${escapeXml(scalarText(value, `@${name}`), ATTRIBUTE_ESCAPED)}"`
}

function scalarText(value: Json, key: string): string {
  if (isJsonObject(value) || Array.isArray(value))
    throw invalidXml(`has an object or a list at ${key}, where a text belongs`)
  return value === null ? '' : String(value)
}

/** Parsers normalise `\r` to a line end, and blanks of an attribute to spaces, unless they are character references. */
const TEXT_ESCAPED = /[&<>\r]/g
const ATTRIBUTE_ESCAPED = /[&<>"\t\n\r]/g
const NAMED: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

function escapeXml(text: string, escaped: RegExp): string {
  if (!isXmlText(text)) throw invalidXml('has a text with a character that XML cannot hold')
  return text.replace(escaped, (character) => NAMED[character] ?? `&#${character.charCodeAt(0)};`)
}

function invalidXml(problem: string): Failure {
  return new Failure('INVALID_FIELD', `an XML body ${problem}`)
}
