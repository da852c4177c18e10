import type { Admission, Principal } from '../../src/tenancy/index.ts'

/** Admits a token from its text, as the gate does. */
export function admit(admission: Admission, token: string, environmentHeader?: string): Promise<Principal> {
  return admission.admit(admission.present(token), environmentHeader)
}
