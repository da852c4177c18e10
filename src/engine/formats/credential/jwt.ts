import { z } from 'zod'
import { Failure } from '../../../foundation/base/index.ts'
import type { TemplateScope } from '../../expressions/placeholder.ts'
import { compileJson, compileTemplate, renderObject, renderText } from '../../expressions/template.ts'
import { withSchema } from '../format.ts'
import { requestSchema } from '../request-keys.ts'
import { expressionText, secretText, templateMap, templateText } from '../schema-types.ts'
import { JWT_ALGORITHMS, type JwtInput, signJwt } from '../sign-jwt.ts'
import { connectionKeys, connectionOf, contextFromToken, contextPaths, TOKEN_ROOTS } from './config-keys.ts'
import type { CompileTokenRules, CredentialFormat, TokenResult } from './credential.ts'
import { fieldList } from './fields.ts'
import { sendTokenRequests } from './request-steps.ts'
import { grantedToken } from './token-response.ts'

const config = z.strictObject({
  fields: fieldList().default([]).describe("What the customer fills in, for example the service account's key."),
  algorithm: z.enum(JWT_ALGORITHMS).describe('Algorithm of the signature (RFC 7518).'),
  key: secretText().describe('Shared secret or private key in PEM.'),
  key_id: templateText().optional().describe('`kid` in the header of the assertion.'),
  claims: templateMap().describe('Claims of the assertion; `iat` and `exp` are added unless they are given.'),
  ttl: z.int().min(1).max(86_400).default(3600).describe('Lifetime of the assertion in seconds.'),
  exchange: z
    .strictObject({
      request: requestSchema.describe(
        '`{{args.assertion}}` holds the signed token. It is sent without the headers, parameters and authorization of the integration.',
      ),
      token_expression: expressionText(TOKEN_ROOTS)
        .optional()
        .describe('JSONata that returns the token, as in vendor_oauth. Default: access_token of the answer.'),
      expires_in_expression: expressionText(TOKEN_ROOTS)
        .optional()
        .describe('Lifetime in seconds, or the moment it ends as a date. Default: expires_in of the answer.'),
    })
    .optional()
    .describe('Where the assertion is exchanged for an access token; without it the assertion is the token.'),
  ...contextFromToken,
  ...connectionKeys,
})

/** `jwt`: service accounts and apps that sign an assertion (RFC 7523). */
export const jwt: CredentialFormat = {
  format: 'jwt',
  authenticationMethod: 'vendor_oauth',
  summary:
    'A signed assertion, sent as it is or exchanged for a token: `{{oauth.token.access_token}}`. Recorded as `vendor_oauth`.',
  config,
  compile: withSchema(config, (parsed) => ({
    format: 'jwt',
    fields: parsed.fields,
    ...connectionOf(parsed),
    token: tokenRules(parsed),
  })),
}

function tokenRules(parsed: z.output<typeof config>): CompileTokenRules {
  const { exchange } = parsed
  const assert = compileAssertion(parsed)
  const expressions = {
    accessToken: exchange?.token_expression ?? 'body.access_token',
    refreshToken: undefined,
    expiresIn: exchange?.expires_in_expression ?? 'body.expires_in',
  }
  return (compileRequest) => {
    const request = exchange && compileRequest(exchange.request)
    return {
      contextFromToken: contextPaths(parsed.context_from_token),
      canRequestToken: () => true,
      async requestToken(context, scope) {
        const input = assert(scope, context.now())
        const assertion = await trySign(input)
        if (typeof assertion !== 'string') return assertion
        if (request === undefined) return asToken(assertion, input)
        const args = { ...scope.call.args, assertion }
        return await sendTokenRequests(
          context,
          [request],
          expressions,
          { ...scope, call: { ...scope.call, args } },
          undefined,
        )
      },
    }
  }
}

function compileAssertion(parsed: z.output<typeof config>): (scope: TemplateScope, now: Date) => JwtInput {
  const key = compileTemplate(parsed.key)
  const keyId = parsed.key_id === undefined ? undefined : compileTemplate(parsed.key_id)
  const claims = compileJson(parsed.claims)
  return (scope, now) => {
    const iat = Math.floor(now.getTime() / 1_000)
    return {
      algorithm: parsed.algorithm,
      key: renderText(key, scope),
      keyId: keyId === undefined ? undefined : renderText(keyId, scope),
      claims: { iat, exp: iat + parsed.ttl, ...renderObject(claims, scope) },
    }
  }
}

/** An unusable key is an error of the account: it must be connected with another key. */
async function trySign(input: JwtInput): Promise<string | TokenResult> {
  try {
    return await signJwt(input)
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return { kind: 'grant_refused', message: error.publicMessage, retryAfterSeconds: undefined }
  }
}

function asToken(accessToken: string, { claims }: JwtInput): TokenResult {
  const expiresAt = typeof claims.exp === 'number' ? new Date(claims.exp * 1_000) : undefined
  return grantedToken({ accessToken, refreshToken: undefined, expiresAt }, {}, undefined)
}
