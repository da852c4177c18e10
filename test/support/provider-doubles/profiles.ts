import { createHmac } from 'node:crypto'
import type { JsonObject } from '../../../src/foundation/json/index.ts'
import type { DoubleDelivery, DoubleSubscription, MakeProfile } from './profile.ts'

/** The application's own secret, which it has entered in its installations. */
const APPLICATION_SECRET = 'the-applications-signing-secret'
const VARIABLES: JsonObject = { WEBHOOK_SECRET: APPLICATION_SECRET }
const JSON_HEADERS = { 'content-type': 'application/json' }
const ITEMS = 'body.items.{"event": "created", "resource": "items", "id": id, "data": $}'

type Encoding = 'hex' | 'base64'

function hmac(secret: string, text: string, encoding: Encoding = 'hex'): string {
  return createHmac('sha256', secret).update(text).digest(encoding)
}

function hmacConfig(secret: string, header: string, encoding: Encoding, more: JsonObject = {}): JsonObject {
  const config = {
    secret,
    algorithm: 'sha256',
    string_type: encoding,
    compare_with: `$header.${header}`,
    parts: ['$body'],
  }
  return { format: 'hmac', config: { ...config, ...more } }
}

function subscriptionBlock(more: JsonObject = {}): JsonObject {
  const body = { address: '{{connection.webhook_url}}', ...more }
  return {
    create: { type: 'request', config: { method: 'POST', path: '/hooks', body } },
    renew: { type: 'request', config: { method: 'POST', path: '/hooks/{{subscription.id}}/renew' } },
    delete: { type: 'request', config: { method: 'DELETE', path: '/hooks/{{subscription.id}}' } },
    id: 'result.id',
    expires: 'result.expires',
  }
}

const payload = ({ deliveryId, items }: DoubleDelivery) => JSON.stringify({ delivery: deliveryId, items })
const seconds = () => String(Math.floor(Date.now() / 1_000))

/** Retries start while the first request still runs; more than 95 % of failures within an hour disable the address. */
export const slack: MakeProfile = ({ minute, hour }) => ({
  name: 'slack',
  policy: { deadlineMs: 3_000, retryGapsMs: [0, minute, 5 * minute], duplicateShare: 0 },
  health: { kind: 'share', share: 0.95, windowMs: hour, attemptsMin: 10 },
  isOrdered: false,
  isShared: false,
  variables: VARIABLES,
  webhook: {
    handle_verification:
      'body.type = "url_verification" ? {"type": "verify", "verification_response": {"status_code": 200, "headers": {"content-type": "text/plain"}, "body": body.challenge}} : {"type": "payload"}',
    signature_verification: hmacConfig('{{environment_variables.WEBHOOK_SECRET}}', 'x-slack-signature', 'hex', {
      signature_prefix: 'v0=',
      parts: ['v0', '$header.x-slack-request-timestamp', '$body'],
      separator: ':',
      timestamp: { value: '$header.x-slack-request-timestamp', unit: 'seconds', tolerance_seconds: 300 },
    }),
    dedupe: { keys: ['$payload.delivery'] },
    events: ITEMS,
  },
  handshake: {
    request: ({ address, secret }, challenge) =>
      slackRequest(address, secret, JSON.stringify({ type: 'url_verification', challenge })),
    isProven: ({ status, body }, challenge) => status === 200 && body === challenge,
  },
  request: ({ address, secret }, delivery, retry) => {
    const { headers, ...rest } = slackRequest(address, secret, payload(delivery))
    return { ...rest, headers: { ...headers, ...(retry === 0 ? {} : { 'x-slack-retry-num': String(retry) }) } }
  },
})

function slackRequest(url: string, secret: string, body: string) {
  const at = seconds()
  const signature = `v0=${hmac(secret, `v0:${at}:${body}`)}`
  const headers = { ...JSON_HEADERS, 'x-slack-request-timestamp': at, 'x-slack-signature': signature }
  return { method: 'POST', url, headers, body } as const
}

/** Five seconds; eight retries within four hours; a delivery that fails eight times deletes the subscription. */
export const shopify: MakeProfile = ({ minute }) => ({
  name: 'shopify',
  policy: {
    deadlineMs: 5_000,
    retryGapsMs: [0.5, 1, 2, 4, 8, 15, 20, 30].map((minutes) => minutes * minute),
    duplicateShare: 0.1,
  },
  health: { kind: 'exhausted', failures: 8 },
  isOrdered: true,
  isShared: false,
  variables: VARIABLES,
  webhook: {
    signature_verification: hmacConfig('{{environment_variables.WEBHOOK_SECRET}}', 'x-shopify-hmac-sha256', 'base64'),
    dedupe: { keys: ['$header.x-shopify-event-id'] },
    events: ITEMS,
    subscription: subscriptionBlock(),
  },
  request: ({ address, secret }, delivery) => {
    const body = payload(delivery)
    const signed = { 'x-shopify-hmac-sha256': hmac(secret, body, 'base64'), 'x-shopify-event-id': delivery.deliveryId }
    return { method: 'POST', url: address, headers: { ...JSON_HEADERS, ...signed }, body }
  },
})

