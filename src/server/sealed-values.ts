import { type SealedValues, type SecretStore, sealedColumn } from '../foundation/secrets/index.ts'
import { SEALED_REMOVALS } from '../platform/accounts/index.ts'
import { SEALED_LOG_CONTENT } from '../platform/call-log/index.ts'
import { SEALED_SESSION_COLUMNS } from '../platform/links/index.ts'
import { type ObjectStore, sealedContextObjects } from '../platform/objects/index.ts'
import { SEALED_ANSWERS } from '../platform/tenancy/index.ts'

/**
 * Everything that is encrypted under data keys and stored: what a rotation of data keys encrypts anew, and what is counted by
 * key. `test/laws/sealed-columns.test.ts` finds columns that are missing here.
 *
 * What clients hold (page tokens, cursors) is sealed under keys that are derived from the key encryption keys, and is not
 * stored: `SecretStore.sealer`.
 */
export function sealedValuesOf(secrets: SecretStore, objects: Pick<ObjectStore, 'get'>): readonly SealedValues[] {
  const columns = [...SEALED_SESSION_COLUMNS, SEALED_ANSWERS, SEALED_REMOVALS, SEALED_LOG_CONTENT]
  return [
    secrets.sealedSecrets,
    ...columns.map((column) => sealedColumn(secrets, column)),
    sealedContextObjects({ secrets, objects }),
  ]
}
