import type { Authenticator } from '../../src/tenancy/authenticate.ts'
import type { Principal } from '../../src/tenancy/index.ts'

/** Authenticates a token from its text, as the API does. */
export function authenticateText(
  authenticator: Authenticator,
  token: string,
  environmentHeader?: string,
): Promise<Principal> {
  return authenticator.authenticate(authenticator.parseToken(token), environmentHeader)
}
