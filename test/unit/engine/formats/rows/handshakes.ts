import { createHmac } from 'node:crypto'
import type { Json, JsonObject } from '../../../../../src/foundation/json/index.ts'

/** A request by which a provider checks an address, and what the definition makes of it. */
export interface HandshakeRequest {
  readonly what: string
  /** Default: POST. */
  readonly method?: string
  readonly query?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** The answer, and what is stored; absent: it is a payload, whose signature is verified. */
  readonly result?: { readonly answer?: Json; readonly update_context?: Json; readonly visit?: string }
  /** Of a payload: whether its signature is right. */
  readonly isValid?: boolean
}

/** One of the ways in which providers check an address. The page `engine/reference/webhook-signatures.md` shows them. */
export interface HandshakeRow {
  readonly providers: string
  readonly explanation: string
  readonly webhook: JsonObject
  readonly requests: readonly HandshakeRequest[]
}

export const HANDSHAKE_SECRET = 'correct horse battery staple'
const json = { 'content-type': 'application/json' }
const sign = (body: string) => createHmac('sha256', HANDSHAKE_SECRET).update(body).digest('base64')
const hmac = (text: string, encoding: 'hex' | 'base64') =>
  createHmac('sha256', HANDSHAKE_SECRET).update(text).digest(encoding)

const SNS_TOPIC = 'arn:aws:sns:eu-central-1:123456789012:orders'
const SNS_VISIT = 'https://sns.eu-central-1.amazonaws.com/?Action=ConfirmSubscription&Token=2336412f37'
const XERO_BODY = '{"events":[],"firstEventSequence":0,"lastEventSequence":0,"entropy":"S0m3r4Nd0mt3xt"}'

