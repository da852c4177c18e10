import { Failure, parseTime, suggest } from '../../foundation/base/index.ts'
import {
  exceedsJsonSize,
  getAtPath,
  isJsonNumber,
  isJsonObject,
  type Json,
  type JsonObject,
  toDouble,
} from '../../foundation/json/index.ts'

/** What happened to a record: the part after the colon of its event. */
type RecordChange = 'created' | 'updated' | 'deleted' | 'unmapped' | 'meta'

/** One thing that a request says, as the mapping of the definition returns it. */
export type InboundItem = RecordItem | SyncHintItem

/** Something happened to a record; `unmapped`: something else happened; `meta`: it is for receivers that ask for it by name. */
export interface RecordItem {
  readonly kind: 'record'
  readonly event: RecordChange
  /** As in the resources of the definition; null: the definition does not say. */
  readonly resource: string | null
  readonly id: string | null
  readonly data: Json
  /** Values of the accounts' context that name the receiving accounts; empty: the whole request names them. */
  readonly accounts: readonly string[]
  readonly occurredAt: Date | null
}

/** A resource has changed, without saying how: a sync reads it. */
interface SyncHintItem {
  readonly kind: 'sync_hint'
  readonly resource: string
  /** As the third party writes it, for people. */
  readonly since: string | null
  /** As of a record. */
  readonly accounts: readonly string[]
}

/** Items of one request; Meta sends up to 1000. */
const ITEMS_MAX = 5_000
/** Characters of JSON of all items together: an item may repeat the whole request. */
const LENGTH_MAX = 16 * 1024 * 1024
const NAME_LENGTH_MAX = 255
const ACCOUNTS_MAX = 100

const CHANGES: readonly string[] = [
  'created',
  'updated',
  'deleted',
  'unmapped',
  'meta',
] satisfies readonly RecordChange[]
/** Those that may name no resource. */
const WITHOUT_RESOURCE: readonly RecordChange[] = ['unmapped', 'meta']
/** Events may be written with their whole names. */
const RECORD_PREFIX = 'record:'

/**
 * Reads what the expression `events` returned: one item, a list of items, or nothing.
 *
 * @throws Failure EXPRESSION_FAILED, naming the item and the field that has the wrong shape
 */
export function readItems(result: Json | undefined): readonly InboundItem[] {
  if (result === undefined || result === null) return []
  const items: readonly Json[] = Array.isArray(result) ? result : [result]
  if (items.length > ITEMS_MAX) throw wrong(`returned ${items.length} items: at most ${ITEMS_MAX} are allowed`)
  if (exceedsJsonSize(result, LENGTH_MAX))
    throw wrong(`returned more than ${LENGTH_MAX} characters of JSON; return less of the payload in data`)
  return items.map((item, index) => readItem(item, Array.isArray(result) ? `[${index}]` : ''))
}

/**
 * The items of a payload that the definition does not map. A payload (or each element of a list) with the fields
 * `event_type`, `resource_type`, `resource_id` and `raw`, as `payload_transform` may make it, is an event of a record; with
 * another `event_type` than those of `record:` it is `unmapped`, and its data is the whole of it. Any other payload is one item
 * `unmapped`, without a resource.
 */
export function defaultItems(payload: Json): readonly InboundItem[] {
  const parts: readonly Json[] = Array.isArray(payload) ? payload : [payload]
  const events = parts.map(eventShape)
  if (parts.length > 0 && events.every((event) => event !== undefined)) return readItems(events)
  return [
    { kind: 'record', event: 'unmapped', resource: null, id: null, data: payload, accounts: [], occurredAt: null },
  ]
}

/**
 * Reads the value of `context_lookup`: a text, a number, or a list of them.
 *
 * @throws Failure EXPRESSION_FAILED for any other value
 */
export function readLookupValues(value: Json | undefined, name: string): readonly string[] {
  if (value === undefined || value === null) return []
  const values: readonly Json[] = Array.isArray(value) ? value : [value]
  const texts = values.flatMap((each) => (each === null ? [] : [scalarText(each, name)]))
  const unique = [...new Set(texts.filter((text) => text !== ''))]
  if (unique.length > ACCOUNTS_MAX)
    throw wrong(`${name} has ${unique.length} values: at most ${ACCOUNTS_MAX} are allowed`)
  return unique
}

