import type { Authenticator } from '../../src/tenancy/authenticate.ts'
import type { Principal } from '../../src/tenancy/index.ts'

/** Admits a token from its text, as the gate does. */
export function authenticateText(
  admission: Authenticator,
  token: string,
  environmentHeader?: string,
): Promise<Principal> {
  return admission.authenticate(admission.parseToken(token), environmentHeader)
}
