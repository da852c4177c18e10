import { describe, expect, it } from 'vitest'
import { findShippedDefinition, SHIPPED_NAMES } from '../../../../src/engine/catalog/definitions.ts'
import { findWebhookWarnings } from '../../../../src/engine/definitions/check-webhook.ts'

const SIGNED = { format: 'compare', config: { value: '$header.x-token', secret: '{{environment_variables.TOKEN}}' } }
const LOOKUP = { value: 'body.team', field: 'team' }
const identity = { request: { method: 'GET', path: '/me' }, path: 'id' }
const oauth = (config = {}) => ({ format: 'oauth2', config })

/** Rules of the warnings of a definition with the block. */
function rulesOf(webhook: object | undefined, credentials: object = oauth({ identity })): string[] {
  const config = { credentials, ...(webhook === undefined ? {} : { webhook: { dedupe: false, ...webhook } }) }
  return findWebhookWarnings(JSON.parse(JSON.stringify(config)), '').map(({ rule }) => rule)
}

const UNSIGNED = ['webhook.unsigned']
const UNSIGNED_CONTEXT = ['webhook.unsigned_context', 'webhook.unsigned']
const UPDATES = '{"type": "verify", "update_context": {"secret": headers.secret}}'

describe('warnings about a webhook block', () => {
  it.each([
    ['no webhooks', undefined, []],
    ['a signature', { signature_verification: SIGNED }, []],
    ['no signature', {}, UNSIGNED],
    ['format none', { signature_verification: { format: 'none' } }, UNSIGNED],
    ['a choice that verifies nothing', signedBy('any_of', [SIGNED, { format: 'none' }]), UNSIGNED],
    ['a choice of two signatures', signedBy('any_of', [SIGNED, SIGNED]), []],
    ['a signature among others', signedBy('all_of', [SIGNED, { format: 'none' }]), []],
    ['a context of any sender', { handle_verification: UPDATES }, UNSIGNED_CONTEXT],
    ['a signed context', { handle_verification: UPDATES, signature_verification: SIGNED }, []],
    ['a handshake alone', { handle_verification: '{"type": "verify"}' }, UNSIGNED],
  ] as const)('are right for %s', (_, webhook, rules) => {
    expect(rulesOf(webhook)).toEqual(rules)
  })

  const unnamed = ['webhook.dedupe']
  it.each([
    ['an id', SIGNED, { keys: ['$header.x-id'] }, []],
    ['news alone', SIGNED, false, []],
    ['nothing', SIGNED, undefined, unnamed],
    ['a window without an id', SIGNED, { window: '1h' }, unnamed],
    ['the id of Standard Webhooks', { format: 'standard_webhooks', config: {} }, undefined, []],
    ['the id of Svix', { format: 'clerk', config: {} }, undefined, []],
  ])('are right where deliveries are told apart by %s', (_what, signature_verification, dedupe, rules) => {
    expect(rulesOf({ signature_verification, dedupe })).toEqual(rules)
  })

  it.each([
    ['that the third party confirms', oauth({ identity }), []],
    ['that nothing confirms', oauth(), ['webhook.unconfirmed_lookup']],
    [
      'confirmed for one way of two',
      { oauth2: { config: { identity } }, api_key: { config: {} } },
      ['webhook.unconfirmed_lookup'],
    ],
    ['confirmed for both', { oauth2: { config: { identity } }, api_key: { config: { identity } } }, []],
  ] as const)('are right for a looked up value %s', (_, credentials, rules) => {
    expect(rulesOf({ signature_verification: SIGNED, context_lookup: LOOKUP }, credentials)).toEqual(rules)
  })

  it('name the ways of connecting that leave a value unconfirmed', () => {
    const ways = { oauth2: { config: { identity } }, api_key: { config: {} } }
    const webhook = { signature_verification: SIGNED, context_lookup: LOOKUP, dedupe: false }
    expect(findWebhookWarnings({ webhook, credentials: ways }, 'config')).toMatchObject([
      { field: 'config.webhook.context_lookup.field', description: expect.stringContaining('connected by api_key ') },
    ])
  })

  it.each(SHIPPED_NAMES)('of %s are about lookups alone: its webhooks are signed', (name) => {
    const rules = findWebhookWarnings(findShippedDefinition(name)?.config ?? {}, '').map(({ rule }) => rule)
    expect(rules.filter((rule) => rule !== 'webhook.unconfirmed_lookup')).toEqual([])
  })
})

function signedBy(format: string, verifications: readonly object[]): object {
  return { signature_verification: { format, config: { verifications } } }
}
