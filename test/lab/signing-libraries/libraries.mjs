/**
 * Adapters of the providers' own libraries, one shape for all.
 *
 * `sign` makes the headers of a genuine delivery; by the library, or, where the library can only verify, by the lines here,
 * and `accepts` then says what the library thinks of it. Loaded by `npm run faults signatures` alone, which installs them.
 */

import { createHmac, sign as signWithKey } from 'node:crypto'
import { createRequire } from 'node:module'
import { sign as signGitHub } from '@octokit/webhooks-methods'
import { encodeSignatureHeader } from '@sanity/webhook'

const require = createRequire(import.meta.url)

const stripe = new (require('stripe'))('sk_test_x')
const { Webhook: StandardWebhook } = require('standardwebhooks')
const { Webhook: SvixWebhook } = require('svix')
const { Signature } = require('@hubspot/api-client')
const twilio = require('twilio/lib/webhooks/webhooks')
const { verifySlackRequest } = require('@slack/bolt/dist/receivers/verify-request')
const { WebhooksHelper } = require('square')
const { verifyKey } = require('discord-interactions')
const { EventWebhook } = require('@sendgrid/eventwebhook')
const { validateSignature } = require('@line/bot-sdk')
const { Paddle } = require('@paddle/paddle-node-sdk')
const OpenAI = require('openai')
const { LinearWebhookClient } = require('@linear/sdk/webhooks')
const { hmacValidator: HmacValidator } = require('@adyen/api-library')
const { WorkOS } = require('@workos-inc/node')
const { signWebhookPayload } = require('@notionhq/client')
const goCardless = require('gocardless-nodejs/webhooks')
const Pusher = require('pusher')
const { WebhooksManager } = require('box-node-sdk/lib/managers/webhooks')
const Razorpay = require('razorpay')
const EasyPost = require('@easypost/api')
require('@shopify/shopify-api/adapters/node')
const { shopifyApi, ApiVersion } = require('@shopify/shopify-api')

const hmac = (algorithm, secret, encoding, ...pieces) => {
  const digest = createHmac(algorithm, secret)
  for (const piece of pieces) digest.update(piece)
  return digest.digest(encoding)
}
const seconds = (now) => String(Math.floor(now.getTime() / 1000))
const milliseconds = (now) => String(now.getTime())
const text = (body) => Buffer.from(body).toString()
/** Libraries report an invalid delivery by false or by an error. */
const agrees = async (check) => {
  try {
    return (await check()) !== false
  } catch {
    return false
  }
}

const shopifyOf = (secret) =>
  shopifyApi({
    apiKey: 'key',
    apiSecretKey: secret,
    scopes: ['read_products'],
    hostName: 'hooks.example.com',
    apiVersion: Object.values(ApiVersion).at(-1),
    isEmbeddedApp: false,
    logger: { level: 0, log: () => {} },
  })

/**
 * By name of the case in `cases.ts`: `sign({secret, privateKey, body, url, method, now})` → headers,
 * `accepts({secret, publicKey, body, url, method, headers})` → boolean.
 */
