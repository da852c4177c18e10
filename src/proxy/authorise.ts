import type { MethodPlan } from '../definition/index.ts'
import type { Scope } from '../expression/index.ts'
import { type AuthorizationEffect, type AuthorizationTools, setQuery } from '../formats/index.ts'
import type { BuiltRequest } from './build.ts'

/** A request that may be sent. `url` without the parameters of the authorization is what logs and loop guards may see. */
export interface AuthorisedRequest extends BuiltRequest {
  readonly publicUrl: string
}

/**
 * Stage 3: puts the credential on, last of all, so that signatures cover the request as it is sent.
 *
 * @throws Failure PLACEHOLDER_UNRESOLVED when a part of the credential is missing; EXPRESSION_FAILED
 */
export async function authorise(
  method: MethodPlan,
  built: BuiltRequest,
  scope: Scope,
  tools: AuthorizationTools,
): Promise<AuthorisedRequest> {
  return withEffect(built, await method.authorise(built, scope, tools))
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
