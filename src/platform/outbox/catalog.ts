import { suggest, type Violation } from '../../foundation/base/index.ts'

/** The event catalog: every event the product sends, by subject. Names are `<subject>:<what happened>`. */
const EVENT_CATALOG = {
  integrated_account: [
    'created',
    'updated',
    'deleted',
    'active',
    'post_connect_form_submitted',
    'post_install_error',
    'validation_error',
    'authentication_error',
    'forbidden_error',
    'reactivated',
    'reauthorization_due',
    'webhook_error',
    'webhook_silent',
    'token_issued',
  ],
  link_token: ['completed', 'connection_error'],
  environment_integration: ['created', 'updated', 'deleted', 'client_secret_expiring'],
  sync_job_run: [
    'created',
    'updated',
    'started',
    'record',
    'record_error',
    'rate_limited',
    'completed',
    'failed',
    'deleted',
  ],
  sync_job_cron_trigger: ['failed'],
  record: ['created', 'updated', 'deleted', 'unmapped', 'meta'],
  api_token: ['created', 'deleted'],
  webhook: ['failing', 'disabled', 'recovered'],
} as const satisfies Record<string, readonly string[]>

/** A name of the event catalog, e.g. `integrated_account:active`. */
export type EventType = {
  [Subject in keyof typeof EVENT_CATALOG]: `${Subject}:${(typeof EVENT_CATALOG)[Subject][number]}`
}[keyof typeof EVENT_CATALOG]

/** The names of all events, in the order of the catalog. */
export const EVENT_TYPES: readonly string[] = Object.entries(EVENT_CATALOG).flatMap(([subject, names]) =>
  names.map((name) => `${subject}:${name}`),
)

/** Events that a webhook gets only when it names them: neither a pattern nor asking for all events includes them. */
const NAMED_ONLY: ReadonlySet<string> = new Set<EventType>(['record:meta'])

/** A violation for every pattern (a name, or a prefix and `*`) that no event of the catalog matches. */
export function checkEventTypes(patterns: readonly string[], field: string): Violation[] {
  return patterns.flatMap((pattern, index) => {
    if (EVENT_TYPES.some((event) => matchesEventType(pattern, event))) return []
    const description = `is not an event or a pattern such as sync_job_run:*${adviceFor(pattern)}`
    return [{ field: `${field}[${index}]`, description, rule: 'event_types.unknown' }]
  })
}

/** The event that was meant, else those of its subject, else the subjects. */
function adviceFor(pattern: string): string {
  const near = suggest(pattern, EVENT_TYPES)
  if (near !== '') return near
  const subject = pattern.split(':', 1)[0] ?? ''
  const own = EVENT_TYPES.filter((event) => event.startsWith(`${subject}:`))
  return own.length > 0
    ? `; events of ${subject} are ${own.join(', ')}`
    : `; subjects are ${Object.keys(EVENT_CATALOG).join(', ')}`
}

/** The names of the catalog that some of the patterns match. */
export function eventTypesOf(patterns: readonly string[]): readonly string[] {
  return EVENT_TYPES.filter((event) => patterns.some((pattern) => matchesEventType(pattern, event)))
}

/** The event type of that name; undefined when the catalog has none. */
export function findEventType(name: string): EventType | undefined {
  return EVENT_TYPES.find((type): type is EventType => type === name)
}

/** Whether a webhook with these event types (names and patterns; none: all) is sent an event. */
export function isAskedFor(eventTypes: readonly string[], event: string): boolean {
  if (NAMED_ONLY.has(event)) return eventTypes.includes(event)
  return eventTypes.length === 0 || eventTypes.some((pattern) => matchesEventType(pattern, event))
}

/** The names of the catalog that a webhook with these event types is sent. */
export function eventTypesAskedFor(eventTypes: readonly string[]): readonly string[] {
  return EVENT_TYPES.filter((event) => isAskedFor(eventTypes, event))
}

/** A violation for every pattern of a webhook by which it would be sent nothing. */
export function checkAskedEventTypes(patterns: readonly string[], field: string): Violation[] {
  const unnamed = patterns.flatMap((pattern, index): Violation[] => {
    const [event, ...others] = eventTypesOf([pattern])
    if (event === undefined || others.length > 0 || isAskedFor([pattern], event)) return []
    const description = `matches ${event} alone, which is sent only to webhooks that name it: write ${event}`
    return [{ field: `${field}[${index}]`, description, rule: 'event_types.named_only' }]
  })
  return [...checkEventTypes(patterns, field), ...unnamed]
}

/** Whether an event type is meant by a pattern: a name, or a prefix and `*`. */
function matchesEventType(pattern: string, event: string): boolean {
  return pattern.endsWith('*') ? event.startsWith(pattern.slice(0, -1)) : pattern === event
}
