import { createHash, createHmac, randomUUID } from 'node:crypto'
import type jsonata from 'jsonata'
import { argumentError, oneOf } from './arguments.ts'
import { parseDate } from './dates.ts'
import { signJwt } from './jwt.ts'

/** Longest text `$pad` makes. */
const PAD_LENGTH_MAX = 65_536

/**
 * Adds the functions of this product to an expression and takes away what would get around its limits.
 *
 * | function | result |
 * |---|---|
 * | `$hmac(text, key, algorithm?, output?, keyEncoding?)` | keyed digest; sha256, hex, utf8 |
 * | `$hash(text, algorithm?, output?)` | digest; sha256, hex |
 * | `$base64url(text)` | UTF-8 in base64url without padding |
 * | `$uuid()` | random, version 4: for places where repeating the call may give another value |
 * | `$parseDate(value)` | epoch milliseconds of an ISO 8601 or HTTP date or an epoch; nothing when it is none |
 * | `$jwtSign(claims, key, algorithm?, header?)` | compact JWS; HS256 |
 */
export function registerFunctions(expression: jsonata.Expression): void {
  expression.registerFunction('hmac', hmac, '<s-ss?s?s?:s>')
  expression.registerFunction('hash', hash, '<s-s?s?:s>')
  expression.registerFunction('base64url', base64url, '<s-:s>')
  expression.registerFunction('uuid', () => randomUUID(), '<:s>')
  expression.registerFunction('parseDate', parseDate, '<(sn)-:n>')
  expression.registerFunction('jwtSign', signJwt, '<oss?o?:s>')
  expression.registerFunction('pad', pad, '<s-ns?:s>')
  expression.registerFunction('eval', rejectEval, '<sx?:x>')
}

const ALGORITHMS = ['sha1', 'sha256', 'sha384', 'sha512', 'md5'] as const
const OUTPUTS = ['hex', 'base64', 'base64url'] as const
const KEY_ENCODINGS = ['utf8', 'hex', 'base64', 'base64url'] as const

function hmac(
  text: string | undefined,
  key: string | undefined,
  algorithm = 'sha256',
  output = 'hex',
  keyEncoding = 'utf8',
): string | undefined {
  if (text === undefined || key === undefined) return undefined
  const secret = Buffer.from(key, oneOf(KEY_ENCODINGS, keyEncoding))
  return createHmac(oneOf(ALGORITHMS, algorithm), secret).update(text).digest(oneOf(OUTPUTS, output))
}

function hash(text: string | undefined, algorithm = 'sha256', output = 'hex'): string | undefined {
  if (text === undefined) return undefined
  return createHash(oneOf(ALGORITHMS, algorithm)).update(text).digest(oneOf(OUTPUTS, output))
}

function base64url(text: string | undefined): string | undefined {
  return text === undefined ? undefined : Buffer.from(text).toString('base64url')
}

/** JSONata's `$pad` with a bound on the width; widths count characters, negative ones pad on the left. */
function pad(text: string | undefined, width: number, filler = ' '): string | undefined {
  if (text === undefined) return undefined
  if (Math.abs(width) > PAD_LENGTH_MAX) throw argumentError(`The width of $pad must not exceed ${PAD_LENGTH_MAX}`)
  const missing = Math.abs(Math.trunc(width)) - [...text].length
  if (missing <= 0) return text
  const unit = [...(filler === '' ? ' ' : filler)]
  const whole = unit.join('').repeat(Math.floor(missing / unit.length))
  const padding = whole + unit.slice(0, missing % unit.length).join('')
  return width > 0 ? text + padding : padding + text
}

function rejectEval(): never {
  throw argumentError('$eval is not available')
}
