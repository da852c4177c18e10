import { isJsonObject, type Json, type JsonObject, parseJson } from '../../../foundation/json/index.ts'
import type { Field } from './fields.ts'

/** Characters without width that come along when text is copied: zero-width spaces, byte order marks, bidi controls. */
const INVISIBLE = /[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]/g

/** Joiners have a meaning inside words of some scripts, but in no address, number or id. */
const JOINERS = /[\u200c\u200d]/g

const BLANK = /[\s\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]/

/** Quotation marks, straight and typographic, and the angle brackets around a link. */
const QUOTE = /["'`<>\u2018-\u201f\u00ab\u00bb\u2039\u203a]/

/** Line breaks, also written as `\n` as in JSON, and what became of them in an input of one line. */
const BREAKS = /(?:\\r|\\n|\s)+/g
/** The begin of a PEM block (RFC 7468). */
const PEM_BEGIN = /-----BEGIN ([A-Z0-9 ]{1,64})-----/g
const PEM_LINE = /.{1,64}/g
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

/**
 * A pasted text as it was meant, before anything is checked. Applied twice it changes nothing more.
 *
 * Blanks and invisible characters at both ends are taken off, invisible ones inside too unless the field is a password; line
 * breaks become LF; PEM blocks get their line breaks again, whatever became of these. Of a private key the JSON of a service account
 * may be given, or the text between the markers. Of fields with a format: quotation marks around it,
 * and of a host name what an address has around it, `https://` and path.
 */
export function normalisePasted(field: Pick<Field, 'type' | 'format' | 'suffix'>, pasted: string): string {
  const trimmed = trimAll(pasted, BLANK)
  const text = field.format === 'private_key' ? restoreKey(trimmed) : restorePem(trimmed)
  if (field.type === 'password') return text
  const visible = text.replace(INVISIBLE, '')
  if (field.type === 'textarea' || field.type === 'file') return visible.replace(/\r\n?/g, '\n')
  return field.format === undefined ? visible : normaliseFormat(field, trimAll(visible.replace(JOINERS, ''), QUOTE))
}

/** A text that begins with a PEM block: each block with lines of 64 characters, as far as it is base64. */
function restorePem(text: string): string {
  const given = trimAll(text, QUOTE)
  if (!given.startsWith('-----BEGIN ')) return text
  const blocks: string[] = []
  PEM_BEGIN.lastIndex = 0
  for (let begin = PEM_BEGIN.exec(given); begin !== null; begin = PEM_BEGIN.exec(given)) {
    const [head, label = ''] = begin
    const tail = `-----END ${label}-----`
    const end = given.indexOf(tail, PEM_BEGIN.lastIndex)
    if (end === -1) return text
    const body = given.slice(PEM_BEGIN.lastIndex, end).replace(BREAKS, '')
    if (!BASE64.test(body)) return trimAll(given.replaceAll('\\n', '\n'), BLANK)
    blocks.push([head, ...(body.match(PEM_LINE) ?? []), tail].join('\n'))
    PEM_BEGIN.lastIndex = end + tail.length
  }
  return blocks.join('\n')
}

/** A private key in PEM: of the JSON of a service account its `private_key`, of base64 alone a PKCS #8 block. */
function restoreKey(text: string): string {
  const ofFile = readKeyFile(text)?.private_key
  if (typeof ofFile === 'string') return restorePem(ofFile)
  const body = text.replace(BREAKS, '')
  return BASE64.test(body)
    ? restorePem(`-----BEGIN PRIVATE KEY-----${body}-----END PRIVATE KEY-----`)
    : restorePem(text)
}

/** The members of a key file, such as the JSON key of a Google service account; `undefined` for any other text. */
export function readKeyFile(text: Json | undefined): JsonObject | undefined {
  if (typeof text !== 'string' || text.length > KEY_FILE_LENGTH_MAX || !/^\s*\{/.test(text)) return undefined
  try {
    const parsed = parseJson(text)
    return isJsonObject(parsed) && typeof parsed.private_key === 'string' ? parsed : undefined
  } catch {
    return undefined
  }
}

const KEY_FILE_LENGTH_MAX = 16 * 1024

function normaliseFormat({ format, suffix = '' }: Pick<Field, 'format' | 'suffix'>, text: string): string {
  switch (format) {
    case 'hostname':
      return hostOf(text)
    case 'hostname_label':
      return stripSuffix(hostOf(text), suffix)
    case 'email':
      return text.replace(/^mailto:/i, '')
    case 'uuid':
      return text.replace(/^urn:uuid:/i, '').replace(/^\{|\}$/g, '')
    case 'tel':
      return text.replace(/^tel:/i, '').replace(/[\s().\u2010-\u2015/-]/g, '')
    case 'url':
      return /^[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){0,8}\.[a-z]{2,63}(?:[:/?#]|$)/i.test(text)
        ? `https://${text}`
        : text
    default:
      return text
  }
}

/** The host of an address that may have a scheme, user, port, path and query. */
function hostOf(text: string): string {
  const [authority = ''] = text.replace(/^[a-z][a-z0-9+.-]{0,31}:\/\/|^\/\//i, '').split(/[/?#\\\s]/, 1)
  return authority.slice(authority.lastIndexOf('@') + 1).replace(/:\d{1,5}$|\.$/, '')
}

/** Without a domain such as `.zendesk.com`; host names have no case (RFC 4343). */
function stripSuffix(host: string, suffix: string): string {
  const isBelow = suffix !== '' && host.toLowerCase().endsWith(suffix.toLowerCase())
  return isBelow ? host.slice(0, -suffix.length) : host
}

/** Without the characters of a class at both ends, in linear time. */
function trimAll(text: string, characters: RegExp): string {
  let start = 0
  let end = text.length
  while (start < end && characters.test(text[start] ?? '')) start += 1
  while (end > start && characters.test(text[end - 1] ?? '')) end -= 1
  return text.slice(start, end)
}
