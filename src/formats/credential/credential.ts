import type { DotPath, Json, JsonObject } from '../../base/index.ts'
import type { TemplateScope } from '../../expressions/index.ts'
import type { EvaluateExpression, Format, FormatChoice } from '../format.ts'
import type { RequestDefinition } from '../request-keys.ts'
import type { Field } from './fields.ts'

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

/** A token as a third party gave it out. Credential material throughout: never shown, never logged. */
export interface TokenSet {
  readonly accessToken: string
  /** Buys the next token without the customer. */
  readonly refreshToken: string | undefined
  /** Absent: nobody said; it is good until it is refused. */
  readonly expiresAt: Date | undefined
  /** The answer with `access_token` and `refresh_token` under these names, over what the token before had: `{{oauth.token.…}}`. */
  readonly fields: JsonObject
}

/** What became of asking for a token. */
export type TokenResult = { readonly kind: 'granted'; readonly token: TokenSet } | TokenError

/** Why there is no token, and thereby whose matter it is. */
export interface TokenError {
  /**
   * `grant_refused`: the account's own credentials or consent are no longer good. `client_refused`: the integration's client
   * or its settings are wrong, the account can do nothing about it. `transient`: nothing is known, ask again later.
   */
  readonly kind: 'grant_refused' | 'client_refused' | 'transient'
  /** For people; may repeat what was sent, so whoever shows it takes secrets out. */
  readonly message: string
  /** As the server asked. */
  readonly retryAfterSeconds: number | undefined
}

/** How tokens of one definition are had and kept. `Request` is a request that has been compiled for whoever sends it. */
export interface TokenRules<Request> {
  /** Whether a token can be had without the customer: with the account's fields, or with the token it has. */
  canRequestToken(previous: TokenSet | undefined): boolean
  /**
   * Asks for a token, or for the next one.
   *
   * @param scope the account with `previous` as `{{oauth.token.…}}`
   * @throws Failure whatever `send` and `evaluate` throw; PLACEHOLDER_UNRESOLVED when a part of a request has no value
   */
  requestToken(tools: TokenContext<Request>, scope: TemplateScope, previous: TokenSet | undefined): Promise<TokenResult>
  /** Context keys that are filled from `TokenSet.fields`. */
  readonly contextFromToken: readonly (readonly [string, DotPath])[]
}

/** Compiles the requests of a grant. A format knows no definition around it, so it leaves that to whoever does. */
export type CompileTokenRules = <Request>(
  compileRequest: (request: RequestDefinition) => Request,
) => TokenRules<Request>

/** What asking for a token may use. */
export interface TokenContext<Request> {
  /** Sends one request: no redirect, no repetition. @throws Failure when no answer came */
  readonly send: (request: Request, scope: TemplateScope) => Promise<TokenResponse>
  readonly evaluate: EvaluateExpression
  readonly now: () => Date
  /** A fresh unpredictable text, for the id of an assertion. */
  readonly nonce: () => string
}

/** An answer to a token request. */
export interface TokenResponse {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** The text as it came, unless the request names a `response_format`. */
  readonly body: Json
}
