import {
  type Db,
  jsonb,
  newestFirst,
  nextVersion,
  queryOne,
  type Tx,
  whereVersion,
} from '../../../foundation/database/index.ts'
import { isKeptSql } from '../../../platform/accounts/index.ts'
import type { ToolServerFilter } from '../tool-filter.ts'

/** How clients find the tools. */
export type ToolServerMode = 'auto' | 'direct' | 'search'

/** A tool server as stored, without its token. */
export interface ToolServerRecord {
  readonly id: string
  readonly environmentId: string
  readonly name: string
  /** Empty: a text about how to use the tools. */
  readonly instructions: string
  /** The one account; null: the accounts of `tenantId`. */
  readonly integratedAccountId: string | null
  readonly tenantId: string | null
  /** Names of integrations; empty: all. */
  readonly integrations: readonly string[]
  readonly filter: ToolServerFilter
  readonly isReadOnly: boolean
  readonly mode: ToolServerMode
  readonly allowSearchWrites: boolean
  readonly expiresAt: Date | null
  readonly requestsPerMinute: number
  readonly writesPerDay: number
  readonly maxResultBytes: number
  readonly isEnabled: boolean
  /** The last characters of the token. */
  readonly tokenHint: string
  readonly lastUsedAt: Date | null
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly version: number
}

/** The columns that hold a token. */
export interface StoredToolToken {
  /** SHA-256 of the token. */
  readonly tokenHash: Uint8Array
  readonly tokenHint: string
}

/** A tool server to be stored. */
export type NewToolServer = Omit<ToolServerRecord, 'lastUsedAt' | 'createdAt' | 'updatedAt' | 'version'> &
  StoredToolToken

/** Columns that change; an absent one keeps its value. */
export type ToolServerColumns = {
  readonly [Field in keyof Omit<NewToolServer, 'id' | 'environmentId'>]?: NewToolServer[Field] | undefined
}

const COLUMNS = [
  'id',
  'environment_id',
  'name',
  'instructions',
  'integrated_account_id',
  'tenant_id',
  'integrations',
  'filter',
  'is_read_only',
  'mode',
  'allow_search_writes',
  'expires_at',
  'requests_per_minute',
  'writes_per_day',
  'max_result_bytes',
  'is_enabled',
  'token_hint',
  'last_used_at',
  'created_at',
  'updated_at',
  'version',
]

/** SQL: tool servers of an account whose deletion goes on are not found. */
const IS_KEPT = isKeptSql('tool_server', 'integrated_account_id')

export async function insertToolServer(tx: Db, server: NewToolServer): Promise<ToolServerRecord> {
  const { id, environmentId, ...columns } = server
  const [inserted] = await tx('tool_server')
    .insert({ environment_id: environmentId, id, ...toColumns(columns) })
    .returning(COLUMNS)
  return inserted
}

/** Whether the environment has as many tool servers, or more. Uses the primary key. */
export async function hasToolServers(tx: Db, environmentId: string, count: number): Promise<boolean> {
  const sql = 'select from tool_server where environment_id = :environmentId offset :offset limit 1'
  return (await queryOne(tx, sql, { environmentId, offset: count - 1 })) !== undefined
}

/** Uses the primary key. */
export async function findToolServer(tx: Db, environmentId: string, id: string): Promise<ToolServerRecord | undefined> {
  return await tx('tool_server').where({ environment_id: environmentId, id }).whereRaw(IS_KEPT).first(COLUMNS)
}

/** Reads a tool server and locks its row until the transaction ends. Uses the primary key. */
export async function lockToolServer(tx: Tx, environmentId: string, id: string): Promise<ToolServerRecord | undefined> {
  return await tx('tool_server')
    .where({ environment_id: environmentId, id })
    .whereRaw(IS_KEPT)
    .forUpdate()
    .first(COLUMNS)
}