export const LIBRARIES = {
  Stripe: {
    sign: ({ secret, body, now }) => ({
      'stripe-signature': stripe.webhooks.generateTestHeaderString({
        payload: text(body),
        secret,
        timestamp: Number(seconds(now)),
      }),
    }),
    accepts: ({ secret, body, headers }) =>
      agrees(() => stripe.webhooks.signature.verifyHeader(body, headers['stripe-signature'], secret, 300)),
  },
  GitHub: { sign: async ({ secret, body }) => ({ 'x-hub-signature-256': await signGitHub(secret, text(body)) }) },
  'Standard Webhooks': {
    sign: ({ secret, body, now }) => ({
      'webhook-id': 'msg_1',
      'webhook-timestamp': seconds(now),
      'webhook-signature': new StandardWebhook(secret).sign('msg_1', now, text(body)),
    }),
  },
  Svix: {
    sign: ({ secret, body, now }) => ({
      'svix-id': 'msg_1',
      'svix-timestamp': seconds(now),
      'svix-signature': new SvixWebhook(secret).sign('msg_1', now, text(body)),
    }),
  },
  'HubSpot v1': {
    sign: ({ secret, body, method }) => ({
      'x-hubspot-signature': Signature.getSignature(method, 'v1', { clientSecret: secret, requestBody: text(body) }),
    }),
  },
  'HubSpot v2': {
    sign: ({ secret, body, method, url }) => ({
      'x-hubspot-signature': Signature.getSignature(method, 'v2', {
        clientSecret: secret,
        requestBody: text(body),
        url,
      }),
    }),
  },
  'HubSpot v3': {
    sign: ({ secret, body, method, url, now }) => ({
      'x-hubspot-request-timestamp': milliseconds(now),
      'x-hubspot-signature-v3': Signature.getSignature(method, 'v3', {
        clientSecret: secret,
        requestBody: text(body),
        url,
        timestamp: now.getTime(),
      }),
    }),
  },
  'Twilio, forms': {
    sign: ({ secret, body, url }) => ({
      'x-twilio-signature': twilio.getExpectedTwilioSignature(
        secret,
        url,
        Object.fromEntries(new URLSearchParams(text(body))),
      ),
    }),
  },
  Adyen: {
    /** Adyen signs the item of the body, not the body. */
    signBody: ({ secret, body }) => {
      const payload = JSON.parse(text(body))
      for (const { NotificationRequestItem: item } of payload.notificationItems)
        item.additionalData = { hmacSignature: new HmacValidator().calculateHmac(item, secret) }
      return JSON.stringify(payload)
    },
    sign: () => ({}),
  },
  Sanity: {
    sign: async ({ secret, body, now }) => ({
      'sanity-webhook-signature': await encodeSignatureHeader(text(body), now.getTime(), secret),
    }),
  },
  Notion: {
    sign: async ({ secret, body }) => ({
      'x-notion-signature': await signWebhookPayload({ body, verificationToken: secret }),
    }),
  },
  WorkOS: {
    sign: async ({ secret, body, now }) => ({
      'workos-signature': `t=${milliseconds(now)}, v1=${await new WorkOS('sk_x').webhooks.computeSignature(milliseconds(now), text(body), secret)}`,
    }),
  },
  Slack: {
    sign: ({ secret, body, now }) => ({
      'x-slack-request-timestamp': seconds(now),
      'x-slack-signature': `v0=${hmac('sha256', secret, 'hex', `v0:${seconds(now)}:`, body)}`,
    }),
    accepts: ({ secret, body, headers }) =>
      agrees(() =>
        verifySlackRequest({
          signingSecret: secret,
          body: text(body),
          headers: {
            'x-slack-signature': headers['x-slack-signature'],
            'x-slack-request-timestamp': Number(headers['x-slack-request-timestamp']),
          },
        }),
      ),
  },
  Shopify: {
    sign: ({ secret, body }) => ({ 'x-shopify-hmac-sha256': hmac('sha256', secret, 'base64', body) }),
    accepts: async ({ secret, body, headers }) => {
      const rawRequest = {
        method: 'POST',
        url: '/',
        headers: {
          ...headers,
          'x-shopify-topic': 'orders/create',
          'x-shopify-api-version': '2025-01',
          'x-shopify-shop-domain': 'shop.myshopify.com',
          'x-shopify-webhook-id': 'w1',
        },
      }
      const { valid } = await shopifyOf(secret).webhooks.validate({ rawBody: text(body), rawRequest, rawResponse: {} })
      return valid
    },
  },
  Square: {
    sign: ({ secret, body, url }) => ({
      'x-square-hmacsha256-signature': hmac('sha256', secret, 'base64', url, body),
    }),
    accepts: ({ secret, body, url, headers }) =>
      agrees(() =>
        WebhooksHelper.verifySignature({
          requestBody: text(body),
          signatureHeader: headers['x-square-hmacsha256-signature'],
          signatureKey: secret,
          notificationUrl: url,
        }),
      ),
  },
  Discord: {
    sign: ({ privateKey, body, now }) => ({
      'x-signature-timestamp': seconds(now),
      'x-signature-ed25519': signWithKey(
        null,
        Buffer.concat([Buffer.from(seconds(now)), Buffer.from(body)]),
        privateKey,
      ).toString('hex'),
    }),
    accepts: ({ publicKey, body, headers }) =>
      agrees(() =>
        verifyKey(Buffer.from(body), headers['x-signature-ed25519'], headers['x-signature-timestamp'], publicKey),
      ),
  },
  SendGrid: {
    sign: ({ privateKey, body, now }) => ({
      'x-twilio-email-event-webhook-timestamp': seconds(now),
      'x-twilio-email-event-webhook-signature': signWithKey(
        'sha256',
        Buffer.concat([Buffer.from(seconds(now)), Buffer.from(body)]),
        privateKey,
      ).toString('base64'),
    }),
    accepts: ({ publicKey, body, headers }) =>
      agrees(() => {
        const webhook = new EventWebhook()
        return webhook.verifySignature(
          webhook.convertPublicKeyToECDSA(publicKey),
          Buffer.from(body),
          headers['x-twilio-email-event-webhook-signature'],
          headers['x-twilio-email-event-webhook-timestamp'],
        )
      }),
  },
  LINE: {
    sign: ({ secret, body }) => ({ 'x-line-signature': hmac('sha256', secret, 'base64', body) }),
    accepts: ({ secret, body, headers }) =>
      agrees(() => validateSignature(Buffer.from(body), secret, headers['x-line-signature'])),
  },
  Paddle: {
    sign: ({ secret, body, now }) => ({
      'paddle-signature': `ts=${seconds(now)};h1=${hmac('sha256', secret, 'hex', `${seconds(now)}:`, body)}`,
    }),
    accepts: ({ secret, body, headers }) =>
      agrees(() => new Paddle('key').webhooks.isSignatureValid(text(body), secret, headers['paddle-signature'])),
  },
  OpenAI: {
    sign: ({ secret, body, now }) => ({
      'webhook-id': 'msg_1',
      'webhook-timestamp': seconds(now),
      'webhook-signature': new StandardWebhook(secret).sign('msg_1', now, text(body)),
    }),
    accepts: ({ secret, body, headers }) =>
      agrees(async () => {
        const client = new (OpenAI.default ?? OpenAI)({ apiKey: 'x', webhookSecret: secret })
        await client.webhooks.verifySignature(text(body), headers, secret)
      }),
  },
  Linear: {
    sign: ({ secret, body }) => ({ 'linear-signature': hmac('sha256', secret, 'hex', body) }),
    accepts: ({ secret, body, headers }) =>
      agrees(() =>
        new LinearWebhookClient(secret).verify(
          Buffer.from(body),
          headers['linear-signature'],
          JSON.parse(text(body)).webhookTimestamp,
        ),
      ),
  },
  GoCardless: {
    sign: ({ secret, body }) => ({ 'webhook-signature': hmac('sha256', secret, 'hex', body) }),
    accepts: ({ secret, body, headers }) =>
      agrees(() => goCardless.verifySignature(text(body), secret, headers['webhook-signature'])),
  },
  Pusher: {
    sign: ({ secret, body }) => ({
      'content-type': 'application/json',
      'x-pusher-key': 'key',
      'x-pusher-signature': hmac('sha256', secret, 'hex', body),
    }),
    accepts: ({ secret, body, headers }) =>
      agrees(() =>
        new Pusher({ appId: '1', key: 'key', secret, host: '127.0.0.1' })
          .webhook({ headers, rawBody: text(body) })
          .isValid(),
      ),
  },
  Box: {
    sign: ({ secret, body, now }) => {
      const time = now.toISOString()
      return {
        'box-delivery-timestamp': time,
        'box-signature-primary': hmac('sha256', secret, 'base64', body, time),
        'box-signature-version': '1',
        'box-signature-algorithm': 'HmacSHA256',
      }
    },
    accepts: ({ secret, body, headers }) =>
      agrees(() => WebhooksManager.validateMessage(text(body), headers, secret, {})),
  },
  Razorpay: {
    sign: ({ secret, body }) => ({ 'x-razorpay-signature': hmac('sha256', secret, 'hex', body) }),
    accepts: ({ secret, body, headers }) =>
      agrees(() => Razorpay.validateWebhookSignature(text(body), headers['x-razorpay-signature'], secret)),
  },
  EasyPost: {
    sign: ({ secret, body }) => ({ 'x-hmac-signature': `hmac-sha256-hex=${hmac('sha256', secret, 'hex', body)}` }),
    accepts: ({ secret, body, headers }) =>
      agrees(() => {
        const client = new (EasyPost.default ?? EasyPost)('key')
        client.Utils.validateWebhook(Buffer.from(body), headers, secret)
      }),
  },
}
