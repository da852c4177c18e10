import { readConfig } from '../config.ts'
import type { Database } from '../database/index.ts'
import type { KeyRingSource } from '../open-key-ring.ts'
import { openObjectStore } from '../open-object-store.ts'
import { openStorage } from '../open-storage.ts'
import { sealedValuesOf } from '../sealed-values.ts'
import type { KeyRing, SealedValues, SecretStore } from '../secrets/index.ts'
import { createLogger } from '../telemetry/index.ts'

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
