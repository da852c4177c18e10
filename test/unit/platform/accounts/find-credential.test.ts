import { expect, test } from 'vitest'
import { compilePlan } from '../../../../src/engine/definitions/index.ts'
import { findCredential } from '../../../../src/platform/accounts/credentials.ts'

const key = { format: 'api_key', config: {} }
const jwt = { format: 'jwt', config: { algorithm: 'HS256', key: 'k', claims: {} } }

test.each([
  ['by its key', { live: key, sandbox: key }, 'sandbox', 'api_key', 'sandbox'],
  ['under a new key, where it is the only one of its method', { renamed: key, jwt }, 'live', 'api_key', 'renamed'],
  ['not as one of several others', { live: key, sandbox: key }, 'gone', 'api_key', undefined],
  ['not as one of another method', { live: key }, 'live', 'vendor_oauth', undefined],
] as const)(
  'the credential of an account is found %s',
  (_how, credentials, credential, authenticationMethod, found) => {
    const plan = compilePlan({ base_url: 'https://a.example', credentials })
    expect(findCredential(plan.credentials, { credential, authenticationMethod })?.key).toBe(found)
  },
)
