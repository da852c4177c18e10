import type { Json } from '../../base/index.ts'
import type { Format, FormatChoice } from '../format.ts'
import type { RequestDefinition } from '../request-keys.ts'
import type { Field } from './field.ts'
import type { CompileTokenRules } from './token.ts'

/** One way of connecting an account; `format` is what the account records as `authentication_method`. */
export interface CredentialFormat extends Format {
  readonly authenticationMethod: AuthenticationMethodName
  readonly compile: (config: Json | undefined) => CredentialPlan
}

/** The specification's list. */
type AuthenticationMethodName = 'api_key' | 'oauth2' | 'oauth2_client_credentials' | 'vendor_oauth'

/** What connecting needs to know of a checked config. */
export interface CredentialPlan {
  readonly format: string
  /** Asked of the customer: before a redirect, or as the whole credential. */
  readonly fields: readonly Field[]
  /** A request that must succeed before the account counts as connected. */
  readonly verification: RequestDefinition | undefined
  /** How tokens are had and kept; absent where the fields are all there is. */
  readonly token?: CompileTokenRules
  /** The first token comes from elsewhere: from the customer's consent, or imported with the fields (`IMPORTED_FIELDS`). */
  readonly isTokenImported?: boolean
}

/** A credential definition under its format. */
export interface CredentialChoice extends FormatChoice {
  /** Shown where the customer picks one of several. */
  readonly label?: string | undefined
}
