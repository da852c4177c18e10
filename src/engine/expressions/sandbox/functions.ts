import { constants, createHash, createHmac, createPrivateKey, type KeyObject, randomUUID, sign } from 'node:crypto'
import type jsonata from 'jsonata'
import { parseDate } from './dates.ts'
import { MAPPING_FUNCTIONS } from './mapping-functions.ts'

/** Longest result of `$pad`. */
const PAD_LENGTH_MAX = 65_536

/**
 * Registers the product's functions on an expression and replaces those that would bypass its limits. Those for mappings
 * (`$mapValue`, `$isoDate` and others) are in `mapping-functions.ts`; `formats/README.md` describes all for the authors of mappings.
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
  for (const [name, { call }] of MAPPING_FUNCTIONS) expression.registerFunction(name, call)
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

/** JSONata's `$pad` with a limit on the width; widths count characters, negative ones pad on the left. */
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

/** An error with a code, as JSONata's own have. */
function argumentError(message: string): Error {
  return Object.assign(new Error(message), { code: 'ARGUMENT' })
}

/** The value as one of the choices; an error that lists them otherwise. */
function oneOf<const T extends string>(choices: readonly T[], value: string): T {
  const found = choices.find((choice) => choice === value.toLowerCase())
  if (found === undefined) throw argumentError(`"${value.slice(0, 32)}" is not one of ${choices.join(', ')}`)
  return found
}

/**
 * A signed JWT in compact form (RFC 7515): header and claims as given, `alg` and `typ` set here. By node:crypto and not by
 * jose, because this process may read its own folder and the jsonata package only.
 *
 * @param key the shared secret for HS algorithms, a private key in PEM otherwise
 */
function signJwt(
  claims: object | undefined,
  key: string | undefined,
  algorithm = 'HS256',
  header: object = {},
): string | undefined {
  if (claims === undefined || key === undefined) return undefined
  const signer = SIGNERS.get(algorithm)
  if (!signer) throw argumentError(`"${algorithm.slice(0, 32)}" is not one of ${[...SIGNERS.keys()].join(', ')}`)
  const input = `${encode({ ...header, alg: algorithm, typ: 'JWT' })}.${encode(claims)}`
  return `${input}.${signer(input, key).toString('base64url')}`
}

type Signer = (input: string, key: string) => Buffer

const SIGNERS: ReadonlyMap<string, Signer> = new Map<string, Signer>([
  ['HS256', keyed('sha256')],
  ['HS384', keyed('sha384')],
  ['HS512', keyed('sha512')],
  ['RS256', rsa('sha256', constants.RSA_PKCS1_PADDING)],
  ['RS384', rsa('sha384', constants.RSA_PKCS1_PADDING)],
  ['RS512', rsa('sha512', constants.RSA_PKCS1_PADDING)],
  ['PS256', rsa('sha256', constants.RSA_PKCS1_PSS_PADDING)],
  ['ES256', ecdsa('sha256')],
  ['ES384', ecdsa('sha384')],
  ['EdDSA', (input, key) => sign(null, Buffer.from(input), privateKey(key))],
])

function keyed(digest: string): Signer {
  return (input, key) => createHmac(digest, key).update(input).digest()
}

function rsa(digest: string, padding: number): Signer {
  const saltLength = constants.RSA_PSS_SALTLEN_DIGEST
  return (input, key) => sign(digest, Buffer.from(input), { key: privateKey(key), padding, saltLength })
}

function ecdsa(digest: string): Signer {
  return (input, key) => sign(digest, Buffer.from(input), { key: privateKey(key), dsaEncoding: 'ieee-p1363' })
}

/** The library's own message may quote the key. */
function privateKey(pem: string): KeyObject {
  try {
    return createPrivateKey(pem)
  } catch {
    throw argumentError('The key of $jwtSign is not a private key in PEM form')
  }
}

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url')
}
