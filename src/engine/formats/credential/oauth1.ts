import { z } from 'zod'
import { isJsonObject, type Json, type JsonObject } from '../../../foundation/json/index.ts'
import type { TemplateScope } from '../../expressions/placeholder.ts'
import { compileJson, compileTemplate, renderObject, renderText } from '../../expressions/template.ts'
import { compileUrl, renderUrl } from '../../expressions/url-template.ts'
import { withSchema } from '../format.ts'
import type { RequestDefinition } from '../request-keys.ts'
import { secretText, templateMap, templateText, urlText, webAddress } from '../schema-types.ts'
import { OAUTH1_METHODS, signOAuth1 } from '../sign-oauth1.ts'
import { exchangeFailure } from './authorization-code.ts'
import { joinAddress, writeParams } from './authorize-url.ts'
import { connectionKeys, connectionOf, contextFromToken, contextPaths } from './config-keys.ts'
import type {
  AuthorizationFailure,
  AuthorizationRedirect,
  AuthorizationResult,
  AuthorizationReturn,
  AuthorizationStart,
  CompileAuthorizationRules,
  CredentialFormat,
  TokenContext,
} from './credential.ts'
import { fieldList } from './fields.ts'
import { compileLifetimes, lifetimes } from './lifetimes.ts'
import { failed } from './redirect.ts'
import { withoutEmpty } from './token-endpoint.ts'
import { grantedToken, isTokenError, parseExpiry, parseLooseBody, tokenErrorFrom, tokenText } from './token-response.ts'

const oauth1Config = z.strictObject({
  request_token_url: urlText().describe('Address that issues request tokens.'),
  authorize_url: urlText().describe('Address of the consent page.'),
  access_token_url: urlText().describe('Address that exchanges a request token for an access token.'),
  consumer_key: templateText()
    .optional()
    .describe('Identifies the application. Default: `{{environment_variables.CONSUMER_KEY}}`.'),
  consumer_secret: secretText()
    .optional()
    .describe('Secret of the application. Default: `{{environment_variables.CONSUMER_SECRET}}`.'),
  signature_method: z.enum(OAUTH1_METHODS).default('HMAC-SHA1').describe('How the signature is computed.'),
  requestTokenParams: templateMap().optional().describe('Further parameters of the request for a request token.'),
  authorizeParams: templateMap().optional().describe('Further parameters of the consent page.'),
  fields: fieldList().default([]).describe('Asked before the redirect.'),
  ...contextFromToken,
  ...connectionKeys,
  lifetimes,
  documentation_link: webAddress().optional().describe('Where the customer reads how to connect.'),
})

type OAuth1Settings = z.output<typeof oauth1Config>

/** `oauth1`: RFC 5849 §2. The token does not end, and is never refreshed. */
export const oauth1Consent: CredentialFormat = {
  format: 'oauth1',
  authenticationMethod: 'vendor_oauth',
  summary:
    'OAuth 1.0a with consent. The token is `{{oauth.token.access_token}}` with `{{oauth.token.token_secret}}`, the other fields of the answer are beside them; requests are signed by the authorization `oauth1`. Recorded as `vendor_oauth`. A token that was granted elsewhere may be imported, as `access_token` and `token_secret` beside the fields.',
  config: oauth1Config,
  compile: withSchema(oauth1Config, (parsed) => ({
    format: 'oauth1',
    fields: parsed.fields,
    isTokenImported: true,
    authorization: oauth1Rules(parsed),
    token: () => ({
      contextFromToken: contextPaths(parsed.context_from_token),
      canRequestToken: () => false,
      requestToken: () => Promise.reject(new Error('a token of OAuth 1.0a cannot be refreshed')),
    }),
    ...connectionOf(parsed),
    ...compileLifetimes(parsed.lifetimes),
  })),
}

function oauth1Rules(settings: OAuth1Settings): CompileAuthorizationRules {
  const writeUrl = compileConsentUrl(settings)
  return (compileRequest) => {
    const ask = compileSignedRequest(settings, compileRequest)
    return {
      requestedScopes: () => [],
      async begin(context, scope, start) {
        const answer = await ask(context, scope, {
          kind: 'request_token',
          extra: { oauth_callback: callbackOf(start) },
        })
        return answer.kind === 'failed'
          ? atBegin(answer)
          : readRequestToken(answer.fields, (token) => writeUrl(scope, token))
      },
      async complete(context, scope, back) {
        const granted = readVerifier(back)
        if (granted.kind === 'failed') return granted
        const { token, verifier } = granted
        const answer = await ask(context, scope, { kind: 'access_token', token, extra: { oauth_verifier: verifier } })
        return answer.kind === 'failed' ? answer : readAccessToken(answer.fields, context.now())
      },
    }
  }
}

/** There is no code to exchange yet. */
function atBegin(failure: AuthorizationFailure): AuthorizationFailure {
  return failure.code === 'token_exchange_failed' ? { ...failure, code: 'provider_error' } : failure
}

/** OAuth 1.0a has no `state`: it is a parameter of the callback, which comes back as it was given. */
function callbackOf({ redirectUri, state }: AuthorizationStart): string {
  return `${redirectUri}${redirectUri.includes('?') ? '&' : '?'}state=${encodeURIComponent(state)}`
}

function compileConsentUrl(settings: OAuth1Settings): (scope: TemplateScope, token: string) => string {
  const address = compileUrl(settings.authorize_url, '')
  const extras = compileJson(settings.authorizeParams ?? {})
  return (scope, oauth_token) => {
    const params = withoutEmpty({ oauth_token, ...renderObject(extras, scope) }, false)
    return joinAddress(renderUrl(address, scope), writeParams(params, []), undefined)
  }
}

