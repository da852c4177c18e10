import {
  type Clock,
  etagMismatch,
  Failure,
  invalidFields,
  newId,
  notFound,
  type Violation,
} from '../../foundation/base/index.ts'
import type { Db, Tx } from '../../foundation/database/index.ts'
import type { LoadedTools, ToolLoader, ToolScope } from './load-tools.ts'
import {
  deleteToolServerRow,
  findToolServer,
  hasToolServers,
  insertToolServer,
  lockToolServer,
  type ToolServerColumns,
  type ToolServerMode,
  type ToolServerRecord,
  updateToolServerRow,
} from './sql/tool-server.ts'
import { mintToolToken } from './token.ts'
import { ALL_TOOLS, type ToolServerFilter } from './tool-filter.ts'

/** Limits of a tool server; 0 or absent: the default. */
interface ToolServerLimits {
  /** Default 60. */
  readonly requestsPerMinute?: number | undefined
  /** Default 1000. */
  readonly writesPerDay?: number | undefined
  /** Default 64 KiB. */
  readonly maxResultBytes?: number | undefined
}

/** Fields of a tool server that callers set; an absent one keeps its value, or has its default in a new tool server. */
export interface ToolServerChange {
  readonly name?: string | undefined
  /** Default: empty, which stands for a general text. */
  readonly instructions?: string | undefined
  /** Default: empty, which is all. */
  readonly integrations?: readonly string[] | undefined
  /** Default: all tools. */
  readonly filter?: ToolServerFilter | undefined
  /** Default: true. */
  readonly isReadOnly?: boolean | undefined
  /** Default: `auto`. */
  readonly mode?: ToolServerMode | undefined
  /** Default: false. */
  readonly allowSearchWrites?: boolean | undefined
  /** Default: null, which is never. */
  readonly expiresAt?: Date | null | undefined
  readonly limits?: ToolServerLimits | undefined
  /** Default: true. */
  readonly isEnabled?: boolean | undefined
}

/** A tool server to be created: of one account or of a tenant. */
export interface ToolServerInput extends ToolServerChange {
  readonly name: string
  readonly integratedAccountId?: string | undefined
  readonly tenantId?: string | undefined
}

/** A tool server with its new token, for the one response that shows it. */
export interface ToolServerWithToken {
  readonly server: ToolServerRecord
  readonly token: string
}

/** What managing tool servers takes. */
export interface ToolServerAdminDeps {
  readonly clock: Pick<Clock, 'now'>
  readonly loader: ToolLoader
}

const LIMITS = { requestsPerMinute: 60, writesPerDay: 1_000, maxResultBytes: 64 * 1024 } as const
/** Below this a result has no room for an error and its advice. */
const RESULT_BYTES_MIN = 1_024
const MINUTE_MS = 60_000
/** Tool servers of one environment. Concurrent calls may exceed it by a few. */
const TOOL_SERVERS_MAX = 1_000

/**
 * Creates a tool server with a random token.
 *
 * @throws Failure INVALID_FIELD with every violation, also when no tool matches; RESOURCE_NOT_FOUND for an unknown account;
 * LIMIT_REACHED
 */
export async function createToolServer(
  deps: ToolServerAdminDeps,
  tx: Db,
  environmentId: string,
  input: ToolServerInput,
): Promise<ToolServerWithToken> {
  assertValid([...scopeViolations(input), ...changeViolations(deps, input)])
  if (await hasToolServers(tx, environmentId, TOOL_SERVERS_MAX))
    throw new Failure('LIMIT_REACHED', `an environment has at most ${TOOL_SERVERS_MAX} tool servers: delete some first`)
  const scope: ToolScope = {
    environmentId,
    integratedAccountId: input.integratedAccountId?.toLowerCase() ?? null,
    tenantId: input.tenantId ?? null,
    integrations: input.integrations ?? [],
    filter: input.filter ?? ALL_TOOLS,
    isReadOnly: input.isReadOnly ?? true,
  }
  assertHasTools(await deps.loader.load(tx, scope))
  const { token, ...stored } = mintToolToken()
  const server = await insertToolServer(tx, {
    ...scope,
    ...stored,
    id: newId(deps.clock.now().getTime()),
    name: input.name,
    instructions: input.instructions ?? '',
    mode: input.mode ?? 'auto',
    allowSearchWrites: input.allowSearchWrites ?? false,
    expiresAt: input.expiresAt ?? null,
    ...limitColumns(input.limits ?? {}),
    isEnabled: input.isEnabled ?? true,
  })
  return { server, token }
}

/** @throws Failure RESOURCE_NOT_FOUND */
export async function getToolServer(tx: Db, environmentId: string, id: string): Promise<ToolServerRecord> {
  return (await findToolServer(tx, environmentId, id)) ?? throwNotFound(id)
}

/**
 * Changes the given fields; none given changes nothing.
 *
 * @param input.version the version the caller read; absent: any
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH, INVALID_FIELD
 */
