import type { MethodPlan } from '../definition/index.ts'
import type { TemplateScope } from '../expression/index.ts'
import { type AuthorizationContext, type AuthorizationEffect, setQuery } from '../formats/index.ts'
import type { Redactor } from '../vault/index.ts'
import type { BuiltRequest } from './build.ts'
import { authorizationSecrets } from './redaction.ts'

/** A request that may be sent. `url` without the parameters of the authorization is what logs and loop guards may see. */
export interface AuthorizedRequest extends BuiltRequest {
  readonly publicUrl: string
}

/**
 * Stage 3: puts the credential on, last of all, so that signatures cover the request as it is sent.
 *
 * @param redaction told of what is put on
 * @throws Failure PLACEHOLDER_UNRESOLVED when a part of the credential is missing; EXPRESSION_FAILED
 */
export async function authorizeRequest(
  method: MethodPlan,
  built: BuiltRequest,
  scope: TemplateScope,
  tools: AuthorizationContext,
  redaction: Redactor,
): Promise<AuthorizedRequest> {
  const effect = await method.authorize(built, scope, tools)
  redaction.setSecrets('authorization', () => authorizationSecrets(effect))
  return applyAuthorization(built, effect)
}

/** The request with what authorization puts on it. */
export function applyAuthorization(built: BuiltRequest, { headers, query }: AuthorizationEffect): AuthorizedRequest {
  return {
    ...built,
    publicUrl: built.url,
    url: setQuery(built.url, query),
    headers: { ...built.headers, ...headers },
  }
}
