import type { Database } from '../../foundation/database/index.ts'
import type { KeyRing, SealedValues, SecretStore } from '../../foundation/secrets/index.ts'
import { createLogger } from '../../foundation/telemetry/index.ts'
import { readConfig } from '../../server/config/index.ts'
import { openObjectStore, openStorage } from '../../server/open.ts'
import type { KeyRingSource } from '../../server/open-key-ring.ts'
import { sealedValuesOf } from '../../server/sealed-values.ts'

/** What a command about keys works on. */
export interface Keys {
  readonly database: Database
  readonly secrets: SecretStore
  readonly ring: KeyRing
  readonly source: KeyRingSource
  readonly sealedValues: readonly SealedValues[]
}

/**
 * Opens database, keys and object store for a command about keys, also when keys are missing.
 *
 * @param act resolves with the exit code
 */
export async function withKeys(environment: NodeJS.ProcessEnv, act: (keys: Keys) => Promise<number>): Promise<number> {
  const config = readConfig(environment)
  const logger = createLogger(config.logLevel)
  await using storage = await openStorage(config, {
    applicationName: 'patchbay keys',
    isStart: false,
    keyUse: 'open',
    logger,
  })
  await using objects = openObjectStore(config)
  const { database, secrets, keys } = storage
  if (keys === undefined) throw new Error('the storage has no keys')
  return await act({ database, secrets, ...keys, sealedValues: sealedValuesOf(secrets, objects) })
}
