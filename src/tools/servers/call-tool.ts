import { ACTION_RESOURCE } from '../../engine/definitions/index.ts'
import type { CallTarget, ProxyRequest, RequestPreview, SuccessOutcome } from '../../engine/proxy/index.ts'
import { createRedaction, withCause } from '../../engine/proxy/index.ts'
import {
  callUnified,
  previewUnified,
  type UnifiedPreview,
  type UnifiedRequest,
  type UnifiedSuccess,
} from '../../engine/unified/index.ts'
import { Failure, suggest, type Violation } from '../../foundation/base/index.ts'
import { isJsonObject, type Json, type JsonObject } from '../../foundation/json/index.ts'
import type { Redactor } from '../../foundation/redaction/index.ts'
import type { AccountRef, ResolvedAccount } from '../../platform/accounts/index.ts'
import { boundJson } from './bound-json.ts'
import { checkArguments, readArguments } from './check-arguments.ts'
import { absentFields, checkFields, fieldsOfSchema } from './check-fields.ts'
import type { ToolCallDeps } from './dependencies.ts'
import type { LoadedTools } from './load-tools.ts'
import type { ToolServerRecord } from './sql/tool-server.ts'
import type { ServerTool, ToolControl, ToolErrorType, ToolParameter, ToolResult } from './tool.ts'
import { adviceForTools, errorOfFailure, errorOfOutcome, type ToolError, toolError } from './tool-error.ts'
import { LIST_LIMIT_DEFAULT } from './tool-input.ts'
import { errorResult, projectFields, successResult } from './tool-result.ts'
import { withoutControls } from './tool-schema.ts'
import { filterOfParameter } from './unified-tools.ts'

/** A call of a tool by a client. */
export interface ToolCall {
  readonly name: string
  readonly arguments: JsonObject
  readonly signal?: AbortSignal | undefined
  /** Learns the account that the call goes through, before anything is sent. */
  readonly onAccount?: ((account: AccountRef) => void) | undefined
  /** Of its record. */
  readonly id?: string | undefined
}

/** The result of a call, and what is recorded of it. */
export interface ToolCallOutcome {
  readonly result: ToolResult
  /** Name of the tool, in the search mode of the one that `call_tool` names. Absent: the server has no tool of that name. */
  readonly tool: string | undefined
  /** Empty: it succeeded. */
  readonly errorType: ToolErrorType | ''
  /** Absent for a call that did not get that far. */
  readonly accountId: string | undefined
  readonly isDryRun: boolean
}

/** Decoded bytes of a response: of more, an agent would see a small part. */
const RESPONSE_BYTES_MAX = 4 * 1024 * 1024
/** Texts may be cut to a part of their length. */
const BOUND_FACTOR = 4

/** What a call works on once its arguments are checked. */
interface CheckedCall {
  readonly server: ToolServerRecord
  readonly tool: ServerTool
  readonly accountId: string
  readonly arguments: JsonObject
  readonly isDryRun: boolean
  readonly signal: AbortSignal | undefined
  readonly onAccount: ToolCall['onAccount']
  readonly id: string | undefined
}

/**
 * Calls a tool. Whatever goes wrong is a result that a model can act on: unknown tools and wrong arguments, limits, errors of the
 * third party, an account that must be connected again (with the address of the connect page), a write on a read-only server.
 *
 * @throws anything but a Failure: a defect of the service
 */
export async function callTool(
  deps: ToolCallDeps,
  server: ToolServerRecord,
  loaded: LoadedTools,
  call: ToolCall,
): Promise<ToolCallOutcome> {
  const tool = loaded.tools.find(({ name }) => name === call.name)
  if (tool === undefined) return failed(unknownTool(loaded, call.name))
  const checked = checkCall(server, tool, call)
  if ('type' in checked) return failed(checked, tool.name)
  const called = { tool: tool.name, accountId: checked.accountId, isDryRun: checked.isDryRun }
  const outcome = await runChecked(deps, checked)
  if (!('type' in outcome)) return { ...called, result: outcome, errorType: '' }
  const error = await withConnectUrl(deps, checked, outcome)
  return { ...called, result: errorResult(error), errorType: error.type }
}

function failed(error: ToolError, tool?: string): ToolCallOutcome {
  return { result: errorResult(error), tool, errorType: error.type, accountId: undefined, isDryRun: false }
}

/** The error for a name that is no tool of the server. */
export function unknownTool({ tools, withheld }: LoadedTools, name: string): ToolError {
  if (withheld.has(name))
    return toolError(
      'forbidden',
      `${name} changes something, and this tool server is read-only: its owner can change that`,
    )
  const hint = suggest(
    name,
    tools.map((tool) => tool.name),
  )
  return toolError('validation', `there is no tool ${name}${hint}`, { status: 404 })
}

