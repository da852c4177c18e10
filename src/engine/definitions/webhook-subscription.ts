import { z } from 'zod'
import { expressionText, listOf, nameText, refineWith } from '../formats/schema-types.ts'
import { type ActionDefinition, actionSchema, type CompileRequest, compileAction } from './actions.ts'
import type { SubscriptionPlan, SubscriptionSecret, SubscriptionVerb } from './plan.ts'

/** Root names of expressions over the response to a subscription request. */
const RESULT_ROOTS = ['result', 'headers', 'context', 'subscription'] as const

/** Root names of `when`. */
const CONDITION_ROOTS = ['context', 'subscription'] as const

/** Shortest and longest time before the expiry at which a renewal may be due. */
const RENEW_BEFORE_SECONDS = { min: 1, max: 30 * 86_400 } as const
const UNIT_SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const
const DURATION = /^(\d{1,7})([smhd])$/

const EVENTS_MAX = 100

const secretSchema = z.union([
  z.enum(['hex32', 'base64_32']),
  z.strictObject({ expression: expressionText(RESULT_ROOTS).describe('JSONata as for `id`.') }),
])

/** How webhooks are ordered from the third party: the `webhook.subscription` block of a definition. */
export const subscriptionSchema = z
  .strictObject({
    create: actionSchema.describe(
      'Orders webhooks, once the account works: the address is {{connection.webhook_url}}. The third party may call it before this request is answered.',
    ),
    renew: actionSchema
      .optional()
      .describe(
        'Prolongs {{subscription.id}}; 404 or 410 says that it is gone, and another one is created. Without an expiry it runs daily, as a check. Default: a new subscription is created before the old one expires, which is deleted then.',
      ),
    delete: actionSchema
      .optional()
      .describe('Ends {{subscription.id}}, when the account is deleted or another subscription has replaced this one.'),
    find: actionSchema
      .optional()
      .describe(
        'Looks for a subscription with this address before another one is created, where the response to an earlier request may have been lost. Its result is read by `id`; nothing means that there is none.',
      ),
    when: expressionText(CONDITION_ROOTS)
      .optional()
      .describe(
        'JSONata over {context, subscription}: webhooks are ordered for accounts for which it is truthy. It is looked at before each request, and every hour while it is not. Default: for all.',
      ),
    id: expressionText(RESULT_ROOTS).describe(
      'JSONata over {result, headers, context, subscription} over the response to `create` or `find` that returns what the third party calls the subscription: {{subscription.id}}. An object has its members there.',
    ),
    expires: expressionText(RESULT_ROOTS)
      .optional()
      .describe(
        'JSONata as for `id`: when the subscription ends, as RFC 3339, Unix time in seconds or milliseconds, or a duration such as 30d. Nothing: never.',
      ),
    renew_before: z
      .string()
      .max(16)
      .superRefine(refineWith(findDurationProblem, 'webhook.renew_before'))
      .optional()
      .describe('When the renewal is due: a number and s, m, h or d. Default: 20 % of the life before its end.'),
    secret: secretSchema
      .optional()
      .describe(
        '{{subscription.secret}}, kept encrypted. `hex32`, `base64_32`: 32 random bytes in that form, made before the first request; `{expression}`: read from the response to `create`. Default: none.',
      ),
    events: listOf(nameText()).max(EVENTS_MAX).optional().describe('Events to order, as {{subscription.events}}.'),
    one_per_event: z
      .boolean()
      .default(false)
      .describe('Every one of `events` is a subscription of its own, which reads its name as {{subscription.event}}.'),
    scope: z
      .enum(['account', 'installation'])
      .default('account')
      .describe(
        'Whose address {{connection.webhook_url}} is: the one of the account, or the one that all accounts of the installation share.',
      ),
  })
  .meta({ id: 'WebhookSubscription' })

type SubscriptionDefinition = z.output<typeof subscriptionSchema>

/** Compiles a checked subscription block. */
export function compileSubscription(
  definition: SubscriptionDefinition,
  compileRequest: CompileRequest,
): SubscriptionPlan {
  const { renew_before, secret, events = [], one_per_event } = definition
  const compile = (verb: SubscriptionVerb, action: ActionDefinition | undefined) =>
    action === undefined ? undefined : compileAction(`subscription_${verb}`, action, compileRequest)
  return {
    actions: {
      create: compile('create', definition.create),
      renew: compile('renew', definition.renew),
      delete: compile('delete', definition.delete),
      find: compile('find', definition.find),
    },
    id: definition.id,
    expires: definition.expires,
    renewBeforeMs: renew_before === undefined ? undefined : (durationSeconds(renew_before) ?? 0) * 1_000,
    secret: secret === undefined ? undefined : secretPlanOf(secret),
    when: definition.when,
    events,
    keys: one_per_event ? [...new Set(events)] : [''],
    scope: definition.scope,
  }
}

function secretPlanOf(secret: z.output<typeof secretSchema>): SubscriptionSecret {
  if (typeof secret === 'object') return { kind: 'response', expression: secret.expression }
  return { kind: 'generated', encoding: secret === 'hex32' ? 'hex' : 'base64' }
}

/** Seconds of a text such as `30d`; `undefined` for any other text. */
export function durationSeconds(text: string): number | undefined {
  const [, count, unit] = DURATION.exec(text) ?? []
  return count === undefined ? undefined : Number(count) * UNIT_SECONDS[unit as keyof typeof UNIT_SECONDS]
}

function findDurationProblem(text: string): string | undefined {
  const seconds = durationSeconds(text) ?? 0
  const { min, max } = RENEW_BEFORE_SECONDS
  return seconds >= min && seconds <= max
    ? undefined
    : 'must be a number with s, m, h or d, such as 1h, and at most 30d'
}
