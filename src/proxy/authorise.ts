import type { MethodPlan } from '../definition/index.ts'
import type { Scope } from '../expression/index.ts'
import { type AuthorizationEffect, type AuthorizationTools, setQuery } from '../formats/index.ts'
import type { Redaction } from '../vault/index.ts'
import type { BuiltRequest } from './build.ts'
import { authorizationSecrets } from './redaction.ts'

/** A request that may be sent. `url` without the parameters of the authorization is what logs and loop guards may see. */
export interface AuthorisedRequest extends BuiltRequest {
  readonly publicUrl: string
}

/**
 * Stage 3: puts the credential on, last of all, so that signatures cover the request as it is sent.
 *
 * @param redaction told of what is put on
 * @throws Failure PLACEHOLDER_UNRESOLVED when a part of the credential is missing; EXPRESSION_FAILED
 */
export async function authorise(
  method: MethodPlan,
  built: BuiltRequest,
  scope: Scope,
  tools: AuthorizationTools,
  redaction: Redaction,
): Promise<AuthorisedRequest> {
  const effect = await method.authorise(built, scope, tools)
  redaction.learn('authorization', () => authorizationSecrets(effect))
  return withEffect(built, effect)
}

/** The request with what authorization puts on it. */
export function withEffect(built: BuiltRequest, { headers, query }: AuthorizationEffect): AuthorisedRequest {
  return {
    ...built,
    publicUrl: built.url,
    url: setQuery(built.url, query),
    headers: { ...built.headers, ...headers },
  }
}
