import type { Json, JsonObject } from '../../../foundation/json/index.ts'
import type { TemplateScope } from '../../expressions/placeholder.ts'
import type { TokenContext, TokenResponse, TokenResult, TokenSet } from './credential.ts'
import { grantedToken, isTokenError, parseExpiry, parseLooseBody, tokenErrorFrom, tokenText } from './token-response.ts'

/** JSONata expressions that read a token from responses. */
export interface TokenExpressions {
  readonly accessToken: string
  readonly refreshToken: string | undefined
  readonly expiresIn: string | undefined
}

/**
 * Sends requests one after the other and reads a token from their responses.
 *
 * Templates see earlier responses as `{{args.step1.body.…}}`, with `status`, `headers` and `cookies`; expressions see the last one as
 * `response` and its members (`status`, `headers`, `cookies`, `body`), all of them as the list `steps`, and `credentials` and
 * `context`. A response with an error ends the sequence.
 */
export async function sendTokenRequests<Request>(
  context: TokenContext<Request>,
  requests: readonly Request[],
  expressions: TokenExpressions,
  scope: TemplateScope,
  previous: TokenSet | undefined,
): Promise<TokenResult> {
  const steps: TokenResponse[] = []
  for (const request of requests) {
    const response = parseLooseBody(await context.send(request, withSteps(scope, steps)))
    const isRejected = response.rejection !== undefined && steps.length < requests.length - 1
    if (isTokenError(response) || isRejected) return tokenErrorFrom(response, 'account', context.now())
    steps.push(response)
  }
  return await readToken(context, steps, expressions, scope, previous)
}

async function readToken(
  { evaluate, now }: Pick<TokenContext<never>, 'evaluate' | 'now'>,
  steps: readonly TokenResponse[],
  expressions: TokenExpressions,
  { account }: TemplateScope,
  previous: TokenSet | undefined,
): Promise<TokenResult> {
  const answers = steps.map(plainAnswer)
  const last = steps.at(-1)
  if (last === undefined) throw new Error('a token request of no steps')
  const { credentials, context } = account
  const roots = { ...plainAnswer(last), response: plainAnswer(last), steps: answers, credentials, context }
  const read = (expression: string | undefined) => (expression === undefined ? undefined : evaluate(expression, roots))
  const accessToken = tokenText(await read(expressions.accessToken))
  if (accessToken === undefined) return tokenErrorFrom(last, 'account', now())
  const refreshToken = tokenText(await read(expressions.refreshToken))
  const expiresAt = parseExpiry(await read(expressions.expiresIn), now())
  return grantedToken({ accessToken, refreshToken, expiresAt }, last.body, previous)
}

function withSteps(scope: TemplateScope, steps: readonly TokenResponse[]): TemplateScope {
  const args = Object.fromEntries(steps.map((step, index) => [`step${index + 1}`, plainAnswer(step)]))
  return { ...scope, call: { ...scope.call, args: { ...scope.call.args, ...args } } }
}

function plainAnswer({ status, headers, cookies = {}, body }: TokenResponse): JsonObject & { readonly body: Json } {
  return { status, headers, cookies, body }
}
