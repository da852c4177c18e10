import { movesMore } from '../../engine/definitions/index.ts'
import { environmentRoots } from '../../engine/expressions/index.ts'
import { callSecrets } from '../../engine/proxy/index.ts'
import { Failure } from '../../foundation/base/index.ts'
import { type Database, findDatabaseProblem } from '../../foundation/database/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import type { Lease } from '../../foundation/queue/index.ts'
import { Redactor } from '../../foundation/redaction/index.ts'
import { describeError, type Logger } from '../../foundation/telemetry/index.ts'
import { findAccountsByContext } from '../../platform/accounts/index.ts'
import {
  type ContextEffect,
  failedAt,
  type InboundEffects,
  type ProcessingOutcome,
  type RoutedItem,
} from './effects.ts'
import {
  EXPRESSION_BYTES_MAX,
  type ExpressionDeps,
  evaluateHandshake,
  type Handshake,
  handshakeFacts,
} from './handshake.ts'
import type { InboundContent, InboundEventRecord } from './inbound-event.ts'
import type { QueuedEvent } from './inbound-queue.ts'
import { defaultItems, type InboundItem, readItems, readLookupValues } from './mapping.ts'
import { expressionInput, type ParsedRequest, parseRequest } from './parsed-request.ts'
import { groupByValue, LOOKUP_ACCOUNTS_MAX, listLookupValues, type RoutingSource, routeItems } from './routing.ts'
import type { InboundSource, SourceReader } from './source.ts'
import { StepRecorder } from './step-recorder.ts'
import type { HintedSyncs } from './sync-hints.ts'
import { type TransformedRequest, transformRequest, withPayload } from './transform.ts'

/** What processing a received webhook takes. */
export interface ProcessingDeps extends ExpressionDeps {
  readonly database: Pick<Database, 'pool'>
  readonly sources: SourceReader
  readonly syncs: Pick<HintedSyncs, 'findTriggers'>
  /** Without a trailing slash. */
  readonly publicUrl: () => string
  readonly logger: Pick<Logger, 'error'>
}

/**
 * Finds out what a received webhook leads to, with the definition as it is now, and does nothing of it: handshake expression for
 * `update_context`, mapping to items, routing of the items to accounts.
 *
 * Never throws. The payload that was made when the webhook was received is used; a replay makes it anew.
 */
export async function processInboundEvent(deps: ProcessingDeps, lease: Lease<QueuedEvent>): Promise<ProcessingOutcome> {
  const steps = new StepRecorder()
  const secrets: string[] = []
  const redactor = new Redactor(() => secrets)
  try {
    return await runSteps(deps, lease, steps, secrets)
  } catch (error) {
    if (error instanceof Failure) {
      const message = redactor.redactText(error.publicMessage)
      return failedAt(steps.current, error, steps.trace, message)
    }
    const problem = findDatabaseProblem(error)
    if (problem !== undefined) return failedAt(steps.current, new Failure(problem.reason, problem.message), steps.trace)
    deps.logger.error(
      { inbound_event_id: lease.id, ...describeError(error) },
      'processing a webhook failed unexpectedly',
    )
    return failedAt(steps.current, new Failure('INTERNAL', 'processing failed unexpectedly'), steps.trace)
  }
}

/** A request that is being processed. */
interface Processing {
  readonly event: InboundEventRecord
  readonly source: InboundSource
  /** Transformed. */
  readonly request: ParsedRequest
}

/** @param secrets filled with the secrets of the source, as soon as they are known */
async function runSteps(
  deps: ProcessingDeps,
  lease: Lease<QueuedEvent>,
  steps: StepRecorder,
  secrets: string[],
): Promise<ProcessingOutcome> {
  const { event, content, source, received } = await steps.run('load', () => load(deps, lease))
  secrets.push(...sourceSecrets(source))
  const { request } = await steps.run(
    'transform',
    () => transformed(deps, lease, source, content, received),
    ({ changes }) => changes,
  )
  const processing = { event, source, request }
  const handshake = await steps.run('handshake', () => evaluateHandshake(deps, source, request, false), handshakeFacts)
  const items = await steps.run(
    'mapping',
    () => mapItems(deps, processing, handshake),
    (mapped) => mappingFacts(mapped, handshake),
  )
  const { routed, accountIds } = await steps.run('routing', () => route(deps, processing, items), routingFacts)
  const update = contextEffect(source, handshake, accountIds)
  const skipped = whyNoUpdate(lease, event)
  const facts = (effect: ContextEffect) => (skipped === undefined ? contextFacts(effect) : { skipped })
  if (update !== undefined) await steps.run('context', async () => update, facts)
  const context = skipped === undefined ? update : undefined
  const effects: InboundEffects = { integration: source.integration, context, items: withoutSecrets(routed, update) }
  return { kind: 'done', effects, trace: steps.trace }
}

