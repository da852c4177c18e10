import { type DescField, type DescMessage, type DescMethod, isFieldSet, type Message } from '@bufbuild/protobuf'
import { type Timestamp, TimestampSchema, timestampDate } from '@bufbuild/protobuf/wkt'
import { currentRequest, newId } from '../../../foundation/base/index.ts'
import type { Database } from '../../../foundation/database/index.ts'
import type { Json, JsonObject } from '../../../foundation/json/index.ts'
import { type AuditEntryInput, PendingEntry } from '../../../platform/audit/index.ts'
import { concernsEnvironment } from '../access.ts'
import { callerOf, type Principal } from '../caller.ts'
import type { ServiceRequest } from '../exchange.ts'
import { isSecret } from '../mcp-management/secrets.ts'
import type { Operation } from '../operation.ts'

/** Longest value, client's name and id of a request in an entry, in characters. */
const VALUE_LENGTH_MAX = 256
const VALUES_MAX = 20

/** Fields that say how a request is to be taken, and change nothing. */
const NO_CHANGES = ['id', 'etag', 'request_id']

/**
 * Calls the handler of an operation, and stores an entry of the audit log in the transaction of its change. A call that
 * succeeds has one entry; one that fails has none, unless something that it stored before is kept.
 */
export async function audited<Result>(
  request: ServiceRequest,
  database: Database,
  operation: Operation,
  message: Message,
  handle: () => Promise<Result>,
): Promise<Result> {
  const { context } = request
  const caller = callerOf(context)
  const id = newId()
  const entry = new PendingEntry((answer) => ({
    id,
    ...ownerOf(operation, caller, message),
    actorKind: caller.kind === 'environment' ? 'environment_token' : 'team_token',
    actorId: caller.tokenId,
    method: `${operation.method.parent.name}/${operation.method.name}`,
    ...targetOf(operation, message, answer),
    requestId: context.requestId,
    changes: changesOf(operation.input, message),
    clientAddress: context.clientAddress(request.server.accessControl.trustedProxies) || null,
    userAgent: context.header('user-agent')?.slice(0, VALUE_LENGTH_MAX) ?? null,
  }))
  context.companion = entry
  try {
    const result = await handle()
    entry.noteAnswer(result)
    await entry.storeAlone(database)
    return result
  } finally {
    context.companion = undefined
  }
}

/** Notes the answer of the current call before its transaction commits: it names what was created. */
export function noteAnswer(answer: unknown): void {
  const entry = currentRequest()?.companion
  if (entry instanceof PendingEntry) entry.noteAnswer(answer)
}

/** In whose log a call is: the environment in which it acts, else its team, or the team that the operator acts on. */
function ownerOf(
  { access, method }: Operation,
  { teamId, environmentId, isOperator }: Principal,
  message: Message,
): Pick<AuditEntryInput, 'ownerId' | 'teamId' | 'isImpersonation'> {
  const isOfEnvironment = concernsEnvironment(access) || access === 'token'
  if (isOfEnvironment && environmentId !== undefined) return { ownerId: environmentId, teamId, isImpersonation: false }
  const named = isOperator ? textOf(message, SUBJECT_TEAM[method.parent.name]) : undefined
  const subject = named?.toLowerCase() ?? teamId
  return { ownerId: subject, teamId: subject, isImpersonation: subject !== teamId }
}

/** The fields by which the operator names another team that it acts on, by service. */
const SUBJECT_TEAM: Readonly<Record<string, string>> = { TeamService: 'id', ApiTokenService: 'teamId' }

function targetOf(
  { method }: Operation,
  message: Message,
  answer: unknown,
): Pick<AuditEntryInput, 'targetType' | 'targetId'> {
  const noun = nounOf(method)
  const key = keyOf(noun)
  const made = method.output.name === noun ? answer : undefined
  return { targetType: snakeCase(noun), targetId: textOf(message, key) ?? textOf(made, key) ?? null }
}

/** The field that identifies a resource, where it is not `id`. */
const KEYS: Readonly<Record<string, string>> = { IntegrationGrant: 'integrationId', UnifiedModel: 'name' }

const keyOf = (noun: string): string => KEYS[noun] ?? 'id'

const nouns = new Map<DescMethod, string>()

/**
 * The resource that a method is about: the longest one of its service that its name has, else that of the service. A resource has
 * an id: the form of an account has none, and submitting it is about the account.
 */
function nounOf(method: DescMethod): string {
  const known = nouns.get(method)
  if (known !== undefined) return known
  const { methods, name } = method.parent
  const found = methods
    .map(({ output }) => output)
    .filter((output) => !output.name.endsWith('Response') && keyOf(output.name) in output.field)
    .map((output) => output.name)
    .filter((noun) => method.name.includes(noun))
    .sort((one, other) => other.length - one.length)[0]
  const noun = found ?? name.replace(/Service$/, '')
  nouns.set(method, noun)
  return noun
}

function snakeCase(name: string): string {
  return name.replace(/(?!^)[A-Z]/g, '_$&').toLowerCase()
}

function textOf(message: unknown, name: string | undefined): string | undefined {
  if (name === undefined || typeof message !== 'object' || message === null) return undefined
  const value = (message as Readonly<Record<string, unknown>>)[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}

/**
 * What the request gives, by field. Values are recorded of scalars, lists of them and times alone: objects, such as
 * definitions, overrides, credentials and contexts, may hold secrets anywhere.
 */
function changesOf({ fields }: DescMessage, message: Message): JsonObject {
  const changes: Record<string, JsonObject> = {}
  for (const field of fields) {
    if (NO_CHANGES.includes(field.name) || !isFieldSet(message, field)) continue
    const after = isSecret(field) ? undefined : recordedValue(field, message)
    changes[field.name] = after === undefined ? {} : { after }
  }
  return changes
}

function recordedValue(field: DescField, message: Message): Json | undefined {
  const value = readField(message, field)
  if (field.fieldKind === 'scalar' || field.fieldKind === 'enum') return recordedScalar(value)
  if (field.fieldKind === 'list' && field.listKind === 'scalar')
    return (value as readonly unknown[]).slice(0, VALUES_MAX).map((each) => recordedScalar(each) ?? null)
  if (field.message?.typeName === TimestampSchema.typeName) return timestampDate(value as Timestamp).toISOString()
  return undefined
}

/** The value of a field that is set; a member of a `oneof` is below the name of that. */
function readField(message: Message, { localName, oneof }: DescField): unknown {
  const members = message as unknown as Readonly<Record<string, unknown>>
  if (oneof === undefined) return members[localName]
  return (members[oneof.localName] as { readonly value?: unknown }).value
}

function recordedScalar(value: unknown): Json | undefined {
  if (typeof value === 'string') return withoutQuery(value).slice(0, VALUE_LENGTH_MAX)
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value)
  if (typeof value === 'bigint') return String(value)
  return typeof value === 'boolean' ? value : undefined
}

/** Of an address, what may hold no key: neither user and password nor the query. */
function withoutQuery(text: string): string {
  return text.replace(/^([a-z][a-z0-9+.-]*:\/\/)(?:[^/?#]*@)?([^?#]*).*$/is, '$1$2')
}