/** The create call waits for the handshake; lives for days; slow answers make it drop notifications. */
const graph: MakeProfile = ({ minute, day }) => ({
  name: 'graph',
  policy: {
    deadlineMs: 10_000,
    retryGapsMs: [0.5, 1, 2, 4, 8, 16, 32].map((minutes) => minutes * minute),
    duplicateShare: 0.05,
  },
  // Not shortened: a restart takes as long here as elsewhere.
  health: { kind: 'slow', slowMs: 10_000, dropShare: 0.15, windowMs: 600_000, attemptsMin: 20 },
  isOrdered: true,
  isShared: false,
  lifeMs: 3 * day,
  variables: VARIABLES,
  webhook: {
    handle_verification:
      '$exists(query.validationToken) ? {"type": "verify", "verification_response": {"status_code": 200, "headers": {"content-type": "text/plain"}, "body": query.validationToken}} : {"type": "payload"}',
    signature_verification: {
      format: 'compare',
      config: { compare_with: '$payload.clientState', secret: '{{subscription.secret}}' },
    },
    dedupe: { keys: ['$payload.delivery'] },
    events: ITEMS,
    subscription: {
      ...subscriptionBlock({ secret: '{{subscription.secret}}' }),
      secret: 'hex32',
      renew_before: '100s',
    },
  },
  handshake: {
    request: ({ address }, token) => ({
      method: 'POST',
      url: `${address}?validationToken=${encodeURIComponent(token)}`,
      headers: { 'content-type': 'text/plain' },
      body: '',
    }),
    isProven: ({ status, body }, token) => status === 200 && body === token,
  },
  request: ({ address, secret }, { deliveryId, items }) => ({
    method: 'POST',
    url: address,
    headers: JSON_HEADERS,
    body: JSON.stringify({ delivery: deliveryId, clientState: secret, items }),
  }),
})

/** The secret is made in the handshake inside the create call; empty heartbeats; a day of failures deletes the webhook. */
const asana: MakeProfile = ({ minute, hour, day }) => ({
  name: 'asana',
  policy: {
    deadlineMs: 10_000,
    retryGapsMs: [1, 2, 4, 8, 16, 30].map((minutes) => minutes * minute),
    duplicateShare: 0.05,
  },
  health: { kind: 'duration', failingMs: day },
  isOrdered: true,
  isShared: false,
  heartbeatMs: 8 * hour,
  variables: VARIABLES,
  webhook: {
    handle_verification:
      '$exists(headers."x-hook-secret") ? {"type": "verify", "verification_response": {"status_code": 200, "headers": {"x-hook-secret": headers."x-hook-secret"}}, "update_context": {"hook_secret": headers."x-hook-secret"}} : {"type": "payload"}',
    secret_context: ['hook_secret'],
    signature_verification: hmacConfig('{{connection.webhook.hook_secret}}', 'x-hook-signature', 'hex'),
    dedupe: { keys: ['$payload.delivery'] },
    events: ITEMS,
    subscription: subscriptionBlock(),
  },
  handshake: {
    request: ({ address, secret }) => ({
      method: 'POST',
      url: address,
      headers: { ...JSON_HEADERS, 'x-hook-secret': secret },
      body: '',
    }),
    isProven: ({ status, header }, _token, secret) => status < 300 && header('x-hook-secret') === secret,
  },
  request: ({ address, secret }, delivery) => {
    const body = payload(delivery)
    return { method: 'POST', url: address, headers: { ...JSON_HEADERS, 'x-hook-signature': hmac(secret, body) }, body }
  },
})

/** Three retries with growing gaps; the address is validated again every 72 hours, and a failure disables it. */
export const zoom: MakeProfile = ({ minute, day }) => ({
  name: 'zoom',
  policy: { deadlineMs: 3_000, retryGapsMs: [5 * minute, 10 * minute, 15 * minute], duplicateShare: 0.05 },
  health: { kind: 'none' },
  isOrdered: false,
  isShared: false,
  revalidateMs: day,
  variables: VARIABLES,
  webhook: {
    handle_verification:
      'body.event = "endpoint.url_validation" ? {"type": "verify", "verification_response": {"status_code": 200, "body": {"plainToken": body.payload.plainToken, "encryptedToken": $hmac(body.payload.plainToken, env.WEBHOOK_SECRET)}}} : {"type": "payload"}',
    signature_verification: hmacConfig('{{environment_variables.WEBHOOK_SECRET}}', 'x-zm-signature', 'hex', {
      signature_prefix: 'v0=',
      parts: ['v0', '$header.x-zm-request-timestamp', '$body'],
      separator: ':',
    }),
    dedupe: { keys: ['$payload.delivery'] },
    events: ITEMS,
  },
  handshake: {
    request: (subscription, plainToken) =>
      zoomRequest(subscription, JSON.stringify({ event: 'endpoint.url_validation', payload: { plainToken } })),
    isProven: ({ status, body }, token, secret) =>
      status === 200 && body === JSON.stringify({ plainToken: token, encryptedToken: hmac(secret, token) }),
  },
  request: (subscription, delivery) => zoomRequest(subscription, payload(delivery)),
})

