import type { Authenticator, Principal } from '../../../../src/platform/tenancy/index.ts'

/** Authenticates a token from its text, as the API does. */
export function authenticateText(
  authenticator: Authenticator,
  token: string,
  environmentHeader?: string,
): Promise<Principal> {
  return authenticator.authenticate(authenticator.parseToken(token), environmentHeader)
}
