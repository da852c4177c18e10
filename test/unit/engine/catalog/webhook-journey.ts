import type { WebhookPlan } from '../../../../src/engine/definitions/index.ts'
import { type AccountValues, type Evaluator, environmentRoots } from '../../../../src/engine/expressions/index.ts'
import type { WebhookRequest } from '../../../../src/engine/formats/index.ts'
import { createKeySource } from '../../../../src/engine/formats/index.ts'
import type { VerificationResult } from '../../../../src/engine/formats/signature/verification.ts'
import { isJsonObject, type Json, type JsonObject } from '../../../../src/foundation/json/index.ts'
import { parseRequest } from '../../../../src/webhooks/inbound/parsed-request.ts'
import { readData } from '../../../support/data-files.ts'

/** What a provider sends, and what its definition makes of that. */
export interface GoldenWebhooks {
  /** When all of it is received. */
  readonly now: string
  /** The account whose address is called. */
  readonly account: Partial<AccountValues> & { readonly subscription?: JsonObject }
  /** What the addresses of the provider's public keys answer. */
  readonly documents?: Readonly<Record<string, string>>
  readonly deliveries: readonly GoldenWebhook[]
}

/** One request of a provider. */
export interface GoldenWebhook {
  readonly what: string
  /** Default: POST. */
  readonly method?: string
  readonly query?: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly result: WebhookResult
}

/** What becomes of a request; members that do not apply are absent. */
export interface WebhookResult {
  readonly type: 'verify' | 'payload' | 'meta'
  /** The answer of a handshake. */
  readonly answer?: Json
  readonly update_context?: Json
  /** Absent: handshakes of type `verify` are not verified. */
  readonly signature?: string
  readonly events?: Json
  /** Values that name accounts, of an address that all accounts share. */
  readonly accounts?: Json
  /** The parts that recognise duplicates; absent: signature and body. */
  readonly dedupe?: readonly string[]
  readonly provider_time?: string
}

/** Address that the signatures of the golden files are made for. */
const HOOK = 'https://patchbay.example/integrated-account-webhook/account-1'

export function readGoldenWebhooks(name: string): GoldenWebhooks | undefined {
  return readData(`catalog/webhooks/${name}.json`)
}

/** Takes a request through transform, handshake, signature and mapping. */
export async function followWebhook(
  evaluator: Evaluator,
  plan: WebhookPlan,
  golden: GoldenWebhooks,
  request: Omit<GoldenWebhook, 'result'>,
): Promise<WebhookResult> {
  const account = accountOf(golden)
  const evaluate = (expression: string, input: JsonObject) => evaluator.evaluate(expression, input, { owner: 'test' })
  const { input, delivery } = await receive(evaluate, plan, request)
  const handshake = await shake(evaluate, plan, input, account)
  if (handshake.type === 'verify') return handshake
  const result = await verify(plan, golden, delivery, account)
  return {
    ...handshake,
    signature: result.kind === 'invalid' ? result.reason : plan.verify === undefined ? 'none' : 'valid',
    ...(handshake.type === 'meta' ? {} : await map(evaluate, plan, { ...input, context: account.context })),
    ...described(plan, delivery, account),
  }
}

async function receive(evaluate: Evaluate, plan: WebhookPlan, request: Omit<GoldenWebhook, 'result'>) {
  const { method = 'POST', headers, query = '' } = request
  const parameters = Object.fromEntries(new URLSearchParams(query))
  const { origin, pathname: path } = new URL(HOOK)
  const raw = { method, path, query, headers: Object.entries(headers), body: Buffer.from(request.body) }
  const { body } = await parseRequest(raw, origin, { owner: 'test' }, plan)
  const received = { body, headers, query: parameters, method, path }
  const payload = await transform(evaluate, plan, received)
  const url = query === '' ? HOOK : `${HOOK}?${query}`
  const delivery = { method, url, headers, query: parameters, body: Buffer.from(request.body), payload }
  return { input: { ...received, body: payload }, delivery }
}

type Evaluate = (expression: string, input: JsonObject) => Promise<Json | undefined>

function accountOf({ account }: GoldenWebhooks): AccountValues {
  const { subscription, credentials = {} } = account
  return {
    context: {},
    environmentVariables: {},
    ...account,
    credentials: { ...credentials, ...(subscription === undefined ? {} : { subscription }) },
  }
}

async function transform(evaluate: Evaluate, plan: WebhookPlan, input: JsonObject): Promise<Json> {
  if (plan.payloadTransform === undefined) return input.body ?? null
  const result = (await evaluate(plan.payloadTransform.expression, input)) ?? null
  return isJsonObject(result) && 'body' in result ? (result.body ?? null) : result
}

async function shake(
  evaluate: Evaluate,
  plan: WebhookPlan,
  input: JsonObject,
  { environmentVariables, context }: AccountValues,
): Promise<Pick<WebhookResult, 'type' | 'answer' | 'update_context'>> {
  if (plan.handshake === undefined) return { type: 'payload' }
  const { expression } = plan.handshake
  const variables = environmentRoots(expression, environmentVariables)
  const result = await evaluate(expression, { ...input, context, ...variables })
  if (!isJsonObject(result)) return { type: 'payload' }
  const { type, verification_response: answer, update_context: update } = result
  return {
    type: type as WebhookResult['type'],
    ...(answer === undefined ? {} : { answer }),
    ...(update === undefined ? {} : { update_context: update }),
  }
}

async function verify(
  plan: WebhookPlan,
  { now: time, documents = {} }: GoldenWebhooks,
  delivery: WebhookRequest,
  account: AccountValues,
): Promise<VerificationResult> {
  if (plan.verify === undefined) return { kind: 'valid' }
  const now = () => new Date(time)
  const fetchKey = async (url: string) => ({
    status: documents[url] === undefined ? 404 : 200,
    body: Buffer.from(documents[url] ?? ''),
  })
  return await plan.verify(delivery, { account, call: {} }, { now, keys: createKeySource({ now, fetchKey }) })
}

async function map(evaluate: Evaluate, plan: WebhookPlan, input: JsonObject): Promise<Partial<WebhookResult>> {
  const events = plan.events === undefined ? undefined : await evaluate(plan.events, input)
  const accounts = plan.contextLookup === undefined ? undefined : await evaluate(plan.contextLookup.value, input)
  return { ...(events === undefined ? {} : { events }), ...(accounts === undefined ? {} : { accounts }) }
}

/** How the delivery is recognised again, and when the provider says that it happened. */
function described(plan: WebhookPlan, delivery: WebhookRequest, account: AccountValues): Partial<WebhookResult> {
  const scope = { account, call: {} }
  const keys = (plan.dedupe?.keys ?? []).map((parts) =>
    parts.map((part) => {
      const read = part(delivery, scope)
      return read.kind === 'ok' ? String(read.value[0]) : undefined
    }),
  )
  const dedupe = keys.find((parts) => parts.every((part) => part !== undefined))
  const time = plan.readProviderTime?.(delivery, scope)
  return {
    ...(dedupe === undefined ? {} : { dedupe: dedupe.filter((part) => part !== undefined) }),
    ...(time?.kind === 'ok' ? { provider_time: new Date(time.value).toISOString() } : {}),
  }
}
