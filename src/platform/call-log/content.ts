import type { LoggedCall, LoggedContent } from '../../engine/proxy/index.ts'
import type { Db, Tx } from '../../foundation/database/index.ts'
import { parseJson } from '../../foundation/json/index.ts'
import type { SealedColumn, SecretStore } from '../../foundation/secrets/index.ts'
import { lockEnvironments } from './sql.ts'

/** Headers and bodies of entries, for the rotation of data keys. */
export const SEALED_LOG_CONTENT: SealedColumn = {
  table: 'call_log_entry',
  column: 'content',
  owner: 'environment_id',
  id: 'id',
  associatedData: aadOf,
}

function aadOf(id: string): string {
  return `call_log_entry.content|${id}`
}

/**
 * Encrypts the headers and bodies of entries, those of an environment with one read of its data key.
 *
 * Environments are locked until the transaction ends, so that none is deleted meanwhile and gets a new key after its keys were
 * destroyed. What belongs to one that is gone is left out.
 *
 * @returns by the id of the entry
 */
export async function sealContents(
  secrets: Pick<SecretStore, 'encryptAllFor'>,
  tx: Tx,
  calls: readonly LoggedCall[],
): Promise<ReadonlyMap<string, Uint8Array>> {
  const byOwner = Map.groupBy(
    calls.filter(({ content }) => content !== undefined),
    ({ environmentId }) => environmentId,
  )
  const sealed = new Map<string, Uint8Array>()
  for (const environmentId of await lockEnvironments(tx, [...byOwner.keys()])) {
    const owned = byOwner.get(environmentId) ?? []
    const values = owned.map(({ id, content }) => ({ aad: aadOf(id), bytes: textOf(content) }))
    const encrypted = await secrets.encryptAllFor(tx, environmentId, values)
    for (const [index, { id }] of owned.entries()) sealed.set(id, encrypted[index] ?? new Uint8Array())
  }
  return sealed
}

function textOf(content: LoggedContent | undefined): Uint8Array {
  // Half of a pair of surrogates, where a text was cut, is no character.
  return Buffer.from(JSON.stringify(content, (_, value) => (typeof value === 'string' ? value.toWellFormed() : value)))
}

/** Decrypts what `sealContents` made. @throws Failure SECRET_UNREADABLE */
export async function unsealContent(
  secrets: Pick<SecretStore, 'decryptFor'>,
  tx: Db,
  { environmentId, id, content }: { readonly environmentId: string; readonly id: string; readonly content: Uint8Array },
): Promise<LoggedContent> {
  const bytes = await secrets.decryptFor(tx, environmentId, aadOf(id), content)
  return parseJson(Buffer.from(bytes).toString('utf8')) as unknown as LoggedContent
}