async function load(deps: ProcessingDeps, { stored, attemptsExhausted }: Lease<QueuedEvent>) {
  if (stored === undefined || stored.content === null)
    throw new Failure('RESOURCE_NOT_FOUND', 'the content of the webhook was deleted')
  if (attemptsExhausted)
    throw new Failure('ACTION_FAILED', 'the process that worked on it crashed or was killed every time')
  const { event, content } = stored
  const source = await deps.sources.find({ kind: event.sourceKind, id: event.sourceId })
  if (source === undefined)
    throw new Failure(
      'RESOURCE_NOT_FOUND',
      'the account or installation was deleted or disabled, or its definition has no webhook block any more',
    )
  const { method, path, query } = event
  const owner = { owner: source.environmentId }
  const received = await parseRequest({ method, path, query, ...content }, deps.publicUrl(), owner, source.webhook)
  // It was stored under another definition.
  if (received.problem !== undefined) throw new Failure('MALFORMED_BODY', received.problem.message)
  return { event, content, source, received }
}

/** The texts that are masked in messages. */
function sourceSecrets({ plan, values }: InboundSource): readonly string[] {
  const { credentials, environmentVariables, connection } = values
  const webhook = connection?.webhook ?? null
  return callSecrets(plan, { credentials: { ...credentials, webhook }, environmentVariables })
}

/** With the payload that was made when it was received, unless a transform changes more than that: it is not stored. */
async function transformed(
  deps: ProcessingDeps,
  { isReplay }: Lease<QueuedEvent>,
  source: InboundSource,
  { payload }: InboundContent,
  received: ParsedRequest,
): Promise<TransformedRequest> {
  const isMade = payload !== null && !isReplay && !movesMore(source.webhook.payloadTransform)
  return isMade ? withPayload(received, payload) : await transformRequest(deps, source, received, false)
}

async function mapItems(
  deps: ProcessingDeps,
  { source, request }: Processing,
  { type }: Handshake,
): Promise<readonly InboundItem[]> {
  if (type !== 'payload') return []
  const { events } = source.webhook
  if (events === undefined) return defaultItems(request.body)
  const limits = { inputBytesMax: EXPRESSION_BYTES_MAX, resultBytesMax: EXPRESSION_BYTES_MAX }
  const options = { owner: source.environmentId, ...limits }
  return readItems(await deps.evaluator.evaluate(events, eventInput(source, request, events), options))
}

function eventInput({ values }: InboundSource, request: ParsedRequest, expression: string): JsonObject {
  const variables = environmentRoots(expression, values.environmentVariables)
  return { ...expressionInput(request), context: values.context, ...variables }
}

/** @returns the lines, and the accounts that the request as a whole is about */
async function route(
  deps: ProcessingDeps,
  processing: Processing,
  items: readonly InboundItem[],
): Promise<{ readonly routed: readonly RoutedItem[]; readonly accountIds: readonly string[] }> {
  const { source } = processing
  const routing = await findAccounts(deps, processing, items)
  const lines = routeItems(items, routing)
  const routed = await Promise.all(lines.map((line) => withTriggers(deps, source, line)))
  return { routed, accountIds: accountsOfRequest(routing) }
}

function accountsOfRequest(routing: RoutingSource): readonly string[] {
  if (routing.kind === 'account') return [routing.account.id]
  const found = (routing.lookup?.values ?? []).flatMap((value) => routing.accounts.get(value) ?? [])
  return [...new Set(found.map(({ id }) => id))]
}