function checkCall(server: ToolServerRecord, tool: ServerTool, call: ToolCall): CheckedCall | ToolError {
  const given = readArguments(tool.inputSchema, call.arguments)
  const wrong = checkArguments(tool.inputSchema, given)
  const fields = wrong.length > 0 ? wrong : checkProjection(tool, given)
  if (fields.length > 0) return toolError('validation', `${tool.name} was not called`, { fields })
  const accountId = controlOf(tool, given, 'account') ?? tool.target.accountIds[0]
  if (typeof accountId !== 'string') return toolError('validation', 'no account is connected')
  return {
    server,
    tool,
    accountId,
    arguments: given,
    isDryRun: controlOf(tool, given, 'dry_run') === true,
    signal: call.signal,
    onAccount: call.onAccount,
    id: call.id,
  }
}

/** The fields of a unified tool are known before the call. */
function checkProjection(tool: ServerTool, given: JsonObject): readonly Violation[] {
  const { target, outputSchema } = tool
  if (target.model === undefined || outputSchema === undefined) return []
  const records = fieldsOfSchema(recordSchema(outputSchema, target.isList))
  return checkFields(records, fieldsOf(tool, given), target.controls.fields ?? '')
}

function recordSchema(outputSchema: JsonObject, isList: boolean): JsonObject {
  if (!isList) return outputSchema
  const records = isJsonObject(outputSchema.properties) ? outputSchema.properties.records : undefined
  return isJsonObject(records) ? records : {}
}

/** The fields to return; empty: all. */
function fieldsOf(tool: ServerTool, given: JsonObject): readonly string[] {
  const fields = controlOf(tool, given, 'fields')
  return Array.isArray(fields) ? fields.filter((name): name is string => typeof name === 'string') : []
}

function controlOf({ target }: ServerTool, given: JsonObject, control: ToolControl): Json | undefined {
  const name = target.controls[control]
  return name === undefined ? undefined : given[name]
}

async function runChecked(deps: ToolCallDeps, call: CheckedCall): Promise<ToolResult | ToolError> {
  try {
    if (call.isDryRun) return await dryRun(deps, call)
    const waitSeconds = call.tool.target.isWrite ? await deps.takeWrite(call.server) : undefined
    if (waitSeconds !== undefined)
      return toolError('rate_limited', `this tool server has used up its ${call.server.writesPerDay} writes a day`, {
        retryAfterSeconds: waitSeconds,
      })
    return await send(deps, call)
  } catch (error) {
    if (error instanceof Failure) return errorOfFailure(error)
    throw error
  }
}

/** An account through which nothing is written, whatever method or step the mapping of a unified method names. */
function withoutWrites(account: ResolvedAccount): ResolvedAccount {
  return { ...account, access: { ...account.access, isReadOnly: true } }
}

/** The address of the connect page, where that would help. */
async function withConnectUrl(deps: ToolCallDeps, call: CheckedCall, error: ToolError): Promise<ToolError> {
  if (error.type !== 'needs_reauth') return error
  return { ...error, connectUrl: await deps.connectUrl(call.server.environmentId, call.accountId) }
}

async function send(deps: ToolCallDeps, call: CheckedCall): Promise<ToolResult | ToolError> {
  const { server, tool, accountId, signal } = call
  const { model, isWrite } = tool.target
  const loaded = await deps.readyAccount(server.environmentId, accountId)
  const ready = { ...loaded, access: withCause(loaded.access, 'tool_call', call.id) }
  call.onAccount?.({ environmentId: server.environmentId, id: accountId })
  const account = isWrite ? ready : withoutWrites(ready)
  const outcome =
    model === undefined
      ? await deps.proxy.call(account.plan, account.access, { ...proxyRequest(call), signal })
      : await callUnified(deps, await unifiedTarget(deps, call, model, account), { ...unifiedRequest(call), signal })
  if (outcome.kind !== 'ok') return errorOfOutcome(outcome, tool.target.isList)
  // Redaction runs before the cut, on at most BOUND_FACTOR times the limit.
  const redaction = createRedaction(account.plan, account.access)
  const shown = boundJson(resultOf(call, outcome), BOUND_FACTOR * server.maxResultBytes, (text) =>
    redaction.redactText(withoutControls(text)),
  )
  return successResult(shown, server.maxResultBytes, undefined, (clean) => withoutSecrets(redaction, clean))
}

/** The result with secrets masked that the third party repeats. Most results have none: one scan of the text tells. */
function withoutSecrets(redaction: Redactor, result: JsonObject): JsonObject {
  const text = JSON.stringify(result)
  return redaction.redactText(text) === text ? result : redaction.redactObject(result)
}

/** A page of records, one record, or any other value as `result`. */
function resultOf({ tool, arguments: given }: CheckedCall, outcome: SuccessOutcome | UnifiedSuccess): JsonObject {
  const names = fieldsOf(tool, given)
  const whole = outcome.result as Json
  const result = names.length === 0 ? whole : projectFields(whole, names)
  const notes = 'ignoredFilters' in outcome ? notesOf(outcome) : absentNote(absentFields(whole, names))
  // The cursor comes first: of a long result the end is left out.
  if (tool.target.isList && Array.isArray(result))
    return { next_cursor: outcome.page?.nextCursor ?? null, ...notes, records: result }
  return isJsonObject(result) ? { ...result, ...notes } : { result, ...notes }
}