export const HANDSHAKE_ROWS: Readonly<Record<string, HandshakeRow>> = {
  'A field of the body is sent back': {
    providers: 'Slack, Monday, Lark',
    explanation: 'Slack takes the bare text, Monday an object with the field; a text is answered as `text/plain`.',
    webhook: {
      handle_verification:
        'body.type = "url_verification" ? {"type": "verify", "verification_response": {"body": body.challenge}} : $exists(body.challenge) and $not($exists(body.event)) ? {"type": "verify", "verification_response": {"body": {"challenge": body.challenge}}}',
    },
    requests: [
      {
        what: 'Slack',
        headers: json,
        body: '{"type":"url_verification","challenge":"3eZbrw1a"}',
        result: { answer: { body: '3eZbrw1a' } },
      },
      {
        what: 'Monday',
        headers: json,
        body: '{"challenge":"3eZbrw1a"}',
        result: { answer: { body: { challenge: '3eZbrw1a' } } },
      },
      { what: 'an event', headers: json, body: '{"type":"event_callback"}' },
    ],
  },
  'A parameter of a GET request is sent back as text': {
    providers: 'Dropbox, Facebook, Instagram, WhatsApp, Strava; Okta in a header',
    explanation:
      'Meta and Strava send a token of yours along: the answer to another one is 403. Strava takes JSON, Okta an object with the value of its header.',
    webhook: {
      handle_verification:
        '$exists(query."hub.challenge") ? (query."hub.verify_token" = environment_variables.WEBHOOK_VERIFY_TOKEN ? {"type": "verify", "verification_response": {"body": query."hub.challenge"}} : {"type": "verify", "verification_response": {"status_code": 403}}) : $exists(query.challenge) ? {"type": "verify", "verification_response": {"body": query.challenge}} : $exists(headers."x-okta-verification-challenge") ? {"type": "verify", "verification_response": {"body": {"verification": headers."x-okta-verification-challenge"}}}',
    },
    requests: [
      { what: 'Dropbox', method: 'GET', query: 'challenge=q8vB', result: { answer: { body: 'q8vB' } } },
      {
        what: 'Meta',
        method: 'GET',
        query: 'hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=meatyhamhock',
        result: { answer: { body: '1158201444' } },
      },
      {
        what: 'Meta, with another token',
        method: 'GET',
        query: 'hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=x',
        result: { answer: { status_code: 403 } },
      },
      {
        what: 'Okta',
        method: 'GET',
        headers: { 'x-okta-verification-challenge': 'my challenge' },
        result: { answer: { body: { verification: 'my challenge' } } },
      },
    ],
  },
  'A parameter of a POST request is sent back as text': {
    providers: 'Microsoft Graph',
    explanation:
      'The request that creates the subscription waits for this answer. Notifications about the subscription itself are stored and lead to no event (`meta`).',
    webhook: {
      handle_verification:
        '$exists(query.validationToken) ? {"type": "verify", "verification_response": {"body": query.validationToken}} : $exists(body.value.lifecycleEvent) ? {"type": "meta"}',
    },
    requests: [
      {
        what: 'a token with encoded characters',
        query: 'validationToken=Validation%3A+Testing+reachability+%2B%26',
        result: { answer: { body: 'Validation: Testing reachability +&' } },
      },
    ],
  },
  'A hash of a token is sent back': {
    providers: 'Zoom, X, LinkedIn',
    explanation: 'Zoom repeats it every 72 hours and X about every hour: a wrong answer ends the subscription.',
    webhook: {
      handle_verification:
        'body.event = "endpoint.url_validation" ? {"type": "verify", "verification_response": {"body": {"plainToken": body.payload.plainToken, "encryptedToken": $hmac(body.payload.plainToken, environment_variables.WEBHOOK_SECRET)}}} : $exists(query.crc_token) ? {"type": "verify", "verification_response": {"body": {"response_token": "sha256=" & $hmac(query.crc_token, environment_variables.WEBHOOK_SECRET, "sha256", "base64")}}} : $exists(query.challengeCode) ? {"type": "verify", "verification_response": {"body": {"challengeCode": query.challengeCode, "challengeResponse": $hmac(query.challengeCode, environment_variables.WEBHOOK_SECRET)}}}',
    },
    requests: [
      {
        what: 'Zoom',
        headers: json,
        body: '{"event":"endpoint.url_validation","payload":{"plainToken":"qgg8vlvZRS6UYooatFL8Aw"}}',
        result: {
          answer: {
            body: { plainToken: 'qgg8vlvZRS6UYooatFL8Aw', encryptedToken: hmac('qgg8vlvZRS6UYooatFL8Aw', 'hex') },
          },
        },
      },
      {
        what: 'X',
        method: 'GET',
        query: 'crc_token=foo',
        result: { answer: { body: { response_token: `sha256=${hmac('foo', 'base64')}` } } },
      },
      {
        what: 'LinkedIn',
        method: 'GET',
        query: 'challengeCode=890e4665',
        result: { answer: { body: { challengeCode: '890e4665', challengeResponse: hmac('890e4665', 'hex') } } },
      },
    ],
  },
  'A header is sent back and its value kept as the secret': {
    providers: 'Asana',
    explanation:
      'It comes inside of the request that creates the webhook, and again when Asana re-establishes it. `secret_context` keeps the value encrypted, outside of the context.',
    webhook: {
      handle_verification:
        '$exists(headers."x-hook-secret") ? {"type": "verify", "verification_response": {"headers": {"x-hook-secret": headers."x-hook-secret"}}, "update_context": {"hook_secret": headers."x-hook-secret"}}',
      secret_context: ['hook_secret'],
      signature_verification: {
        format: 'hmac',
        config: {
          secret: '{{connection.webhook.hook_secret}}',
          parts: ['$body'],
          compare_with: '$header.x-hook-signature',
        },
      },
    },
    requests: [
      {
        what: 'Asana',
        headers: { 'x-hook-secret': 'b537207f' },
        result: { answer: { headers: { 'x-hook-secret': 'b537207f' } }, update_context: { hook_secret: 'b537207f' } },
      },
    ],
  },
  'The secret is delivered in the body': {
    providers: 'Notion',
    explanation: 'Somewhere else a person confirms the address with the same value.',
    webhook: {
      handle_verification:
        '$exists(body.verification_token) ? {"type": "verify", "update_context": {"verification_token": body.verification_token}}',
      secret_context: ['verification_token'],
      signature_verification: {
        format: 'hmac',
        config: {
          secret: '{{connection.webhook.verification_token}}',
          parts: ['$body'],
          compare_with: 'sha256=$header.x-notion-signature',
        },
      },
    },
    requests: [
      {
        what: 'Notion',
        headers: json,
        body: '{"verification_token":"secret_tMrlL1qK"}',
        result: { update_context: { verification_token: 'secret_tMrlL1qK' } },
      },
    ],
  },
  'An address is visited': {
    providers: 'Amazon SNS',
    explanation:
      'Only hosts of `verification_hosts` are visited, over HTTPS. Anyone can make a topic, so the topic has to be yours. The signature is [that of its notifications](#amazon-sns-notification).',
    webhook: {
      handle_verification:
        'body.Type = "SubscriptionConfirmation" and body.TopicArn = environment_variables.SNS_TOPIC_ARN ? {"type": "verify", "verification_request": {"url": body.SubscribeURL}}',
      verification_hosts: ['sns.*.amazonaws.com'],
    },
    requests: [
      {
        what: 'a confirmation',
        headers: json,
        body: JSON.stringify({ Type: 'SubscriptionConfirmation', TopicArn: SNS_TOPIC, SubscribeURL: SNS_VISIT }),
        result: { visit: SNS_VISIT },
      },
      {
        what: 'a confirmation of another topic',
        headers: json,
        body: JSON.stringify({ Type: 'SubscriptionConfirmation', TopicArn: `${SNS_TOPIC}2`, SubscribeURL: SNS_VISIT }),
      },
    ],
  },
  'Probes with right and wrong signatures': {
    providers: 'Xero, Discord',
    explanation:
      'No handshake: a right signature is answered with 200, a wrong one with 401, both within 5 seconds. Xero wants an empty body.',
    webhook: {
      signature_verification: {
        format: 'hmac',
        config: {
          secret: '{{environment_variables.WEBHOOK_SECRET}}',
          parts: ['$body'],
          compare_with: '$header.x-xero-signature',
          string_type: 'base64',
        },
      },
      response: { status: 200, body: '' },
    },
    requests: [
      {
        what: 'intent to receive',
        headers: { ...json, 'x-xero-signature': sign(XERO_BODY) },
        body: XERO_BODY,
        isValid: true,
      },
      {
        what: 'intent to receive, with a wrong signature',
        headers: { ...json, 'x-xero-signature': sign('other') },
        body: XERO_BODY,
        isValid: false,
      },
    ],
  },
}
