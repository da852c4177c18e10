import { z } from 'zod'
import { withSchema } from '../format.ts'
import { type RequestDefinition, requestSchema } from '../request-keys.ts'
import { expressionText, webAddress } from '../schema-types.ts'
import { connectionKeys, connectionOf, contextFromToken, contextPaths, TOKEN_ROOTS } from './config-keys.ts'
import type { CompileTokenRules, CredentialFormat } from './credential.ts'
import { fieldList } from './fields.ts'
import { sendTokenRequests } from './request-steps.ts'

const REQUESTS_MAX = 10

const requestSteps = z.union([requestSchema, z.array(requestSchema).min(1).max(REQUESTS_MAX)])

const config = z.strictObject({
  fields: fieldList().default([]).describe('What the customer fills in.'),
  token_request: requestSteps.describe(
    'One request or several, one after the other. `{{args.step1.body.x}}` and `{{args.step1.cookies.x}}` are from the answer to the first. They are sent without the headers, parameters and authorization of the integration.',
  ),
  refresh_request: requestSteps
    .optional()
    .describe(
      'Requests the next token, with `{{oauth.token.refresh_token}}`; when it is rejected, token_request is sent again. Default: token_request.',
    ),
  token_expression: expressionText(TOKEN_ROOTS).describe(
    'JSONata that returns the access token. Roots: the last answer as `response` and bare (`body`, `status`, `headers`, `cookies`), all answers as `steps`, `credentials`, `context`.',
  ),
  refresh_token_expression: expressionText(TOKEN_ROOTS).optional().describe('JSONata that returns the refresh token.'),
  expires_in_expression: expressionText(TOKEN_ROOTS)
    .optional()
    .describe('Lifetime in seconds, or the date of expiry. Default: until it is rejected.'),
  ...contextFromToken,
  ...connectionKeys,
  documentation_link: webAddress().optional().describe('Where the customer reads how to connect.'),
})

/** `vendor_oauth`: a token exchange outside of any standard, written as requests. */
export const vendorOauth: CredentialFormat = {
  format: 'vendor_oauth',
  authenticationMethod: 'vendor_oauth',
  summary:
    "A login or token exchange of the vendor's own, as request steps. The token is `{{oauth.token.access_token}}`, the other fields of the last answer are beside it.",
  config,
  compile: withSchema(config, (parsed) => ({
    format: 'vendor_oauth',
    fields: parsed.fields,
    ...connectionOf(parsed),
    token: tokenRules(parsed),
  })),
}

function tokenRules(parsed: z.output<typeof config>): CompileTokenRules {
  const expressions = {
    accessToken: parsed.token_expression,
    refreshToken: parsed.refresh_token_expression,
    expiresIn: parsed.expires_in_expression,
  }
  return (compileRequest) => {
    const login = listOf(parsed.token_request).map(compileRequest)
    const refresh = parsed.refresh_request && listOf(parsed.refresh_request).map(compileRequest)
    return {
      contextFromToken: contextPaths(parsed.context_from_token),
      canRequestToken: () => true,
      async requestToken(context, scope, previous) {
        if (refresh !== undefined && previous !== undefined) {
          const answer = await sendTokenRequests(context, refresh, expressions, scope, previous)
          if (answer.kind !== 'grant_refused') return answer
        }
        return await sendTokenRequests(context, login, expressions, scope, undefined)
      },
    }
  }
}

function listOf(requests: RequestDefinition | readonly RequestDefinition[]): readonly RequestDefinition[] {
  return Array.isArray(requests) ? requests : [requests as RequestDefinition]
}