/** What a model should know about a projection: a field that it names wrongly looks like one without value. */
function absentNote(fields: readonly string[]): JsonObject {
  return fields.length === 0 ? {} : { unknown_fields: [...fields] }
}

/** What a model should know about a unified call. */
function notesOf({ ignoredFilters, warnings }: Pick<UnifiedSuccess, 'ignoredFilters' | 'warnings'>): JsonObject {
  return {
    ...(ignoredFilters.length === 0
      ? {}
      : { ignored_filters: ignoredFilters.map(({ field, reason }) => ({ field, reason })) }),
    ...(warnings.length === 0
      ? {}
      : { warnings: warnings.map(({ field, message }) => ({ field, message: adviceForTools(message) })) }),
  }
}

async function dryRun(deps: ToolCallDeps, call: CheckedCall): Promise<ToolResult | ToolError> {
  const { server, tool, accountId } = call
  const { resolved, error } = await deps.previewAccount(server.environmentId, accountId)
  const { model } = tool.target
  const preview =
    model === undefined
      ? await deps.proxy.preview(resolved.plan, resolved.access, proxyRequest(call))
      : await previewUnified(deps, await unifiedTarget(deps, call, model, resolved), unifiedRequest(call))
  return successResult(previewToJson(preview, error ?? preview.error), server.maxResultBytes)
}

function previewToJson(preview: RequestPreview | UnifiedPreview, error: Failure | undefined): JsonObject {
  const { method, url, headers, body } = preview
  return {
    dry_run: true,
    request: { method, url, headers: { ...headers }, ...(body === undefined ? {} : { body }) },
    ...('ignoredFilters' in preview ? previewNotes(preview) : {}),
    ...(error === undefined ? {} : { error: { type: errorOfFailure(error).type, message: error.publicMessage } }),
  }
}

function previewNotes(preview: UnifiedPreview): JsonObject {
  const { skippedSteps } = preview
  return { ...notesOf(preview), ...(skippedSteps.length === 0 ? {} : { skipped_steps: [...skippedSteps] }) }
}

async function unifiedTarget(deps: ToolCallDeps, call: CheckedCall, model: string, account: ResolvedAccount) {
  const { resource, method } = call.tool.target
  const owner = {
    environmentId: call.server.environmentId,
    integratedAccountId: call.accountId,
    integrationName: account.integrationName,
  }
  const mapping = await deps.unifiedMappings.find(deps.database.pool, owner, { model, resource, method })
  return { plan: account.plan, access: account.access, mapping: mapping.plan }
}

/** The arguments of one part of the call by the names that the third party gives them. */
function partOf({ tool, arguments: given }: CheckedCall, part: ToolParameter['part']): JsonObject {
  return Object.fromEntries(
    Object.entries(tool.target.parameters).flatMap(([argument, parameter]): [string, Json][] => {
      const value = given[argument]
      if (parameter.part !== part || parameter.name === undefined || value === undefined) return []
      return [[parameter.name, value]]
    }),
  )
}

/** The argument that is a whole part of the call. */
function wholePart({ tool, arguments: given }: CheckedCall, part: ToolParameter['part']): Json | undefined {
  const found = Object.entries(tool.target.parameters).find(([, each]) => each.part === part && each.name === undefined)
  return found === undefined ? undefined : given[found[0]]
}

function proxyRequest(call: CheckedCall): ProxyRequest {
  const { resource, method } = call.tool.target
  const fields = partOf(call, 'body')
  const target: CallTarget =
    resource === ACTION_RESOURCE ? { kind: 'action', action: method } : { kind: 'method', resource, method }
  return {
    target,
    id: wholePart(call, 'id'),
    query: partOf(call, 'query'),
    args: partOf(call, 'args'),
    body: wholePart(call, 'body') ?? (Object.keys(fields).length === 0 ? undefined : fields),
    page: pageOf(call),
    limits: { responseBytesMax: RESPONSE_BYTES_MAX },
  }
}

function unifiedRequest(call: CheckedCall): UnifiedRequest {
  const id = wholePart(call, 'id')
  const filters = Object.entries(partOf(call, 'query'))
  return {
    id: id === undefined ? undefined : String(id),
    filters: filters.map(([name, value]) => ({ ...filterOfParameter(name), value: String(value) })),
    body: call.tool.target.isWrite ? partOf(call, 'body') : undefined,
    page: pageOf(call),
  }
}

/** The page that is asked for; its cursor is valid for this tool of this server alone. */
function pageOf({ server, tool, arguments: given }: CheckedCall): ProxyRequest['page'] {
  if (tool.target.controls.limit === undefined) return undefined
  const [limit, cursor] = [controlOf(tool, given, 'limit'), controlOf(tool, given, 'cursor')]
  return {
    limit: typeof limit === 'number' ? limit : LIST_LIMIT_DEFAULT,
    holder: { tool_server: server.id, tool: tool.name },
    ...(typeof cursor === 'string' && cursor !== '' ? { cursor } : {}),
  }
}