function eventShape(part: Json): JsonObject | undefined {
  if (!isJsonObject(part)) return undefined
  const { event_type: event, resource_type: resource, resource_id: id = null, raw = null } = part
  if (typeof event !== 'string' || typeof resource !== 'string') return undefined
  if (CHANGES.includes(withoutPrefix(event))) return { event, resource, id, data: raw }
  // Other vocabularies have these names too, with other types of values.
  const isUsable = isName(resource) && (id === null || typeof id === 'number' || isName(id))
  return isUsable ? { event: 'unmapped', resource, id, data: part } : undefined
}

function readItem(item: Json, at: string): InboundItem {
  if (!isJsonObject(item)) throw wrong(`events${at} must be an object`)
  const accounts = readLookupValues(item.account, `events${at}.account`)
  if (item.type === 'sync_hint')
    return {
      kind: 'sync_hint',
      resource: readName(item, 'resource', at),
      since: optionalText(item.since, `${at}.since`),
      accounts,
    }
  const event = typeof item.event === 'string' ? withoutPrefix(item.event) : undefined
  if (event === undefined || !isRecordChange(event))
    throw wrong(
      `events${at}.event must be one of ${CHANGES.join(', ')}, or events${at}.type must be sync_hint${suggest(event ?? '', CHANGES)}`,
    )
  const id = optionalText(item.id, `${at}.id`)
  const data = item.data ?? null
  const hasResource = !WITHOUT_RESOURCE.includes(event) || (item.resource ?? null) !== null
  const read: RecordItem = {
    kind: 'record',
    event,
    resource: hasResource ? readName(item, 'resource', at) : null,
    id,
    data,
    accounts,
    occurredAt: readTime(item.occurred_at, `events${at}.occurred_at`),
  }
  if (!WITHOUT_RESOURCE.includes(event) && id === null && data === null)
    throw wrong(`events${at} must have an id or data: nothing says which record is ${event}`)
  return read
}

function isRecordChange(event: string): event is RecordChange {
  return CHANGES.includes(event)
}

function withoutPrefix(event: string): string {
  return event.startsWith(RECORD_PREFIX) ? event.slice(RECORD_PREFIX.length) : event
}

function readName(item: JsonObject, field: string, at: string): string {
  const value = getAtPath(item, [field])
  if (isName(value)) return value
  throw wrong(`events${at}.${field} must be a text of 1 to ${NAME_LENGTH_MAX} characters`)
}

function isName(value: Json | undefined): value is string {
  return typeof value === 'string' && value !== '' && value.length <= NAME_LENGTH_MAX
}

function optionalText(value: Json | undefined, at: string): string | null {
  return value === undefined || value === null ? null : scalarText(value, `events${at}`)
}

function scalarText(value: Json, name: string): string {
  if (typeof value === 'string' && value.length <= NAME_LENGTH_MAX) return value
  if (isJsonNumber(value)) return String(value)
  throw wrong(`${name} must be a number or a text of at most ${NAME_LENGTH_MAX} characters`)
}

/** Numbers below this are seconds since 1970, from this on milliseconds: the year 5138 in seconds, 1973 in milliseconds. */
const MILLISECONDS_FROM = 100_000_000_000
/** Last moment that RFC 3339 can write. */
const TIME_MS_MAX = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

function readTime(value: Json | undefined, name: string): Date | null {
  if (value === undefined || value === null) return null
  const ms = isJsonNumber(value) ? epochMs(toDouble(value)) : typeof value === 'string' ? parseTime(value) : Number.NaN
  if (Number.isNaN(ms) || ms < 0 || ms > TIME_MS_MAX)
    throw wrong(`${name} must be a time: RFC 3339, or seconds or milliseconds since 1970`)
  return new Date(ms)
}

function epochMs(value: number): number {
  return Math.abs(value) < MILLISECONDS_FROM ? value * 1_000 : value
}

function wrong(what: string): Failure {
  return new Failure('EXPRESSION_FAILED', `the mapping of the webhook cannot be used: ${what}`)
}
