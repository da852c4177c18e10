/**
 * `authorization`: how outgoing requests are authorized. The registry of its formats.
 *
 * @module
 */
import { type FormatChoice, formatUnion, getFormat } from '../format.ts'
import { type AuthorizationFormat, type Authorize, none } from './authorization.ts'
import { awsSigv4 } from './aws-sigv4.ts'
import { basic } from './basic.ts'
import { bearer } from './bearer.ts'
import { header, query } from './header-or-query.ts'
import { jwt } from './jwt.ts'
import { oauth1 } from './oauth1.ts'

export const AUTHORIZATION_FORMATS: readonly AuthorizationFormat[] = [
  bearer,
  basic,
  header,
  query,
  oauth1,
  awsSigv4,
  jwt,
  none,
]

/** Schema of `authorization`. */
export const authorizationSchema = formatUnion('Authorization', AUTHORIZATION_FORMATS)

/** Compiles a checked `{format, config}`. */
export function compileAuthorization({ format, config }: FormatChoice): Authorize {
  return getFormat(AUTHORIZATION_FORMATS, format).compile(config)
}
