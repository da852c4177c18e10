import { isUtf8 } from 'node:buffer'

const NOT_ASCII = /[\x80-\xff]/

/**
 * A response header as UTF-8 where its bytes are that, else as it is: Node.js reads each byte as one character (Latin-1), and third
 * parties send URLs and cursors with raw UTF-8.
 */
export function headerText(value: string): string {
  if (!NOT_ASCII.test(value)) return value
  const bytes = Buffer.from(value, 'latin1')
  return isUtf8(bytes) ? bytes.toString('utf8') : value
}

/** All headers by `headerText`, to be read by expressions and paging; not to be sent. */
export function headerTexts(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  if (!Object.values(headers).some((value) => NOT_ASCII.test(value))) return headers
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, headerText(value)]))
}

/** The value of `accept-encoding`. */
export const ACCEPTED_ENCODINGS = 'gzip, deflate, br, zstd'