export async function updateToolServer(
  deps: ToolServerAdminDeps,
  tx: Tx,
  environmentId: string,
  input: ToolServerChange & { readonly id: string; readonly version?: number | undefined },
): Promise<ToolServerRecord> {
  const { id, version, ...change } = input
  assertValid(changeViolations(deps, change))
  const stored = (await lockToolServer(tx, environmentId, id)) ?? throwNotFound(id)
  if (version !== undefined && version !== stored.version) throw etagMismatch('tool_server', id)
  if (Object.values(change).every((value) => value === undefined)) return stored
  const { limits, ...columns } = change
  const next: ToolServerColumns = { ...columns, ...(limits === undefined ? {} : limitColumns(limits)) }
  const isNarrowed = change.filter !== undefined || change.isReadOnly !== undefined || change.integrations !== undefined
  if (isNarrowed) assertHasTools(await deps.loader.load(tx, { ...stored, ...given(next) }))
  return await updateToolServerRow(tx, environmentId, id, next)
}

/** Deletes a tool server with its token. @throws Failure RESOURCE_NOT_FOUND, ETAG_MISMATCH */
export async function deleteToolServer(
  tx: Db,
  environmentId: string,
  { id, version }: { readonly id: string; readonly version?: number | undefined },
): Promise<void> {
  if (await deleteToolServerRow(tx, environmentId, id, version)) return
  await getToolServer(tx, environmentId, id)
  throw etagMismatch('tool_server', id)
}

/** Replaces the token: within a second no process accepts the one before. @throws Failure RESOURCE_NOT_FOUND */
export async function rotateToolServerToken(tx: Tx, environmentId: string, id: string): Promise<ToolServerWithToken> {
  const stored = (await lockToolServer(tx, environmentId, id)) ?? throwNotFound(id)
  const { token, ...columns } = mintToolToken()
  return { server: await updateToolServerRow(tx, environmentId, stored.id, columns), token }
}

function throwNotFound(id: string): never {
  throw notFound('tool_server', id)
}

function given(columns: ToolServerColumns): Partial<ToolScope> {
  const { filter, isReadOnly, integrations } = columns
  return {
    ...(filter === undefined ? {} : { filter }),
    ...(isReadOnly === undefined ? {} : { isReadOnly }),
    ...(integrations === undefined ? {} : { integrations }),
  }
}

function limitColumns({ requestsPerMinute = 0, writesPerDay = 0, maxResultBytes = 0 }: ToolServerLimits) {
  return {
    requestsPerMinute: requestsPerMinute === 0 ? LIMITS.requestsPerMinute : requestsPerMinute,
    writesPerDay: writesPerDay === 0 ? LIMITS.writesPerDay : writesPerDay,
    maxResultBytes: maxResultBytes === 0 ? LIMITS.maxResultBytes : maxResultBytes,
  }
}

function scopeViolations({ integratedAccountId, tenantId, integrations = [] }: ToolServerInput): readonly Violation[] {
  if ((integratedAccountId === undefined) === (tenantId === undefined)) {
    const description = 'or tenant_id is needed, and not both'
    return [{ field: 'integrated_account_id', description, rule: 'tool_server.scope' }]
  }
  if (tenantId !== undefined || integrations.length === 0) return []
  return [{ field: 'integrations', description: 'is for the accounts of a tenant alone', rule: 'tool_server.scope' }]
}

function changeViolations(
  { clock }: Pick<ToolServerAdminDeps, 'clock'>,
  { expiresAt, limits }: ToolServerChange,
): readonly Violation[] {
  const bytes = limits?.maxResultBytes ?? 0
  const violations: Violation[] = []
  if (expiresAt && expiresAt.getTime() < clock.now().getTime() + MINUTE_MS)
    violations.push({
      field: 'expires_at',
      description: 'must be at least one minute ahead',
      rule: 'tool_server.expiry',
    })
  if (bytes > 0 && bytes < RESULT_BYTES_MIN)
    violations.push({
      field: 'limits.max_result_bytes',
      description: `must be 0 or at least ${RESULT_BYTES_MIN}`,
      rule: 'tool_server.result_bytes',
    })
  return violations
}

function assertValid(violations: readonly Violation[]): void {
  if (violations.length > 0) throw invalidFields(violations)
}

/** A tool server without tools is a mistake; that of a tenant without accounts has none yet. @throws Failure INVALID_FIELD */
function assertHasTools({ tools, withheld, warnings, hasAccounts }: LoadedTools): void {
  if (tools.length > 0 || !hasAccounts) return
  const first = warnings.find(({ code }) => code === 'unknown_name') ?? warnings[0]
  const why =
    withheld.size > 0
      ? 'every tool that it matches changes something: set is_read_only to false'
      : first === undefined
        ? 'no tool matches it'
        : `no tool matches it: ${first.message}`
  throw invalidFields([{ field: 'filter', description: why, rule: 'tool_server.no_tools' }])
}
