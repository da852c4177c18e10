import { clientNameOf } from '../../engine/definitions/index.ts'
import { Failure } from '../../foundation/base/index.ts'
import type { Db } from '../../foundation/database/index.ts'
import type { DefinitionCache, EffectiveDefinition } from '../integrations/definition-cache.ts'
import { type AccountWithDefinition, listAccountsByExternalId } from './sql/integrated-account.ts'

/** Accounts that are compared; where more may share the grant, it is taken for shared. */
const COMPARED_MAX = 100

/**
 * Whether another account uses the grant of one that was deleted: it was given to the same client by the same customer of the third
 * party (`identity`), as for a mailbox and a calendar, or one mailbox that was connected twice. Its revocation would end both.
 */
export async function isGrantShared(
  definitions: DefinitionCache,
  tx: Db,
  account: AccountWithDefinition,
  definition: Pick<EffectiveDefinition, 'config' | 'environmentVariables'>,
): Promise<boolean> {
  const { externalId } = account
  if (externalId === null) return false
  const client = clientOf(account, definition)
  if (client === undefined) return false
  const others = await listAccountsByExternalId(tx, { ...account, externalId }, COMPARED_MAX)
  if (others.length === COMPARED_MAX) return true
  for (const other of others) {
    const found = await definitionOf(definitions, tx, other)
    if (found !== undefined && clientOf(other, found) === client) return true
  }
  return false
}

function clientOf(
  { credential, context }: AccountWithDefinition,
  { config, environmentVariables }: Pick<EffectiveDefinition, 'config' | 'environmentVariables'>,
): string | undefined {
  return clientNameOf(config, credential, { context, environmentVariables, credentials: {} })
}

async function definitionOf(
  definitions: DefinitionCache,
  tx: Db,
  account: AccountWithDefinition,
): Promise<EffectiveDefinition | undefined> {
  try {
    return await definitions.getVersion(tx, account)
  } catch (error) {
    if (error instanceof Failure) return undefined
    throw error
  }
}
