const NAME_START =
  'A-Z_a-z\\u00C0-\\u00D6\\u00D8-\\u00F6\\u00F8-\\u02FF\\u0370-\\u037D\\u037F-\\u1FFF\\u200C\\u200D\\u2070-\\u218F\\u2C00-\\u2FEF\\u3001-\\uD7FF\\uF900-\\uFDCF\\uFDF0-\\uFFFD\\u{10000}-\\u{EFFFF}'
const NAME_PART = `${NAME_START}.0-9\\u00B7\\u0300-\\u036F\\u203F\\u2040-`
const NAME = `[${NAME_START}][${NAME_PART}]*`

const QUALIFIED_NAME = new RegExp(`^${NAME}(?::${NAME})?$`, 'u')
const ILLEGAL = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/u

/** Tells whether an element or attribute may have the name, with or without a namespace prefix (XML 1.0 §2.3, Namespaces §4). */
export function isXmlName(text: string): boolean {
  return QUALIFIED_NAME.test(text)
}

/** Tells whether a document can hold the text at all: no control characters, no half of a pair (XML 1.0 §2.2). */
export function isXmlText(text: string): boolean {
  return !ILLEGAL.test(text)
}
