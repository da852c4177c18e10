import type { DotPath, Json, JsonObject } from '../../../foundation/json/index.ts'
import type { TemplateScope } from '../../expressions/placeholder.ts'
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
  /** How the customer's consent is obtained; present exactly where connecting takes a redirect to the third party. */
  readonly authorization?: CompileAuthorizationRules
  /** The first token comes from the customer's consent, or is imported with the fields (`IMPORTED_FIELDS`). */
  readonly isTokenImported?: boolean
  /** Names the customer's account at the third party; a reconnection must find the same one. */
  readonly identity?: Identity<RequestDefinition>
  /** Lifetimes of tokens and client that no response contains. */
  readonly lifetimes?: Lifetimes
}

/** Where the id of the customer's account at the third party is found. */
export type Identity<Request> =
  | {
      readonly kind: 'response'
      /** Absent: `path` leads into the response of the token endpoint. */
      readonly request: Request | undefined
      /** To a text or a number. */
      readonly path: DotPath
    }
  /** A key of the account's context, which the redirect, `post_install` or the customer's choice fills. */
  | { readonly kind: 'context'; readonly key: string }

/** Ends of tokens and of the client. */
export interface Lifetimes {
  /** A refresh token that is not used for so many days is invalid. */
  readonly refreshTokenIdleDays: number | undefined
  /** A grant ends so many days after the consent, however often it is refreshed. */
  readonly refreshTokenMaxDays: number | undefined
  /** When the secret of the integration's client ends; `undefined` when it is not known. @throws Failure PLACEHOLDER_UNRESOLVED */
  readonly clientSecretExpiresAt: (scope: TemplateScope) => Date | undefined
}

/** One of the credentials of a definition. */
export interface CredentialChoice extends FormatChoice {
  /** In the map of `credentials`; of a single credential its format. */
  readonly key: string
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
   * settings are wrong. `transient`: retry later. `unclear`: the response says nothing about its cause; like `transient`, until
   * it has lasted.
   */
  readonly kind: 'grant_refused' | 'client_refused' | 'transient' | 'unclear'
  /** For people; may quote the request, so that secrets must be redacted before it is shown. */
  readonly message: string
  /** The server's `Retry-After`. */
  readonly retryAfterSeconds: number | undefined
  /** The entry of the last request in the request log; absent where nothing was sent or is logged. */
  readonly logId?: string | undefined
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
  /**
   * Revokes a token at the third party (RFC 7009), the refresh token first. Absent where the definition names no address.
   *
   * @param scope the account with the token as `{{oauth.token.…}}`
   * @throws Failure like `requestToken`
   */
  revokeToken?(context: TokenContext<Request>, scope: TemplateScope, token: TokenSet): Promise<RevocationResult>
}

/** Result of a revocation. A token that the third party does not know counts as revoked. */
export type RevocationResult = { readonly kind: 'revoked' } | TokenError

/** How the customer's consent is obtained: a redirect to the third party, and what it sends back. */
export interface AuthorizationRules<Request> {
  /** All scopes that `begin` requests. @param scopes those of `AuthorizationStart` */
  requestedScopes(scopes: readonly string[]): readonly string[]
  /**
   * Builds the address of the consent page. For OAuth 1.0a a request token is obtained first.
   *
   * @param scope the fields that were collected before the redirect, and `{{connection.redirect_uri}}`
   * @throws Failure of `send`; PLACEHOLDER_UNRESOLVED when a part of the address has no value
   */
  begin(
    context: TokenContext<Request>,
    scope: TemplateScope,
    start: AuthorizationStart,
  ): Promise<AuthorizationRedirect | AuthorizationFailure>
  /**
   * Reads the parameters with which the third party sent the browser back, and exchanges the code. The exchange is sent once:
   * a code that was sent twice revokes the tokens of the first exchange at many servers.
   *
   * @throws Failure of `send` and `evaluate`; PLACEHOLDER_UNRESOLVED
   */
  complete(
    context: TokenContext<Request>,
    scope: TemplateScope,
    back: AuthorizationReturn,
  ): Promise<AuthorizationResult>
}

/** What a redirect to the third party carries. */
export interface AuthorizationStart {
  /** The address of this installation to which the browser comes back. */
  readonly redirectUri: string
  /** Single-use text that comes back with the browser; its owner compares it. */
  readonly state: string
  /** Scopes beside those that the definition always requests. */
  readonly scopes: readonly string[]
}

/** Where the browser is sent. */
export interface AuthorizationRedirect {
  readonly kind: 'redirect'
  readonly url: string
  /** What `complete` needs: PKCE verifier, secret of a request token, issuer, scopes. Credential material. */
  readonly secrets: JsonObject
}

/** The browser's return. */
export interface AuthorizationReturn {
  /** Parameters of the query or form, decoded. */
  readonly params: Readonly<Record<string, string>>
  /** The one that `begin` was given. */
  readonly redirectUri: string
  /** What `begin` returned. */
  readonly secrets: JsonObject
}

/** What came of a consent. */
export type AuthorizationResult = AuthorizationGrant | AuthorizationPending | AuthorizationFailure

/** A consent with its token. */
interface AuthorizationGrant {
  readonly kind: 'granted'
  readonly token: TokenSet
  /** Context keys of `context_from_redirect`. */
  readonly context: JsonObject
  /** The requested ones where the response names none. */
  readonly grantedScopes: readonly string[]
  /** Requested, and not granted. */
  readonly missingScopes: readonly string[]
}

/** A consent that another person has to confirm, for example an administrator. */
interface AuthorizationPending {
  readonly kind: 'pending'
  /** Context keys of `context_from_redirect`. */
  readonly context: JsonObject
}

/** A consent that brought no token. */
export interface AuthorizationFailure {
  readonly kind: 'failed'
  readonly code: AuthorizationErrorCode
  /** For people; may quote the request, so that secrets must be redacted before it is shown. */
  readonly message: string
  /** The error code of the third party. */
  readonly providerError?: string
}

/** Why a consent brought no token: a part of the error codes of link sessions. */
export type AuthorizationErrorCode =
  | 'consent_denied'
  | 'issuer_mismatch'
  | 'provider_error'
  | 'token_exchange_failed'
  | 'provider_unreachable'
  | 'scope_missing'

/** Compiles the redirect of a format. @param baseUrl of the integration, the default host of its addresses */
export type CompileAuthorizationRules = <Request>(
  compileRequest: (request: RequestDefinition) => Request,
  baseUrl: string | undefined,
) => AuthorizationRules<Request>

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
  /** 256 random bits in base64url, for a PKCE verifier. */
  readonly randomSecret: () => string
}

/** An answer to a token request. */
export interface TokenResponse {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  /** Cookies that it sets, by name; absent: none. */
  readonly cookies?: Readonly<Record<string, string>> | undefined
  /** The text as it came, unless the request names a `response_format`. */
  readonly body: Json
  /** The error that the definition's `error_expression` finds in it; it counts where the response holds no token. */
  readonly rejection?: TokenRejection | undefined
}

/** An error that a definition recognizes in a response of any status. */
export interface TokenRejection {
  /** The third party's text. */
  readonly message: string
  /** It says that the third party is busy or asks to wait. */
  readonly isTransient: boolean
}
