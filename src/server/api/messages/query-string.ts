import type { Finding } from '../operation.ts'
import { FINDINGS_MAX } from './json-shape.ts'

/** Longest part of a malformed name that is repeated to its sender. */
const NAME_LENGTH_MAX = 200

/**
 * Parses a query string into names and values (`application/x-www-form-urlencoded`), except that percent-encoding that is not
 * UTF-8 is a finding (`percent_encoding`) instead of U+FFFD.
 */
export function readQuery(text: string, findings: Finding[]): readonly (readonly [name: string, value: string])[] {
  if (isPercentEncoded(text)) return [...new URLSearchParams(text)]
  const { wellFormed = [], malformed = [] } = Object.groupBy(text.split('&'), (pair) =>
    isPercentEncoded(pair) ? 'wellFormed' : 'malformed',
  )
  for (const pair of malformed.slice(0, FINDINGS_MAX)) {
    const [name = ''] = pair.split('=', 1)
    findings.push({
      field: (isPercentEncoded(name) ? decodeURIComponent(name) : name).slice(0, NAME_LENGTH_MAX),
      description: 'is not valid percent-encoding of UTF-8: a percent sign is written %25',
      rule: 'percent_encoding',
    })
  }
  return [...new URLSearchParams(wellFormed.join('&'))]
}

function isPercentEncoded(text: string): boolean {
  if (!text.includes('%')) return true
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}
