import { createHash, createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { SignJWT } from 'jose'
import type { Json, JsonObject } from '../../../../../src/foundation/json/index.ts'
import { SECONDS } from './delivery.ts'
import type { ProviderRow } from './signature-providers.ts'
import {
  SNS_CERTIFICATE,
  SNS_CERTIFICATE_URL,
  SNS_CONFIRMATION,
  SNS_NOTIFICATION,
  SNS_PLAIN_NOTIFICATION,
  SNS_TIME,
} from './sns.ts'

const SECRET = 'correct horse battery staple'
const BODY = '{"id":"evt_1","note":"hä"}'
const ADDRESS = 'https://hooks.example.com/integrated-account-webhook/1?a=b'
const env = { WEBHOOK_SECRET: SECRET }
const secret = '{{env.WEBHOOK_SECRET}}'
const HEX_KEY = '44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056'

function hmac(algorithm: string, content: string, encoding: 'hex' | 'base64', key: string | Buffer = SECRET): string {
  return createHmac(algorithm, key).update(content).digest(encoding)
}

/** An HMAC over the body alone, in one header. */
function overBody(header: string, sent: string, settings: JsonObject = {}, variables: JsonObject = env): ProviderRow {
  return {
    format: 'hmac',
    config: { secret, parts: ['$body'], compare_with: `$header.${header}`, ...settings },
    env: variables,
    headers: { [header]: sent },
    body: BODY,
  }
}

/** A shared secret that is sent as it is: nothing of the body is proved. */
function fixed(compareWith: string, delivery: Partial<ProviderRow>): ProviderRow {
  return { format: 'compare', config: { secret, compare_with: compareWith }, env, body: BODY, proves: [], ...delivery }
}

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const issuedAt = Number(SECONDS)

const mondayToken = await new SignJWT({ userId: 7 })
  .setProtectedHeader({ alg: 'HS256' })
  .setIssuedAt(issuedAt)
  .setExpirationTime(issuedAt + 300)
  .sign(Buffer.from(SECRET))

const MICROSOFT_KEYS = 'https://login.microsoftonline.com/common/discovery/v2.0/keys'
const APP_ID = '8e460676-ae3f-4b1e-8790-ee0fb5d6148f'
const microsoftToken = await new SignJWT({ azp: '0bf30f3b-4a52-48df-9a82-234910c4a086' })
  .setProtectedHeader({ alg: 'RS256', kid: 'm1' })
  .setAudience(APP_ID)
  .setIssuedAt(issuedAt)
  .setExpirationTime(issuedAt + 3600)
  .sign(rsa.privateKey)

/** The item of Adyen's documentation, without an original reference. */
const ADYEN_ITEM = {
  pspReference: '7914073381342284',
  merchantAccountCode: 'TestMerchant',
  merchantReference: 'TestPayment-1407325143704',
  amount: { value: 1130, currency: 'EUR' },
  eventCode: 'AUTHORISATION',
  success: 'true',
}
const ADYEN_SIGNED = '7914073381342284::TestMerchant:TestPayment-1407325143704:1130:EUR:AUTHORISATION:true'
const adyenItem = (signature: string): Json => ({
  NotificationRequestItem: { ...ADYEN_ITEM, additionalData: { hmacSignature: signature } },
})

/** The names and values that Amazon SNS signs, each on a line; the groups are those that only some messages have. */
const SNS_PARTS: Json[] = [
  'Message\n',
  '$payload.Message',
  '\nMessageId\n',
  '$payload.MessageId',
  ['\nSubject\n', '$payload.Subject'],
  ['\nSubscribeURL\n', '$payload.SubscribeURL'],
  '\nTimestamp\n',
  '$payload.Timestamp',
  ['\nToken\n', '$payload.Token'],
  '\nTopicArn\n',
  '$payload.TopicArn',
  '\nType\n',
  '$payload.Type',
  '\n',
]
const snsVersion = (algorithm: string): Json => ({
  format: 'asymmetric',
  config: {
    algorithm,
    certificate_url: '$payload.SigningCertURL',
    certificate_host: 'sns.{{env.AWS_REGION}}.amazonaws.com',
    certificate_path: '^/SimpleNotificationService-[0-9a-f]+\\.pem$',
    parts: SNS_PARTS,
    compare_with: '$payload.Signature',
    timestamp: { value: '$payload.Timestamp', unit: 'iso', tolerance_seconds: 3600 },
  },
})
function sns(message: Readonly<Record<string, string>>): ProviderRow {
  const { SignatureVersion: _unsigned, ...payload } = message
  return {
    format: 'any_of',
    config: { verifications: [snsVersion('rsa-sha256'), snsVersion('rsa-sha1')] },
    env: { AWS_REGION: 'eu-central-1' },
    payload,
    documents: { [SNS_CERTIFICATE_URL]: SNS_CERTIFICATE },
    now: SNS_TIME,
    proves: ['payload'],
    window: 3600,
  }
}

const BOX_TIME = '2025-12-31T16:00:00-08:00'
const TWITCH_TIME = '2026-01-01T00:00:00.123456789Z'
const FORM = 'mandrill_events=%5B%7B%22event%22%3A%22open%22%7D%5D'

export const MORE_PROVIDER_ROWS: Readonly<Record<string, ProviderRow>> = {
  Adyen: {
    format: 'hmac',
    config: {
      secret,
      secret_encoding: 'hex',
      items: 'notificationItems',
      parts: [
        '$item.NotificationRequestItem.pspReference',
        ['$item.NotificationRequestItem.originalReference'],
        '$item.NotificationRequestItem.merchantAccountCode',
        ['$item.NotificationRequestItem.merchantReference'],
        '$item.NotificationRequestItem.amount.value',
        '$item.NotificationRequestItem.amount.currency',
        '$item.NotificationRequestItem.eventCode',
        '$item.NotificationRequestItem.success',
      ],
      separator: ':',
      compare_with: '$item.NotificationRequestItem.additionalData.hmacSignature',
      string_type: 'base64',
    },
    env: { WEBHOOK_SECRET: HEX_KEY },
    payload: { notificationItems: [adyenItem(hmac('sha256', ADYEN_SIGNED, 'base64', Buffer.from(HEX_KEY, 'hex')))] },
    proves: ['payload'],
  },
  Airtable: overBody(
    'x-airtable-content-mac',
    `hmac-sha256=${hmac('sha256', BODY, 'hex', Buffer.from('Y29ycmVjdCBob3JzZQ==', 'base64'))}`,
    { secret_encoding: 'base64', signature_prefix: 'hmac-sha256=' },
    { WEBHOOK_SECRET: 'Y29ycmVjdCBob3JzZQ==' },
  ),
  'Amazon SNS, notification': sns(SNS_NOTIFICATION),
  'Amazon SNS, notification without a subject': sns(SNS_PLAIN_NOTIFICATION),
  'Amazon SNS, confirmation of a subscription': sns(SNS_CONFIRMATION),
  Asana: overBody('x-hook-signature', hmac('sha256', BODY, 'hex')),
  Autotask: overBody('x-hook-signature', `sha1=${hmac('sha1', BODY, 'base64')}`, {
    algorithm: 'sha1',
    string_type: 'base64',
    signature_prefix: 'sha1=',
  }),
  BambooHR: {
    ...overBody('x-bamboohr-signature', hmac('sha256', BODY + SECONDS, 'hex'), {
      parts: ['$body', '$header.x-bamboohr-timestamp'],
      timestamp: { value: '$header.x-bamboohr-timestamp' },
    }),
    headers: {
      'x-bamboohr-signature': hmac('sha256', BODY + SECONDS, 'hex'),
      'x-bamboohr-timestamp': SECONDS,
    },
    window: 300,
  },
  'Bitbucket Cloud': overBody('x-hub-signature', `sha256=${hmac('sha256', BODY, 'hex')}`, {
    signature_prefix: 'sha256=',
  }),
  Box: {
    // A second header holds the signature of the secondary key, during a rotation.
    ...overBody('box-signature-primary', '', {
      parts: ['$body', '$header.box-delivery-timestamp'],
      compare_with: ['$header.box-signature-primary', '$header.box-signature-secondary'],
      string_type: 'base64',
      timestamp: { value: '$header.box-delivery-timestamp', unit: 'iso', tolerance_seconds: 600 },
    }),
    headers: {
      'box-signature-secondary': hmac('sha256', BODY + BOX_TIME, 'base64'),
      'box-delivery-timestamp': BOX_TIME,
    },
    window: 600,
  },
  Chargebee: {
    format: 'basic',
    config: { username: '{{env.WEBHOOK_USER}}', password: secret },
    env: { WEBHOOK_USER: 'chargebee', WEBHOOK_SECRET: SECRET },
    headers: { authorization: `Basic ${Buffer.from(`chargebee:${SECRET}`).toString('base64')}` },
    body: BODY,
    proves: [],
  },
  ConnectWise: overBody(
    'x-content-signature',
    hmac('sha256', BODY, 'base64', createHash('sha256').update(SECRET).digest()),
    { secret_hash: 'sha256', string_type: 'base64' },
  ),
  DocuSign: {
    // One header for each key of the account; one of them is ours.
    ...overBody('x-docusign-signature-1', '', {
      compare_with: [1, 2, 3, 4].map((number) => `$header.x-docusign-signature-${number}`),
      string_type: 'base64',
    }),
    headers: {
      'x-docusign-signature-1': hmac('sha256', BODY, 'base64', 'the key of another integration'),
      'x-docusign-signature-2': hmac('sha256', BODY, 'base64'),
    },
    hasSpare: true,
  },
  Dropbox: overBody('x-dropbox-signature', hmac('sha256', BODY, 'hex')),
  'Facebook, Instagram and WhatsApp (Meta)': overBody('x-hub-signature-256', `sha256=${hmac('sha256', BODY, 'hex')}`, {
    signature_prefix: 'sha256=',
  }),
  Figma: fixed('$payload.passcode', { payload: { passcode: SECRET }, proves: ['payload'] }),
  'Google Calendar and Drive': fixed('$header.x-goog-channel-token', { headers: { 'x-goog-channel-token': SECRET } }),
  Greenhouse: overBody('signature', `sha256 ${hmac('sha256', BODY, 'hex')}`, { signature_prefix: 'sha256 ' }),
  Heroku: overBody('heroku-webhook-hmac-sha256', hmac('sha256', BODY, 'base64'), { string_type: 'base64' }),
  HighLevel: {
    format: 'asymmetric',
    config: {
      algorithm: 'rsa-sha256',
      public_key: '{{env.HIGHLEVEL_PUBLIC_KEY}}',
      parts: ['$body'],
      compare_with: '$header.x-wh-signature',
    },
    env: { HIGHLEVEL_PUBLIC_KEY: String(rsa.publicKey.export({ type: 'spki', format: 'pem' })) },
    headers: { 'x-wh-signature': sign('sha256', Buffer.from(BODY), rsa.privateKey).toString('base64') },
    body: BODY,
  },
  'HubSpot v1': {
    format: 'hash',
    config: { parts: [secret, '$body'], compare_with: '$header.x-hubspot-signature' },
    env,
    headers: {
      'x-hubspot-signature': createHash('sha256')
        .update(SECRET + BODY)
        .digest('hex'),
    },
    body: BODY,
  },
  Intercom: overBody('x-hub-signature', `sha1=${hmac('sha1', BODY, 'hex')}`, {
    algorithm: 'sha1',
    signature_prefix: 'sha1=',
  }),
  Lever: {
    // The rest of the body is not signed: fetch what the event names.
    format: 'hmac',
    config: {
      secret,
      parts: ['$payload.token', '$payload.triggeredAt'],
      compare_with: '$payload.signature',
      timestamp: { value: '$payload.triggeredAt', unit: 'milliseconds' },
    },
    env,
    payload: {
      token: 'c0ffee',
      triggeredAt: issuedAt * 1000,
      signature: hmac('sha256', `c0ffee${issuedAt}000`, 'hex'),
    },
    proves: ['payload'],
    window: 300,
  },
  'Mailchimp Marketing': fixed('$query.secret', { query: { secret: SECRET }, proves: ['query'] }),
  Mandrill: {
    format: 'hmac',
    config: {
      secret,
      algorithm: 'sha1',
      parts: ['$url', '$form.sorted'],
      compare_with: '$header.x-mandrill-signature',
      string_type: 'base64',
    },
    env,
    url: ADDRESS,
    headers: { 'x-mandrill-signature': hmac('sha1', `${ADDRESS}mandrill_events[{"event":"open"}]`, 'base64') },
    body: FORM,
    proves: ['url', 'body'],
  },
  'Microsoft Graph': {
    // Every notification of a batch has to hold the secret.
    format: 'compare',
    config: { secret, items: 'value', compare_with: '$item.clientState' },
    env,
    payload: { value: [{ clientState: SECRET }, { clientState: SECRET }] },
    proves: ['payload'],
  },
  'Microsoft Graph, with resource data': {
    format: 'all_of',
    config: {
      verifications: [
        { format: 'compare', config: { secret, items: 'value', compare_with: '$item.clientState' } },
        {
          format: 'jwt',
          config: {
            token: '$payload.validationTokens[0]',
            jwks_url: MICROSOFT_KEYS,
            audience: '{{env.MICROSOFT_APP_ID}}',
            claims: { azp: '0bf30f3b-4a52-48df-9a82-234910c4a086' },
          },
        },
      ],
    },
    env: { ...env, MICROSOFT_APP_ID: APP_ID },
    payload: { validationTokens: [microsoftToken], value: [{ clientState: SECRET }] },
    documents: {
      [MICROSOFT_KEYS]: JSON.stringify({ keys: [{ ...rsa.publicKey.export({ format: 'jwk' }), kid: 'm1' }] }),
    },
    proves: ['payload'],
  },
  Monday: {
    format: 'jwt',
    config: { token: '$header.authorization', secret },
    env,
    headers: { authorization: mondayToken },
    body: BODY,
    proves: [],
  },
  Notion: overBody('x-notion-signature', `sha256=${hmac('sha256', BODY, 'hex')}`, { signature_prefix: 'sha256=' }),
  PagerDuty: {
    ...overBody('x-pagerduty-signature', `v1=${hmac('sha256', BODY, 'hex')}`, {
      compare_with: '$header.x-pagerduty-signature[v1]',
    }),
  },
  QuickBooks: overBody('intuit-signature', hmac('sha256', BODY, 'base64'), { string_type: 'base64' }),
  'Salesforce Marketing Cloud': overBody('x-sfmc-ens-signature', hmac('sha256', BODY, 'base64'), {
    string_type: 'base64',
  }),
  'Salesforce outbound messages': {
    // Unsigned. The address carries the secret: the organization's id in the body is known to others. Salesforce also shows a
    // client certificate, which a proxy in front has to check.
    format: 'compare',
    config: { secret, compare_with: '$query.secret' },
    env,
    query: { secret: SECRET },
    proves: ['query'],
  },
  Sellsy: {
    format: 'hash',
    config: { algorithm: 'sha1', parts: [secret, '$body'], compare_with: '$header.x-webhook-signature' },
    env,
    headers: {
      'x-webhook-signature': createHash('sha1')
        .update(SECRET + BODY)
        .digest('hex'),
    },
    body: BODY,
  },
  Trello: {
    ...overBody('x-trello-webhook', hmac('sha1', BODY + ADDRESS, 'base64'), {
      algorithm: 'sha1',
      parts: ['$body', '$url'],
      string_type: 'base64',
    }),
    url: ADDRESS,
    proves: ['url', 'body'],
  },
  'Twilio, with or without the port': {
    format: 'any_of',
    config: {
      verifications: ['$url.with_port', '$url.without_port'].map((url) => ({
        format: 'hmac',
        config: {
          secret,
          algorithm: 'sha1',
          parts: [url, '$form.sorted'],
          compare_with: '$header.x-twilio-signature',
          string_type: 'base64',
        },
      })),
    },
    env,
    url: ADDRESS,
    headers: { 'x-twilio-signature': hmac('sha1', `${ADDRESS.replace('.com', '.com:443')}aa`, 'base64') },
    body: 'a=a',
    proves: ['url', 'body'],
  },
  Twitch: {
    ...overBody('twitch-eventsub-message-signature', '', {
      parts: ['$header.twitch-eventsub-message-id', '$header.twitch-eventsub-message-timestamp', '$body'],
      signature_prefix: 'sha256=',
      timestamp: { value: '$header.twitch-eventsub-message-timestamp', unit: 'iso', tolerance_seconds: 600 },
    }),
    headers: {
      'twitch-eventsub-message-id': 'befa7b53-d79d-478f-86b9-120f112b044e',
      'twitch-eventsub-message-timestamp': TWITCH_TIME,
      'twitch-eventsub-message-signature': `sha256=${hmac('sha256', `befa7b53-d79d-478f-86b9-120f112b044e${TWITCH_TIME}${BODY}`, 'hex')}`,
    },
    body: BODY,
    now: TWITCH_TIME,
    window: 600,
  },
  Typeform: overBody('typeform-signature', `sha256=${hmac('sha256', BODY, 'base64')}`, {
    signature_prefix: 'sha256=',
    string_type: 'base64',
  }),
  WooCommerce: overBody('x-wc-webhook-signature', hmac('sha256', BODY, 'base64'), { string_type: 'base64' }),
  'X (Twitter)': overBody('x-twitter-webhooks-signature', `sha256=${hmac('sha256', BODY, 'base64')}`, {
    signature_prefix: 'sha256=',
    string_type: 'base64',
  }),
}
