import { z } from 'zod'
import {
  anyJson,
  expressionText,
  headerName,
  listOf,
  mapOf,
  nameText,
  rawText,
  refineWith,
} from '../formats/schema-types.ts'
import { signatureSchema } from '../formats/signature/registry.ts'
import { tokenText } from '../formats/signature/source.ts'
import { REQUEST_ROOTS } from './plan.ts'
import { findAnswerBodyProblem, findAnswerHeadersProblem } from './webhook-answer.ts'
import { durationSeconds, subscriptionSchema } from './webhook-subscription.ts'

/** Roots of `handle_verification`, which may compute with secrets and read what an earlier handshake stored. */
const HANDSHAKE_ROOTS = [...REQUEST_ROOTS, 'raw_body', 'context', 'credentials', 'connection'] as const

/** Roots of `events` and `context_lookup`; `context` is that of the account, where the address is one of an account. */
const EVENT_ROOTS = [...REQUEST_ROOTS, 'context'] as const

/** Longest time for which duplicates of a request are recognised. */
const WINDOW_SECONDS_MAX = 30 * 86_400

/** A host, or a pattern in which `*` stands for one label: `sns.*.amazonaws.com`. The last two labels are written out. */
const HOST_PATTERN = /^(?:(?:\*|[a-z0-9-]{1,63})\.){0,8}[a-z0-9-]{1,63}\.[a-z0-9-]{1,63}$/i

const windowText = z
  .string()
  .max(16)
  .superRefine(refineWith(findWindowProblem, 'webhook.window'))
  .describe('How long an id is recognised: a number and s, m, h or d. Default: 7d; at most 30d.')

const dedupeSchema = z.strictObject({
  keys: listOf(z.union([tokenText(), listOf(tokenText()).min(1).max(8)]))
    .min(1)
    .max(8)
    .optional()
    .describe(
      'Where the id of a request is: the first of these with a value, or a list whose values together are the id. The id alone decides. A request with several entries is named by `$body.sha256`, not by its first entry. Default: that of Standard Webhooks; a request without an id is a duplicate where method, address, body and every header that is read of it are the same, within 10 minutes, and never without a body.',
    ),
  window: windowText.optional(),
})

const responseSchema = z.strictObject({
  status: z.int().min(200).max(299).optional().describe('Default: 200.'),
  body: anyJson()
    .superRefine(refineWith(findAnswerBodyProblem, 'webhook.response'))
    .optional()
    .describe('A text is sent as it is, anything else as JSON. Default: {}.'),
  headers: mapOf(headerName(), z.string().max(4_096))
    .superRefine(refineWith(findAnswerHeadersProblem, 'webhook.response'))
    .optional()
    .describe('All but those of the connection, of framing, of cookies and others that concern the whole host.'),
})

const rateLimitSchema = z.strictObject({
  requests_per_second: z.int().min(1).max(100_000).default(200).describe('Deliveries per second, on average.'),
  burst: z.int().min(1).max(1_000_000).default(2_000).describe('Deliveries at once.'),
})

const providerTimeSchema = z.strictObject({
  value: tokenText().describe('Where the time of the event is, for example `$payload.created`.'),
  unit: z.enum(['seconds', 'milliseconds', 'iso']).default('seconds').describe('How the time is written.'),
})

/** Largest body that a definition may allow, as sent: GitHub documents 25 MB. */
const BODY_BYTES_MAX = 25 * 1024 * 1024
const BODY_BYTES_DEFAULT = 1024 * 1024

/** How inbound webhooks of the third party are handled. */
export const webhookSchema = z
  .strictObject({
    payload_transform: expressionText(REQUEST_ROOTS)
      .optional()
      .describe(
        'JSONata over {body, headers, query, method, path}. A result {body, headers?, query?, method?, path?} that it writes out, or makes of its input as a whole ($), is the request as handshake, signature and mapping read it; any other result is its body. $body and raw_body stay the bytes that were sent.',
      ),
    handle_verification: expressionText(HANDSHAKE_ROOTS)
      .optional()
      .describe(
        'JSONata that returns {type: verify (answered, no event) | payload | meta (stored, no event), verification_response?: {status_code, body, headers}, verification_request?: {url}, update_context?}. Nothing means payload. Beside the request it reads raw_body, context, credentials.<name>, connection.',
      ),
    signature_verification: signatureSchema.optional().describe('How requests are authenticated. Default: not at all.'),
    body_stage: z
      .enum(['raw', 'decoded'])
      .default('raw')
      .describe('What is signed of a compressed body: the bytes that were sent, or the bytes before compression.'),
    max_body_bytes: z
      .int()
      .min(1)
      .max(BODY_BYTES_MAX)
      .default(BODY_BYTES_DEFAULT)
      .describe(
        'Largest body as it is sent; larger ones are answered 413. Decompressed it may have as much, or 8 MiB. More than 8 MiB are read only where the signature is over the bytes. Expressions that are not simple read at most 5 MiB of JSON: a larger request is stored, and fails when it is processed. Default: 1 MiB; at most 25 MiB.',
      ),
    form_json_field: nameText()
      .optional()
      .describe(
        'Field of a form that holds the body as JSON, as `payload` of GitHub and Slack; a form without it is its fields.',
      ),
    events: expressionText(EVENT_ROOTS)
      .optional()
      .describe(
        'JSONata that maps an accepted payload to one or many {event: created | updated | deleted | unmapped | meta, resource, id?, data?, account?, occurred_at?} or {type: sync_hint, resource, since?, account?}. unmapped is for what is no change of a record; meta goes only to webhooks that name record:meta.',
      ),
    context_lookup: z
      .strictObject({
        value: expressionText(EVENT_ROOTS).describe('JSONata over the payload.'),
        field: nameText().describe("Key of the accounts' context that must equal the value."),
      })
      .optional()
      .describe('How the receiving accounts of an environment-level address are found.'),
    dedupe: z
      .union([z.literal(false), dedupeSchema])
      .optional()
      .describe('How repeated requests are recognised; false where every request is news, also with the same content.'),
    response: responseSchema.optional().describe('The answer to an accepted request.'),
    rate_limit: rateLimitSchema.optional().describe('Most requests of one address; others are answered 429.'),
    secret_context: listOf(nameText())
      .max(16)
      .optional()
      .describe(
        'Keys of `update_context` that are secrets: stored encrypted and read as {{connection.webhook.<name>}}, never in the context.',
      ),
    verification_hosts: listOf(rawText().regex(HOST_PATTERN, { error: 'must be a host such as sns.*.amazonaws.com' }))
      .max(32)
      .optional()
      .describe('Hosts whose addresses a handshake may ask to be visited, over HTTPS; * stands for one label.'),
    provider_time: providerTimeSchema.optional().describe('When the third party says that it happened.'),
    subscription: subscriptionSchema
      .optional()
      .describe(
        'How webhooks are ordered from the third party for each account. Default: the address is entered there by hand.',
      ),
  })
  .meta({ id: 'Webhook' })

/** The webhook block of a definition. */
export type WebhookDefinition = z.output<typeof webhookSchema>

/** Seconds of a checked text such as `7d`. */
export function windowSeconds(text: string): number {
  return durationSeconds(text) ?? 0
}

function findWindowProblem(text: string): string | undefined {
  const seconds = windowSeconds(text)
  return seconds >= 1 && seconds <= WINDOW_SECONDS_MAX
    ? undefined
    : 'must be a number with s, m, h or d, such as 7d, and at most 30d'
}