/** Key and secret of a request token, the temporary credential of RFC 5849. */
interface TemporaryCredential {
  readonly key: string
  readonly secret: string
}

/** The secret of the request token is kept for the exchange (RFC 5849 §2.1). */
function readRequestToken(
  fields: JsonObject,
  writeUrl: (token: string) => string,
): AuthorizationRedirect | AuthorizationFailure {
  const key = tokenText(fields.oauth_token)
  const secret = tokenText(fields.oauth_token_secret)
  if (key === undefined || secret === undefined)
    return failed('provider_error', 'the answer of the third party holds no request token')
  if (String(fields.oauth_callback_confirmed) !== 'true')
    return failed('provider_error', 'the third party did not confirm the callback (oauth_callback_confirmed)')
  return { kind: 'redirect', url: writeUrl(key), secrets: { token: key, secret } }
}

type Verified =
  | { readonly kind: 'verified'; readonly token: TemporaryCredential; readonly verifier: string }
  | AuthorizationFailure

/** RFC 5849 §2.2. A customer who declines comes back with `denied`, or without a verifier. */
function readVerifier({ params, secrets }: AuthorizationReturn): Verified {
  const { oauth_token, oauth_verifier = '', denied, oauth_problem } = params
  const [key, secret] = [secrets.token, secrets.secret]
  if (typeof key !== 'string' || typeof secret !== 'string') throw new Error('the session holds no request token')
  if (denied !== undefined || oauth_problem === 'permission_denied' || oauth_problem === 'user_refused')
    return failed('consent_denied', 'the customer declined', oauth_problem ?? 'denied')
  if (oauth_problem !== undefined)
    return failed('provider_error', oauth_problem.slice(0, 100), oauth_problem.slice(0, 100))
  if (oauth_token !== key) return failed('provider_error', 'the redirect is about another request token')
  if (oauth_verifier === '') return failed('consent_denied', 'the redirect holds no oauth_verifier')
  return { kind: 'verified', token: { key, secret }, verifier: oauth_verifier }
}

function readAccessToken(fields: JsonObject, now: Date): AuthorizationResult {
  const accessToken = tokenText(fields.oauth_token)
  const token_secret = tokenText(fields.oauth_token_secret)
  if (accessToken === undefined || token_secret === undefined)
    return failed('token_exchange_failed', 'the answer of the third party holds no access token')
  const expiresAt = parseExpiry(fields.oauth_expires_in, now)
  const { token } = grantedToken(
    { accessToken, refreshToken: undefined, expiresAt },
    { ...fields, token_secret },
    undefined,
  )
  return { kind: 'granted', token, context: {}, grantedScopes: [], missingScopes: [] }
}

/** A request for a token. */
type SignedCall =
  | { readonly kind: 'request_token'; readonly token?: undefined; readonly extra: Readonly<Record<string, string>> }
  | {
      readonly kind: 'access_token'
      readonly token: TemporaryCredential
      readonly extra: Readonly<Record<string, string>>
    }

type SendSigned<Request> = (
  context: TokenContext<Request>,
  scope: TemplateScope,
  call: SignedCall,
) => Promise<{ readonly kind: 'fields'; readonly fields: JsonObject } | AuthorizationFailure>

/** Compiles the two signed requests; parameters of the protocol are in the header, further ones in a form. */
function compileSignedRequest<Request>(
  settings: OAuth1Settings,
  compileRequest: (request: RequestDefinition) => Request,
): SendSigned<Request> {
  const requests = {
    request_token: compileCall(settings.request_token_url, settings.requestTokenParams ?? {}, compileRequest),
    access_token: compileCall(settings.access_token_url, {}, compileRequest),
  }
  const key = compileTemplate(settings.consumer_key ?? '{{environment_variables.CONSUMER_KEY}}')
  const secret = compileTemplate(settings.consumer_secret ?? '{{environment_variables.CONSUMER_SECRET}}')
  return async (context, scope, { kind, token, extra }) => {
    const { request, address, form } = requests[kind]
    const params = withoutEmpty(renderObject(form, scope), false)
    const body = writeParams(params, [])
    const signed = { method: 'POST', url: renderUrl(address, scope), headers: { 'content-type': FORM_TYPE }, body }
    const authorization = signOAuth1(signed, {
      signatureMethod: settings.signature_method,
      consumerKey: renderText(key, scope),
      consumerSecret: renderText(secret, scope),
      token,
      extra: { oauth_version: '1.0', ...extra },
      nonce: context.nonce(),
      now: context.now(),
    })
    const args: JsonObject = { authorization, body, params: { ...extra, ...token } }
    const response = await context.send(request, { ...scope, call: { ...scope.call, args } })
    const read = parseLooseBody(response)
    if (!isTokenError(read) && isJsonObject(read.body)) return { kind: 'fields', fields: read.body }
    return exchangeFailure(tokenErrorFrom(read, 'integration', context.now()))
  }
}

const FORM_TYPE = 'application/x-www-form-urlencoded'

function compileCall<Request>(
  url: string,
  params: Readonly<Record<string, Json>>,
  compileRequest: (request: RequestDefinition) => Request,
) {
  const request = compileRequest({
    method: 'POST',
    base_url: url,
    path: '',
    headers: { authorization: '{{args.authorization}}', 'content-type': FORM_TYPE, accept: '*/*' },
    body: '{{args.body}}',
    body_format: 'raw',
  })
  return { request, address: compileUrl(url, ''), form: compileJson(params) }
}
