import type { FormatChoice } from '../../../src/engine/formats/format.ts'
import { createKeySource } from '../../../src/engine/formats/index.ts'
import { compileSignature, signatureSchema } from '../../../src/engine/formats/signature/registry.ts'
import type { VerificationResult } from '../../../src/engine/formats/signature/verification.ts'
import { MORE_PROVIDER_ROWS } from '../../unit/engine/formats/rows/signature-more-providers.ts'
import { PROVIDER_ROWS } from '../../unit/engine/formats/rows/signature-providers.ts'

/** One provider whose own library signs, or judges what is signed here. The adapter of the same name is in `libraries.mjs`. */
export interface SigningCase {
  /** Package, as in `package.json` of this folder. */
  readonly library: string
  readonly choice: FormatChoice
  /** How keys look: a text, base64 after `whsec_`, hexadecimal, or a key pair. Default: text. */
  readonly key?: 'text' | 'whsec' | 'hex' | 'ed25519' | 'p256'
  /** Bodies that the library takes, sent at this time. Default: `BODIES`. */
  readonly bodies?: (now: Date) => readonly string[]
  /** The library takes bytes that are no UTF-8. */
  readonly takesBytes?: boolean
  /** Seconds that the clocks may differ; absent where nothing says when a delivery was sent. */
  readonly toleranceSeconds?: number
  /** Fields of the body that are signed, where the body as a whole is not. */
  readonly signedFields?: readonly string[]
}

