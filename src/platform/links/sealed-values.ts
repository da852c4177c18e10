import type { Db } from '../../foundation/database/index.ts'
import { isJsonObject, type JsonObject, parseJson, stringifyJson } from '../../foundation/json/index.ts'
import type { SealedColumn } from '../../foundation/secrets/index.ts'
import type { LinkDependencies } from './dependencies.ts'
import type { LinkSessionKey } from './sql/link-session.ts'

/** Columns with encrypted JSON objects. */
const COLUMNS = ['sealed_values', 'sealed_ticket'] as const
type ColumnName = (typeof COLUMNS)[number]

/** The columns, for the rotation of data keys. */
export const SEALED_SESSION_COLUMNS: readonly SealedColumn[] = COLUMNS.map((column) => ({
  table: 'link_session',
  column,
  owner: 'environment_id',
  id: 'id',
  associatedData: (id) => aadOf({ id }, column),
}))

/** Encrypts an object for a column of the session, bound to it: elsewhere it does not decrypt. */
export async function sealValues(
  { secrets }: Pick<LinkDependencies, 'secrets'>,
  tx: Db,
  session: LinkSessionKey,
  column: ColumnName,
  values: JsonObject,
): Promise<Uint8Array> {
  const text = Buffer.from(await stringifyJson(values))
  return await secrets.encryptFor(tx, session.environmentId, aadOf(session, column), text)
}

/** Decrypts what `sealValues` made; `{}` for an empty column. @throws Failure SECRET_UNREADABLE */
export async function unsealValues(
  { secrets }: Pick<LinkDependencies, 'secrets'>,
  tx: Db,
  session: LinkSessionKey,
  column: ColumnName,
  sealed: Uint8Array | null,
): Promise<JsonObject> {
  if (sealed === null) return {}
  const bytes = await secrets.decryptFor(tx, session.environmentId, aadOf(session, column), sealed)
  const values = parseJson(Buffer.from(bytes).toString('utf8'))
  if (!isJsonObject(values)) throw new Error('the sealed values of a link session are no object')
  return values
}

function aadOf({ id }: Pick<LinkSessionKey, 'id'>, column: ColumnName): string {
  return `link_session|${column}|${id}`
}
