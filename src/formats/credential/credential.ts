import type { DotPath, Json, JsonObject } from '../../base/index.ts'
import type { TemplateScope } from '../../expressions/index.ts'
import type { EvaluateExpression, Format, FormatChoice } from '../format.ts'
import type { RequestDefinition } from '../request-keys.ts'
import type { Field } from './fields.ts'

/** One way of connecting an account. */
export interface CredentialFormat extends Format {
  readonly authenticationMethod: AuthenticationMethod
  readonly compile: (config: Json | undefined) => CredentialPlan
}

/** How an account authenticates with the third party; a value of its `authentication_method`. */
export type AuthenticationMethod = 'api_key' | 'oauth2' | 'oauth2_client_credentials' | 'vendor_oauth'

/** A compiled credential format. */
export interface CredentialPlan {
  readonly format: string
  /** Fields for the customer: before a redirect, or as the whole credential. */
  readonly fields: readonly Field[]
  /** A request that must succeed before the account counts as connected. */
  readonly verification: RequestDefinition | undefined
  /** How tokens are requested and refreshed; absent where the fields are the whole credential. */
  readonly token?: CompileTokenRules
  /** The first token comes from the customer's consent, or is imported with the fields (`IMPORTED_FIELDS`). */
  readonly isTokenImported?: boolean
}

/** One of the credential formats of a definition. */
export interface CredentialChoice extends FormatChoice {
  /** Shown where the customer picks one of several. */
  readonly label?: string | undefined
}

/** An access token with its refresh token and lifetime. Credential material: never shown, never logged. */
export interface TokenSet {
  readonly accessToken: string
  /** Refresh token: requests the next token without the customer. */
  readonly refreshToken: string | undefined
  /** Absent when the response names none: the token is used until it is rejected. */
  readonly expiresAt: Date | undefined
  /** `{{oauth.token.…}}`: the response, with `access_token` and `refresh_token`, merged over the fields of the previous token. */
  readonly fields: JsonObject
}

/** Result of a token request. */
export type TokenResult = { readonly kind: 'granted'; readonly token: TokenSet } | TokenError

/** Why a token request failed, and who has to act. */
export interface TokenError {
  /**
   * `grant_refused`: the account's credentials or consent are invalid. `client_refused`: the integration's client or its
   * settings are wrong. `transient`: retry later.
   */
  readonly kind: 'grant_refused' | 'client_refused' | 'transient'
  /** For people; may quote the request, so that secrets must be redacted before it is shown. */
  readonly message: string
  /** The server's `Retry-After`. */
  readonly retryAfterSeconds: number | undefined
}

/** How tokens of one definition are requested. `Request` is the caller's type of a compiled request. */
export interface TokenRules<Request> {
  /** A token can be requested without the customer: with the account's fields, or with its previous token. */
  canRequestToken(previous: TokenSet | undefined): boolean
  /**
   * Requests a token, or refreshes the previous one.
   *
   * @param scope the account with `previous` as `{{oauth.token.…}}`
   * @throws Failure of `send` and `evaluate`; PLACEHOLDER_UNRESOLVED when a part of a request has no value
   */
  requestToken(
    context: TokenContext<Request>,
    scope: TemplateScope,
    previous: TokenSet | undefined,
  ): Promise<TokenResult>
  /** Context keys that are filled from `TokenSet.fields`. */
  readonly contextFromToken: readonly (readonly [string, DotPath])[]
}

/** Compiles the requests of a grant: the caller knows the definition, the format does not. */
export type CompileTokenRules = <Request>(
  compileRequest: (request: RequestDefinition) => Request,
) => TokenRules<Request>

/** Dependencies of a token request. */
export interface TokenContext<Request> {
  /** Sends one request, without redirects and retries. @throws Failure when there is no response */
  readonly send: (request: Request, scope: TemplateScope) => Promise<TokenResponse>
  readonly evaluate: EvaluateExpression
  readonly now: () => Date
  /** A random text, for the id of an assertion. */
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