/** A delivery as a library signed it. */
export interface SignedDelivery {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

export const BODIES: readonly string[] = [
  '{"id":"evt_1","type":"contact.created"}',
  '{"note":"hä — 日本 🙂","e":"e\u0301"}',
  '{\r\n  "id": 1\r\n}\n',
  '[]',
  'plain text, no JSON',
  `{"long":"${'x'.repeat(64 * 1024)}"}`,
]
const JSON_BODIES = BODIES.filter((body) => body.startsWith('{'))

export const SIGNED_URL = 'https://hooks.example.com/integrated-account-webhook/0195f1c2?tenant=7'

function row(provider: string): FormatChoice {
  const found = PROVIDER_ROWS[provider] ?? MORE_PROVIDER_ROWS[provider]
  if (found === undefined) throw new Error(`no provider ${provider}`)
  return { format: found.format, config: found.config }
}

/** An HMAC with SHA-256 over the body, in one header. */
function overBody(header: string, settings: Readonly<Record<string, string>> = {}): FormatChoice {
  return {
    format: 'hmac',
    config: { secret: '{{env.WEBHOOK_SECRET}}', parts: ['$body'], compare_with: `$header.${header}`, ...settings },
  }
}

/** `t=<milliseconds>,v1=<signature>` over time and body. */
function timedInMilliseconds(header: string, stringType: string): FormatChoice {
  return {
    format: 'hmac',
    config: {
      secret: '{{env.WEBHOOK_SECRET}}',
      parts: [`$header.${header}[t]`, '.', '$body'],
      compare_with: `$header.${header}[v1]`,
      string_type: stringType,
      timestamp: { value: `$header.${header}[t]`, unit: 'milliseconds' },
    },
  }
}

const ADYEN_BODY = JSON.stringify({
  live: 'false',
  notificationItems: [
    {
      NotificationRequestItem: {
        amount: { currency: 'EUR', value: 1130 },
        eventCode: 'AUTHORISATION',
        merchantAccountCode: 'TestMerchant',
        merchantReference: 'TestPayment-1407325143704',
        pspReference: '7914073381342284',
        success: 'true',
      },
    },
  ],
})

const linearBody = (now: Date) => JSON.stringify({ action: 'create', type: 'Issue', webhookTimestamp: now.getTime() })

/** By provider; the order is that of the report. */
export const SIGNING_CASES: Readonly<Record<string, SigningCase>> = {
  Stripe: { library: 'stripe', choice: row('Stripe'), toleranceSeconds: 300 },
  GitHub: { library: '@octokit/webhooks-methods', choice: row('GitHub') },
  'Standard Webhooks': {
    library: 'standardwebhooks',
    choice: row('OpenAI'),
    key: 'whsec',
    toleranceSeconds: 300,
  },
  Svix: {
    library: 'svix',
    choice: row('Clerk, Resend and others through Svix'),
    key: 'whsec',
    toleranceSeconds: 300,
  },
  'HubSpot v1': { library: '@hubspot/api-client', choice: row('HubSpot v1') },
  'HubSpot v2': { library: '@hubspot/api-client', choice: row('HubSpot v2') },
  'HubSpot v3': { library: '@hubspot/api-client', choice: row('HubSpot v3'), toleranceSeconds: 300 },
  'Twilio, forms': {
    library: 'twilio',
    choice: row('Twilio, forms'),
    bodies: () => ['Body=hello+you&From=%2B14158675309&To=%2B18005551212', 'b=2&a=1&Name=h%C3%A4', 'SmsSid=1'],
  },
  Adyen: {
    library: '@adyen/api-library',
    choice: row('Adyen'),
    key: 'hex',
    bodies: () => [
      ADYEN_BODY,
      ADYEN_BODY.replace('"pspReference"', '"originalReference":"9913140798220028","pspReference"'),
    ],
    signedFields: ['7914073381342284', 'TestMerchant', 'TestPayment-1407325143704', '1130', 'EUR', 'AUTHORISATION'],
  },
  Sanity: {
    library: '@sanity/webhook',
    choice: timedInMilliseconds('sanity-webhook-signature', 'base64url'),
    toleranceSeconds: 300,
  },
  Notion: { library: '@notionhq/client', choice: row('Notion') },
  WorkOS: {
    library: '@workos-inc/node',
    choice: timedInMilliseconds('workos-signature', 'hex'),
    toleranceSeconds: 300,
  },
  Slack: { library: '@slack/bolt', choice: row('Slack'), toleranceSeconds: 300 },
  Shopify: { library: '@shopify/shopify-api', choice: row('Shopify') },
  Square: { library: 'square', choice: row('Square') },
  Discord: {
    library: 'discord-interactions',
    choice: row('Discord'),
    key: 'ed25519',
    takesBytes: true,
    toleranceSeconds: 300,
  },
  SendGrid: {
    library: '@sendgrid/eventwebhook',
    choice: row('SendGrid'),
    key: 'p256',
    toleranceSeconds: 300,
  },
  LINE: {
    library: '@line/bot-sdk',
    choice: overBody('x-line-signature', { string_type: 'base64' }),
    takesBytes: true,
  },
  // The library allows 5 seconds; the definition is the receiver's choice.
  Paddle: { library: '@paddle/paddle-node-sdk', choice: row('Paddle'), toleranceSeconds: 300 },
  OpenAI: { library: 'openai', choice: row('OpenAI'), key: 'whsec', toleranceSeconds: 300 },
  Linear: { library: '@linear/sdk', choice: row('Linear'), bodies: (now) => [linearBody(now)], toleranceSeconds: 60 },
  GoCardless: { library: 'gocardless-nodejs', choice: overBody('webhook-signature') },
  Pusher: { library: 'pusher', choice: overBody('x-pusher-signature'), bodies: () => JSON_BODIES },
  Box: { library: 'box-node-sdk', choice: row('Box'), bodies: () => [BODIES[0] ?? ''], toleranceSeconds: 600 },
  Razorpay: { library: 'razorpay', choice: overBody('x-razorpay-signature') },
  EasyPost: {
    library: '@easypost/api',
    choice: overBody('x-hmac-signature', { signature_prefix: 'hmac-sha256-hex=' }),
    bodies: () => JSON_BODIES,
  },
}

/** Judges a delivery with the definition of a case. @param key the secret, or the public key */
export function verifyDelivery(
  { choice }: SigningCase,
  { method, url, headers, body }: SignedDelivery,
  key: string,
  now: Date,
): Promise<VerificationResult> {
  const environmentVariables = { WEBHOOK_SECRET: key, DISCORD_PUBLIC_KEY: key, SENDGRID_PUBLIC_KEY: key }
  const query = Object.fromEntries(new URL(url).searchParams)
  const keys = createKeySource({ now: () => now, fetchKey: async () => ({ status: 404, body: Buffer.alloc(0) }) })
  return compileSignature(signatureSchema.parse(choice))(
    { method, url, headers, query, body, payload: parse(body) },
    { account: { context: {}, credentials: {}, environmentVariables }, call: {} },
    { now: () => now, keys },
  )
}

function parse(body: Uint8Array) {
  try {
    return JSON.parse(Buffer.from(body).toString())
  } catch {
    return null
  }
}
