/**
 * `authorization`: how outgoing requests are authorized. The registry of its formats.
 *
 * @module
 */
import type { Json } from '../../../foundation/json/index.ts'
import { type FormatChoice, formatUnion, getFormat } from '../format.ts'
import { type AuthorizationFormat, type Authorize, none } from './authorization.ts'
import { awsSigv4 } from './aws-sigv4.ts'
import { basic } from './basic.ts'
import { bearer } from './bearer.ts'
import { digest } from './digest.ts'
import { header, query } from './header-or-query.ts'
import { jwt } from './jwt.ts'
import { oauth1 } from './oauth1.ts'

export const AUTHORIZATION_FORMATS: readonly AuthorizationFormat[] = [
  bearer,
  basic,
  digest,
  header,
  query,
  oauth1,
  awsSigv4,
  jwt,
  none,
]

/** Schema of `authorization`. */
export const authorizationSchema = formatUnion('Authorization', AUTHORIZATION_FORMATS)

/** Formats that send a secret of the account as it is: a client that has the secret can call. */
const SENDS_SECRET: ReadonlySet<string> = new Set(['bearer', 'basic', 'header', 'query'])

/** Whether requests carry a secret of the account as it is; else they are signed, computed by an expression, or carry none. */
export function sendsSecret({ format, config }: FormatChoice): boolean {
  return SENDS_SECRET.has(format) && (config as { readonly expression?: Json } | undefined)?.expression === undefined
}

/** Compiles a checked `{format, config}`. */
export function compileAuthorization({ format, config }: FormatChoice): Authorize {
  return getFormat(AUTHORIZATION_FORMATS, format).compile(config)
}