async function findAccounts(
  deps: ProcessingDeps,
  { source, request }: Processing,
  items: readonly InboundItem[],
): Promise<RoutingSource> {
  const { environmentId, environmentIntegrationId, integratedAccountId, tenantId, webhook } = source
  if (integratedAccountId !== undefined && tenantId !== undefined)
    return { kind: 'account', account: { id: integratedAccountId, tenantId } }
  const { contextLookup } = webhook
  if (contextLookup === undefined) return { kind: 'installation', lookup: undefined, ...groupByValue([]) }
  const input = eventInput(source, request, contextLookup.value)
  const options = { owner: environmentId, inputBytesMax: EXPRESSION_BYTES_MAX }
  const value = await deps.evaluator.evaluate(contextLookup.value, input, options)
  const values = readLookupValues(value, 'context_lookup.value')
  const { field } = contextLookup
  const wanted = listLookupValues(items, values)
  const installation = { environmentId, environmentIntegrationId }
  const found =
    wanted.length === 0
      ? []
      : await findAccountsByContext(deps.database.pool, installation, field, wanted, LOOKUP_ACCOUNTS_MAX + 1)
  return { kind: 'installation', lookup: { field, values }, ...groupByValue(found) }
}

/** A hint that no trigger waits for leads to nothing. */
async function withTriggers(deps: ProcessingDeps, source: InboundSource, line: RoutedItem): Promise<RoutedItem> {
  if (line.state !== 'hint') return line
  const { account, resource } = line
  const hint = { environmentId: source.environmentId, integratedAccountId: account.id, resource }
  const triggers = await deps.syncs.findTriggers(deps.database.pool, hint)
  if (triggers.length > 0) return line
  return { ...line, state: 'ignored', detail: `no active trigger of the account reads ${resource}` }
}

function contextEffect(
  { webhook }: InboundSource,
  { contextUpdate: values, type }: Handshake,
  accountIds: readonly string[],
): ContextEffect | undefined {
  if (values === undefined || type === 'verify' || Object.keys(values).length === 0) return undefined
  return { accountIds, values, secretKeys: Object.keys(values).filter((key) => webhook.secretContext.has(key)) }
}

/** Why a request may not change contexts. */
function whyNoUpdate({ isReplay }: Lease<QueuedEvent>, { signature }: InboundEventRecord): string | undefined {
  if (isReplay) return 'a replay does not change the context: it would undo later changes'
  return signature === 'valid' ? undefined : 'a request without a valid signature does not change the context'
}

/** Values that are kept as secrets are masked in what is handed on. */
function withoutSecrets(lines: readonly RoutedItem[], context: ContextEffect | undefined): readonly RoutedItem[] {
  const secrets = (context?.secretKeys ?? [])
    .map((key) => context?.values[key])
    .filter((value) => typeof value === 'string')
  if (secrets.length === 0) return lines
  const redactor = new Redactor(() => secrets)
  return lines.map((line) =>
    line.state === 'routed' ? { ...line, item: { ...line.item, data: redactor.redactJson(line.item.data) } } : line,
  )
}

function mappingFacts(items: readonly InboundItem[], { type }: Handshake): JsonObject {
  if (type !== 'payload') return { items: 0, skipped: `a request of type ${type} leads to no event` }
  const kinds = Map.groupBy(items, (item) => (item.kind === 'record' ? item.event : item.kind))
  return { items: items.length, by_event: Object.fromEntries([...kinds].map(([kind, some]) => [kind, some.length])) }
}

function routingFacts({ routed }: { readonly routed: readonly RoutedItem[] }) {
  const states = Map.groupBy(routed, ({ state }) => state)
  return Object.fromEntries([...states].map(([state, some]) => [state, some.length]))
}

const KEYS_SHOWN_MAX = 32

/** Names of the keys, never their values. */
function contextFacts({ accountIds, values, secretKeys }: ContextEffect) {
  const keys = Object.keys(values).slice(0, KEYS_SHOWN_MAX)
  return { accounts: accountIds.length, keys, secret_keys: secretKeys.slice(0, KEYS_SHOWN_MAX) }
}