function zoomRequest({ address, secret }: DoubleSubscription, body: string) {
  const at = seconds()
  const headers = { 'x-zm-request-timestamp': at, 'x-zm-signature': `v0=${hmac(secret, `v0:${at}:${body}`)}` }
  return { method: 'POST', url: address, headers: { ...JSON_HEADERS, ...headers }, body } as const
}

/** A challenge (CRC) by GET, again every hour; a failure disables the subscription. */
export const x: MakeProfile = ({ minute, hour }) => ({
  name: 'x',
  policy: { deadlineMs: 3_000, retryGapsMs: [minute, 3 * minute, 10 * minute], duplicateShare: 0.05 },
  health: { kind: 'none' },
  isOrdered: false,
  isShared: false,
  revalidateMs: hour,
  variables: VARIABLES,
  webhook: {
    handle_verification:
      '$exists(query.crc_token) ? {"type": "verify", "verification_response": {"status_code": 200, "body": {"response_token": "sha256=" & $hmac(query.crc_token, env.WEBHOOK_SECRET, "sha256", "base64")}}} : {"type": "payload"}',
    signature_verification: hmacConfig(
      '{{environment_variables.WEBHOOK_SECRET}}',
      'x-twitter-webhooks-signature',
      'base64',
      {
        signature_prefix: 'sha256=',
      },
    ),
    dedupe: { keys: ['$payload.delivery'] },
    events: ITEMS,
  },
  handshake: {
    request: ({ address }, token) => ({
      method: 'GET',
      url: `${address}?crc_token=${encodeURIComponent(token)}`,
      headers: {},
      body: '',
    }),
    isProven: ({ status, body }, token, secret) =>
      status === 200 && body === JSON.stringify({ response_token: `sha256=${hmac(secret, token, 'base64')}` }),
  },
  request: ({ address, secret }, delivery) => {
    const body = payload(delivery)
    const signature = `sha256=${hmac(secret, body, 'base64')}`
    return {
      method: 'POST',
      url: address,
      headers: { ...JSON_HEADERS, 'x-twitter-webhooks-signature': signature },
      body,
    }
  },
})

/** One address for all accounts; one body has changes of three of them; no delivery id. */
const meta: MakeProfile = ({ minute }) => ({
  name: 'meta',
  policy: {
    deadlineMs: 5_000,
    retryGapsMs: [1, 2, 4, 8, 16, 32].map((minutes) => minutes * minute),
    duplicateShare: 0.05,
  },
  health: { kind: 'none' },
  isOrdered: false,
  isShared: true,
  variables: VARIABLES,
  webhook: {
    handle_verification:
      'query."hub.mode" = "subscribe" ? {"type": "verify", "verification_response": {"status_code": 200, "headers": {"content-type": "text/plain"}, "body": query."hub.challenge"}} : {"type": "payload"}',
    signature_verification: hmacConfig('{{environment_variables.WEBHOOK_SECRET}}', 'x-hub-signature-256', 'hex', {
      signature_prefix: 'sha256=',
    }),
    events: 'body.items.{"event": "created", "resource": "items", "id": id, "data": $, "account": account}',
    context_lookup: { value: 'body.items[0].account', field: 'page_id' },
  },
  handshake: {
    request: ({ address }, token) => ({
      method: 'GET',
      url: `${address}?hub.mode=subscribe&hub.challenge=${encodeURIComponent(token)}`,
      headers: {},
      body: '',
    }),
    isProven: ({ status, body }, token) => status === 200 && body === token,
  },
  request: ({ address, secret }, { items }) => {
    // Without a delivery id: duplicates are told by their bytes.
    const body = JSON.stringify({ object: 'page', items })
    return {
      method: 'POST',
      url: address,
      headers: { ...JSON_HEADERS, 'x-hub-signature-256': `sha256=${hmac(secret, body)}` },
      body,
    }
  },
})

/** Every profile. */
export const PROFILES: readonly MakeProfile[] = [slack, shopify, graph, asana, zoom, x, meta]

export { APPLICATION_SECRET }
