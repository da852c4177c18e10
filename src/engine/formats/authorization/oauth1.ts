import { z } from 'zod'
import type { TemplateScope } from '../../expressions/placeholder.ts'
import { compileTemplate, renderText } from '../../expressions/template.ts'
import { withSchema } from '../format.ts'
import { secretText, templateText } from '../schema-types.ts'
import { OAUTH1_METHODS, signOAuth1 } from '../sign-oauth1.ts'
import type { AuthorizationFormat, Authorize } from './authorization.ts'

const config = z.strictObject({
  consumer_key: templateText().describe('Identifies the application.'),
  consumer_secret: secretText().describe('Secret of the application.'),
  token: templateText()
    .default('{{oauth.token.access_token}}')
    .describe("The account's token. Default: its access token."),
  token_secret: secretText().default('{{oauth.token.token_secret}}').describe('Default: `oauth.token.token_secret`.'),
  signature_method: z.enum(OAUTH1_METHODS).default('HMAC-SHA1').describe('How the signature is computed.'),
  realm: templateText().optional().describe('Sent first in the header, not signed.'),
})

/** `oauth1`: RFC 5849 in the Authorization header. */
export const oauth1: AuthorizationFormat = {
  format: 'oauth1',
  summary: 'Signs the request with OAuth 1.0a and sends the parameters in `Authorization: OAuth …`.',
  config,
  compile: withSchema(config, compileOAuth1),
}

function compileOAuth1(parsed: z.output<typeof config>): Authorize {
  const text = (template: string) => {
    const compiled = compileTemplate(template)
    return (scope: TemplateScope) => renderText(compiled, scope)
  }
  const consumerKey = text(parsed.consumer_key)
  const consumerSecret = text(parsed.consumer_secret)
  const token = text(parsed.token)
  const tokenSecret = text(parsed.token_secret)
  const realm = parsed.realm === undefined ? undefined : text(parsed.realm)
  return (request, scope, { now, nonce }) => {
    const authorization = signOAuth1(request, {
      signatureMethod: parsed.signature_method,
      consumerKey: consumerKey(scope),
      consumerSecret: consumerSecret(scope),
      token: { key: token(scope), secret: tokenSecret(scope) },
      extra: { oauth_version: '1.0' },
      realm: realm?.(scope),
      nonce: nonce(),
      now: now(),
    })
    return { headers: { authorization }, query: {} }
  }
}