/** Not of an environment whose deletion goes on. */
const OF_ENVIRONMENT =
  'exists (select from environment where environment.id = environment_id and environment.deleted_at is null)'

/** A tool server whose client is authenticated, with the team of its environment. */
export type KnownToolServer = ToolServerRecord & { readonly teamId: string }

/** The tool server with that id and the hash of that token. Uses tool_server_id. */
export async function findToolServerByToken(
  tx: Db,
  id: string,
  tokenHash: Uint8Array,
): Promise<KnownToolServer | undefined> {
  const team = tx('environment').whereRaw('environment.id = environment_id').select('team_id').as('team_id')
  return await tx('tool_server')
    .where({ id, token_hash: tokenHash })
    .whereRaw(`${OF_ENVIRONMENT} and ${IS_KEPT}`)
    .first(...COLUMNS, team)
}

/** Which tool servers to list; what is undefined does not restrict. */
export interface ToolServerListFilter {
  readonly integratedAccountId?: string | undefined
  readonly tenantId?: string | undefined
}

/**
 * At most `limit` tool servers of the environment below the id `before`, newest first. Uses the primary key,
 * tool_server_of_account or tool_server_of_tenant.
 */
export async function listToolServers(
  tx: Db,
  environmentId: string,
  { integratedAccountId, tenantId }: ToolServerListFilter,
  page: { readonly before: string | undefined; readonly limit: number },
): Promise<readonly ToolServerRecord[]> {
  const servers = tx('tool_server').where({ environment_id: environmentId }).whereRaw(IS_KEPT)
  if (integratedAccountId !== undefined) servers.where({ integrated_account_id: integratedAccountId })
  if (tenantId !== undefined) servers.where({ tenant_id: tenantId })
  return await servers.modify(newestFirst, page).select(COLUMNS)
}

/** Changes the given fields of a tool server that the caller has locked. Uses the primary key. */
export async function updateToolServerRow(
  tx: Db,
  environmentId: string,
  id: string,
  change: ToolServerColumns,
): Promise<ToolServerRecord> {
  const [updated] = await tx('tool_server')
    .where({ environment_id: environmentId, id })
    .update({ ...toColumns(change), ...nextVersion(tx) })
    .returning(COLUMNS)
  return updated
}

/** Deletes a tool server; returns whether it existed in this version. Uses the primary key. */
export async function deleteToolServerRow(
  tx: Db,
  environmentId: string,
  id: string,
  version: number | undefined,
): Promise<boolean> {
  const servers = tx('tool_server').where({ environment_id: environmentId, id }).whereRaw(IS_KEPT)
  return (await servers.modify(whereVersion, version).delete()) > 0
}

/** Notes that a client used the server, unless that was noted less than `intervalMs` ago. Uses the primary key. */
export async function touchToolServer(tx: Db, environmentId: string, id: string, intervalMs: number): Promise<void> {
  await queryOne(
    tx,
    `update tool_server set last_used_at = now()
     where environment_id = :environmentId and id = :id
       and coalesce(last_used_at < now() - :intervalMs * interval '1 millisecond', true)`,
    { environmentId, id, intervalMs },
  )
}

/** Undefined columns are left out by the query builder. */
function toColumns(change: ToolServerColumns) {
  return {
    name: change.name,
    instructions: change.instructions,
    integrated_account_id: change.integratedAccountId,
    tenant_id: change.tenantId,
    integrations: change.integrations,
    filter: change.filter === undefined ? undefined : jsonb({ ...change.filter }),
    is_read_only: change.isReadOnly,
    mode: change.mode,
    allow_search_writes: change.allowSearchWrites,
    expires_at: change.expiresAt,
    requests_per_minute: change.requestsPerMinute,
    writes_per_day: change.writesPerDay,
    max_result_bytes: change.maxResultBytes,
    is_enabled: change.isEnabled,
    token_hash: change.tokenHash,
    token_hint: change.tokenHint,
  }
}
