import type { Field } from './fields.ts'

/** Characters without width that come along when text is copied: zero-width spaces, byte order marks, bidi controls. */
const INVISIBLE = /[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]/g

/** Joiners have a meaning inside words of some scripts, but in no address, number or id. */
const JOINERS = /[\u200c\u200d]/g

const BLANK = /[\s\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]/

/** Quotation marks, straight and typographic, and the angle brackets around a link. */
const QUOTE = /["'`<>\u2018-\u201f\u00ab\u00bb\u2039\u203a]/

/** Line breaks that are written as `\n`, as in JSON, and the begin of a PEM block (RFC 7468). */
const WRITTEN_BREAK = /(?:\\r)?\\n/g
const PEM = /^-----BEGIN [A-Z0-9 ]{1,64}-----/

/**
 * A pasted text as it was meant, before anything is checked. Applied twice it changes nothing more.
 *
 * Blanks and invisible characters at both ends are taken off, invisible ones inside too unless the field is a password; line
 * breaks become LF; a PEM block gets line breaks where `\n` was written. Of fields with a format: quotation marks around it,
 * and of a host name what an address has around it, `https://` and path.
 */
export function normalisePasted(field: Pick<Field, 'type' | 'format' | 'suffix'>, pasted: string): string {
  const text = restorePem(trimAll(pasted, BLANK))
  if (field.type === 'password') return text
  const visible = text.replace(INVISIBLE, '')
  if (field.type === 'textarea' || field.type === 'file') return visible.replace(/\r\n?/g, '\n')
  return field.format === undefined ? visible : normaliseFormat(field, trimAll(visible.replace(JOINERS, ''), QUOTE))
}

function restorePem(text: string): string {
  const block = trimAll(text, QUOTE)
  return PEM.test(block) ? trimAll(block.replace(WRITTEN_BREAK, '\n'), BLANK) : text
}

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
