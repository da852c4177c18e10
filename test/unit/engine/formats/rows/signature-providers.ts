import { createHash, createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { SignJWT } from 'jose'
import type { JsonObject } from '../../../../../src/foundation/json/index.ts'
import { CERTIFICATE, CERTIFIED } from './certificate.ts'
import { MILLISECONDS, NOW, SECONDS, type SignatureRow } from './delivery.ts'

/** How a sender signs, with a delivery as it makes them. The page `engine/reference/webhook-signatures.md` shows these configs. */
export interface ProviderRow extends Omit<SignatureRow, 'promise' | 'config'> {
  readonly format: string
  readonly config: JsonObject
}

const SECRET = 'correct horse battery staple'
const BODY = '{"id":"evt_1","note":"hä"}'
const URL = 'https://hooks.example.com/integrated-account-webhook/1?a=b%20c&d=%40e'
const env = { WEBHOOK_SECRET: SECRET }
const secret = '{{env.WEBHOOK_SECRET}}'

function hmac(algorithm: string, content: string, encoding: 'hex' | 'base64', key: string | Buffer = SECRET): string {
  return createHmac(algorithm, key).update(content).digest(encoding)
}

const ed25519 = generateKeyPairSync('ed25519')
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const BODY_SHA256 = createHash('sha256').update(BODY).digest()
const JWKS_URL = 'https://www.googleapis.com/oauth2/v3/certs'

const keySet = (key: typeof rsa.publicKey, kid: string) =>
  JSON.stringify({ keys: [{ ...key.export({ format: 'jwk' }), kid }] })

/** The bytes of a public key without the frame around them, as Discord shows them. */
const bareKey = (key: typeof ed25519.publicKey) =>
  Buffer.from(key.export({ format: 'jwk' }).x ?? '', 'base64url').toString('hex')

const issuedAt = Number(SECONDS)

const pubSubToken = await new SignJWT({ email: 'push@project.iam.gserviceaccount.com', email_verified: true })
  .setProtectedHeader({ alg: 'RS256', kid: 'g1' })
  .setIssuer('https://accounts.google.com')
  .setAudience('https://hooks.example.com')
  .setIssuedAt(issuedAt)
  .setExpirationTime(issuedAt + 3600)
  .sign(rsa.privateKey)

const plaidToken = await new SignJWT({ request_body_sha256: BODY_SHA256.toString('hex') })
  .setProtectedHeader({ alg: 'ES256', kid: 'p1' })
  .setIssuedAt(issuedAt)
  .sign(p256.privateKey)

const fusionToken = await new SignJWT({ request_body_sha256: BODY_SHA256.toString('base64') })
  .setProtectedHeader({ alg: 'RS256', kid: 'f1' })
  .sign(rsa.privateKey)

const connectToken = await new SignJWT({ qsh: '0' })
  .setProtectedHeader({ alg: 'HS256' })
  .setIssuer('client-key')
  .setIssuedAt(issuedAt)
  .setExpirationTime(issuedAt + 180)
  .sign(Buffer.from(SECRET))

const TWILIO_FORM = 'To=%2B18005551212&CallSid=CA1234567890ABCDE&Caller=%2B14158675309&Digits=1234&From=%2B14158675309'

const SLACK_BODY =
  'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c'

/** The sample of SendGrid's own libraries. */
const SENDGRID_BODY = `${JSON.stringify([
  {
    email: 'hello@world.com',
    event: 'dropped',
    reason: 'Bounced Address',
    sg_event_id: 'ZHJvcC0xMDk5NDkxOS1MUnpYbF9OSFN0T0doUTRrb2ZTbV9BLTA',
    sg_message_id: 'LRzXl_NHStOGhQ4kofSm_A.filterdrecv-p3mdw1-756b745b58-kmzbl-18-5F5FC76C-9.0',
    'smtp-id': '<LRzXl_NHStOGhQ4kofSm_A@ismtpd0039p1iad1.sendgrid.net>',
    timestamp: 1600112492,
  },
])}\r\n`

export const PROVIDER_ROWS: Readonly<Record<string, ProviderRow>> = {
  Stripe: {
    format: 'hmac',
    config: {
      secret,
      parts: ['$header.stripe-signature[t]', '.', '$body'],
      compare_with: '$header.stripe-signature[v1]',
      timestamp: { value: '$header.stripe-signature[t]' },
    },
    env,
    headers: { 'stripe-signature': `t=${SECONDS},v1=${hmac('sha256', `${SECONDS}.${BODY}`, 'hex')}` },
    body: BODY,
    window: 300,
  },
  GitHub: {
    // The example of GitHub's documentation.
    format: 'hmac',
    config: {
      secret,
      parts: ['$body'],
      compare_with: '$header.x-hub-signature-256',
      signature_prefix: 'sha256=',
    },
    env: { WEBHOOK_SECRET: "It's a Secret to Everybody" },
    headers: {
      'x-hub-signature-256': 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
    },
    body: 'Hello, World!',
  },
  Slack: {
    // The example of Slack's documentation.
    format: 'hmac',
    config: {
      secret,
      parts: ['v0', '$header.x-slack-request-timestamp', '$body'],
      separator: ':',
      compare_with: '$header.x-slack-signature',
      signature_prefix: 'v0=',
      timestamp: { value: '$header.x-slack-request-timestamp' },
    },
    env: { WEBHOOK_SECRET: '8f742231b10e8888abcd99yyyzzz85a5' },
    headers: {
      'x-slack-request-timestamp': '1531420618',
      'x-slack-signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
    },
    body: SLACK_BODY,
    now: '2018-07-12T18:36:58Z',
    window: 300,
  },
  Zoom: {
    format: 'hmac',
    config: {
      secret,
      parts: ['v0', '$header.x-zm-request-timestamp', '$body'],
      separator: ':',
      compare_with: '$header.x-zm-signature',
      signature_prefix: 'v0=',
      timestamp: { value: '$header.x-zm-request-timestamp' },
    },
    env,
    headers: {
      'x-zm-request-timestamp': SECONDS,
      'x-zm-signature': `v0=${hmac('sha256', `v0:${SECONDS}:${BODY}`, 'hex')}`,
    },
    body: BODY,
    window: 300,
  },
  'HubSpot v3': {
    format: 'hmac',
    config: {
      secret,
      parts: ['$method', '$url.decoded', '$body', '$header.x-hubspot-request-timestamp'],
      compare_with: '$header.x-hubspot-signature-v3',
      string_type: 'base64',
      timestamp: { value: '$header.x-hubspot-request-timestamp', unit: 'milliseconds' },
    },
    env,
    method: 'POST',
    url: URL,
    headers: {
      'x-hubspot-request-timestamp': MILLISECONDS,
      'x-hubspot-signature-v3': hmac('sha256', `POST${URL.replace('%40', '@')}${BODY}${MILLISECONDS}`, 'base64'),
    },
    body: BODY,
    proves: ['method', 'url', 'body'],
    window: 300,
  },
  'HubSpot v2': {
    // The example of HubSpot's documentation.
    format: 'hash',
    config: { parts: [secret, '$method', '$url', '$body'], compare_with: '$header.x-hubspot-signature' },
    env: { WEBHOOK_SECRET: 'yyyyyyyy-yyyy-yyyy-yyyy-yyyyyyyyyyyy' },
    method: 'POST',
    url: 'https://www.example.com/webhook_uri',
    headers: { 'x-hubspot-signature': '9569219f8ba981ffa6f6f16aa0f48637d35d728c7e4d93d0d52efaa512af7900' },
    body: '{"example_field":"example_value"}',
    proves: ['method', 'url', 'body'],
  },
  'Twilio, forms': {
    // The example of Twilio's documentation.
    format: 'hmac',
    config: {
      secret,
      algorithm: 'sha1',
      parts: ['$url', '$form.sorted'],
      compare_with: '$header.x-twilio-signature',
      string_type: 'base64',
    },
    env: { WEBHOOK_SECRET: '12345' },
    url: 'https://mycompany.com/myapp.php?foo=1&bar=2',
    headers: { 'x-twilio-signature': 'RSOYDt4T1cUTdK1PDd93/VVr8B8=' },
    body: TWILIO_FORM,
    proves: ['url', 'body'],
  },
  'Twilio, JSON': {
    format: 'all_of',
    config: {
      verifications: [
        {
          format: 'hmac',
          config: {
            secret,
            algorithm: 'sha1',
            parts: ['$url'],
            compare_with: '$header.x-twilio-signature',
            string_type: 'base64',
          },
        },
        { format: 'hash', config: { parts: ['$body'], compare_with: '$query.bodySHA256' } },
      ],
    },
    env,
    url: `https://hooks.example.com/x?bodySHA256=${BODY_SHA256.toString('hex')}`,
    query: { bodySHA256: BODY_SHA256.toString('hex') },
    headers: {
      'x-twilio-signature': hmac(
        'sha1',
        `https://hooks.example.com/x?bodySHA256=${BODY_SHA256.toString('hex')}`,
        'base64',
      ),
    },
    body: BODY,
    proves: ['url', 'query', 'body'],
  },
  Shopify: {
    format: 'hmac',
    config: { secret, parts: ['$body'], compare_with: '$header.x-shopify-hmac-sha256', string_type: 'base64' },
    env,
    headers: { 'x-shopify-hmac-sha256': hmac('sha256', BODY, 'base64') },
    body: BODY,
  },
  Calendly: {
    format: 'hmac',
    config: {
      secret,
      parts: ['$header.calendly-webhook-signature[t]', '.', '$body'],
      compare_with: '$header.calendly-webhook-signature[v1]',
      timestamp: { value: '$header.calendly-webhook-signature[t]', tolerance_seconds: 180 },
    },
    env,
    headers: { 'calendly-webhook-signature': `t=${SECONDS},v1=${hmac('sha256', `${SECONDS}.${BODY}`, 'hex')}` },
    body: BODY,
    window: 180,
  },
  Paddle: {
    format: 'hmac',
    config: {
      secret,
      parts: ['$header.paddle-signature[ts]', ':', '$body'],
      compare_with: '$header.paddle-signature[h1]',
      timestamp: { value: '$header.paddle-signature[ts]' },
    },
    env,
    headers: { 'paddle-signature': `ts=${SECONDS};h1=${hmac('sha256', `${SECONDS}:${BODY}`, 'hex')}` },
    body: BODY,
    window: 300,
  },
  Xero: {
    format: 'hmac',
    config: { secret, parts: ['$body'], compare_with: '$header.x-xero-signature', string_type: 'base64' },
    env,
    headers: { 'x-xero-signature': hmac('sha256', BODY, 'base64') },
    body: BODY,
  },
  Square: {
    format: 'hmac',
    config: {
      secret,
      parts: ['$url', '$body'],
      compare_with: '$header.x-square-hmacsha256-signature',
      string_type: 'base64',
    },
    env,
    url: URL,
    headers: { 'x-square-hmacsha256-signature': hmac('sha256', URL + BODY, 'base64') },
    body: BODY,
    proves: ['url', 'body'],
  },
  Zendesk: {
    format: 'hmac',
    config: {
      secret,
      parts: ['$header.x-zendesk-webhook-signature-timestamp', '$body'],
      compare_with: '$header.x-zendesk-webhook-signature',
      string_type: 'base64',
      timestamp: { value: '$header.x-zendesk-webhook-signature-timestamp', unit: 'iso' },
    },
    env,
    headers: {
      'x-zendesk-webhook-signature-timestamp': NOW,
      'x-zendesk-webhook-signature': hmac('sha256', NOW + BODY, 'base64'),
    },
    body: BODY,
    window: 300,
  },
  Mailgun: {
    format: 'hmac',
    config: {
      secret,
      parts: ['$payload.signature.timestamp', '$payload.signature.token'],
      compare_with: '$payload.signature.signature',
      timestamp: { value: '$payload.signature.timestamp' },
    },
    env,
    payload: {
      signature: { timestamp: SECONDS, token: 'a1b2', signature: hmac('sha256', `${SECONDS}a1b2`, 'hex') },
    },
    proves: ['payload'],
    window: 300,
  },
  Linear: {
    format: 'hmac',
    config: {
      secret,
      parts: ['$body'],
      compare_with: '$header.linear-signature',
      timestamp: { value: '$payload.webhookTimestamp', unit: 'milliseconds', tolerance_seconds: 60 },
    },
    env,
    headers: { 'linear-signature': hmac('sha256', `{"webhookTimestamp":${MILLISECONDS}}`, 'hex') },
    body: `{"webhookTimestamp":${MILLISECONDS}}`,
    window: 60,
  },
  'Jira (Atlassian)': {
    format: 'hmac',
    config: { secret, parts: ['$body'], compare_with: '$header.x-hub-signature', signature_prefix: 'sha256=' },
    env,
    headers: { 'x-hub-signature': `sha256=${hmac('sha256', BODY, 'hex')}` },
    body: BODY,
  },
  'Atlassian Connect': {
    format: 'jwt',
    config: {
      token: '$header.authorization',
      token_prefix: 'JWT ',
      secret: '{{context.shared_secret|env.WEBHOOK_SECRET}}',
      issuer: '{{context.client_key|env.CLIENT_KEY}}',
    },
    env: { WEBHOOK_SECRET: SECRET, CLIENT_KEY: 'client-key' },
    headers: { authorization: `JWT ${connectToken}` },
    body: BODY,
    proves: [],
  },
  Discord: {
    format: 'asymmetric',
    config: {
      algorithm: 'ed25519',
      public_key: '{{env.DISCORD_PUBLIC_KEY}}',
      parts: ['$header.x-signature-timestamp', '$body'],
      compare_with: '$header.x-signature-ed25519',
      string_type: 'hex',
      timestamp: { value: '$header.x-signature-timestamp' },
    },
    env: { DISCORD_PUBLIC_KEY: bareKey(ed25519.publicKey) },
    headers: {
      'x-signature-timestamp': SECONDS,
      'x-signature-ed25519': sign(null, Buffer.from(SECONDS + BODY), ed25519.privateKey).toString('hex'),
    },
    body: BODY,
    window: 300,
  },
  SendGrid: {
    format: 'asymmetric',
    config: {
      algorithm: 'ecdsa-sha256',
      public_key: '{{env.SENDGRID_PUBLIC_KEY}}',
      parts: ['$header.x-twilio-email-event-webhook-timestamp', '$body'],
      compare_with: '$header.x-twilio-email-event-webhook-signature',
      timestamp: { value: '$header.x-twilio-email-event-webhook-timestamp' },
    },
    env: {
      SENDGRID_PUBLIC_KEY:
        'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eNEc6wEA3F+g==',
    },
    headers: {
      'x-twilio-email-event-webhook-timestamp': '1600112502',
      'x-twilio-email-event-webhook-signature':
        'MEUCIGHQVtGj+Y3LkG9fLcxf3qfI10QysgDWmMOVmxG0u6ZUAiEAyBiXDWzM+uOe5W0JuG+luQAbPIqHh89M15TluLtEZtM=',
    },
    body: SENDGRID_BODY,
    now: '2020-09-14T19:41:42Z',
    window: 300,
  },
  PayPal: {
    format: 'asymmetric',
    config: {
      algorithm: 'rsa-sha256',
      certificate_url: '$header.paypal-cert-url',
      certificate_host: 'api.paypal.com',
      certificate_path: '^/v1/notifications/certs/[\\w-]+$',
      parts: [
        '$header.paypal-transmission-id',
        '$header.paypal-transmission-time',
        '{{env.PAYPAL_WEBHOOK_ID}}',
        '$body.crc32',
      ],
      separator: '|',
      compare_with: '$header.paypal-transmission-sig',
      timestamp: { value: '$header.paypal-transmission-time', unit: 'iso' },
    },
    env: { PAYPAL_WEBHOOK_ID: CERTIFIED.webhookId },
    headers: {
      'paypal-transmission-id': CERTIFIED.id,
      'paypal-transmission-time': CERTIFIED.time,
      'paypal-transmission-sig': CERTIFIED.signature,
      'paypal-cert-url': 'https://api.paypal.com/v1/notifications/certs/CERT-1',
    },
    body: CERTIFIED.body,
    now: CERTIFIED.time,
    documents: { 'https://api.paypal.com/v1/notifications/certs/CERT-1': CERTIFICATE },
    window: 300,
  },
  'Clerk, Resend and others through Svix': {
    // The example of Svix' documentation.
    format: 'standard_webhooks',
    config: { secret, header_prefix: 'svix-' },
    env: { WEBHOOK_SECRET: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' },
    headers: {
      'svix-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'svix-timestamp': '1614265330',
      'svix-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    },
    body: '{"test": 2432232314}',
    now: '2021-02-25T15:02:10Z',
    window: 300,
  },
  OpenAI: {
    format: 'standard_webhooks',
    config: { secret },
    env: { WEBHOOK_SECRET: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' },
    headers: {
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    },
    body: '{"test": 2432232314}',
    now: '2021-02-25T15:02:10Z',
    window: 300,
  },
  'Google Pub/Sub': {
    format: 'jwt',
    config: {
      jwks_url: JWKS_URL,
      algorithms: ['RS256'],
      issuer: 'https://accounts.google.com',
      audience: '{{env.PUBSUB_AUDIENCE}}',
      claims: { email: '{{env.PUBSUB_SERVICE_ACCOUNT}}', email_verified: true },
    },
    env: {
      PUBSUB_AUDIENCE: 'https://hooks.example.com',
      PUBSUB_SERVICE_ACCOUNT: 'push@project.iam.gserviceaccount.com',
    },
    headers: { authorization: `Bearer ${pubSubToken}` },
    body: BODY,
    documents: { [JWKS_URL]: keySet(rsa.publicKey, 'g1') },
    proves: [],
  },
  Plaid: {
    format: 'jwt',
    config: {
      token: '$header.plaid-verification',
      public_key: '{{env.PLAID_VERIFICATION_KEY}}',
      algorithms: ['ES256'],
      body_hash_claim: 'request_body_sha256',
      max_age_seconds: 300,
      tolerance_seconds: 0,
    },
    env: { PLAID_VERIFICATION_KEY: JSON.stringify(p256.publicKey.export({ format: 'jwk' })) },
    headers: { 'plaid-verification': plaidToken },
    body: BODY,
  },
  FusionAuth: {
    format: 'jwt',
    config: {
      token: '$header.x-fusionauth-signature-jwt',
      jwks_url: 'https://{{env.FUSIONAUTH_HOST}}/.well-known/jwks.json',
      body_hash_claim: 'request_body_sha256',
      body_hash_type: 'base64',
    },
    env: { FUSIONAUTH_HOST: 'auth.example.com' },
    headers: { 'x-fusionauth-signature-jwt': fusionToken },
    body: BODY,
    documents: { 'https://auth.example.com/.well-known/jwks.json': keySet(rsa.publicKey, 'f1') },
  },
  Okta: {
    format: 'compare',
    config: { secret, compare_with: '$header.authorization' },
    env,
    headers: { authorization: SECRET },
    body: BODY,
    proves: [],
  },
  GitLab: {
    format: 'compare',
    config: { secret, compare_with: '$header.x-gitlab-token' },
    env,
    headers: { 'x-gitlab-token': SECRET },
    body: BODY,
    proves: [],
  },
  Telegram: {
    format: 'compare',
    config: { secret, compare_with: '$header.x-telegram-bot-api-secret-token' },
    env,
    headers: { 'x-telegram-bot-api-secret-token': SECRET },
    body: BODY,
    proves: [],
  },
  Pipedrive: {
    format: 'basic',
    config: { username: '{{env.WEBHOOK_USER}}', password: secret },
    env: { WEBHOOK_USER: 'patchbay', WEBHOOK_SECRET: SECRET },
    headers: { authorization: `Basic ${Buffer.from(`patchbay:${SECRET}`).toString('base64')}` },
    body: BODY,
    proves: [],
  },
}
