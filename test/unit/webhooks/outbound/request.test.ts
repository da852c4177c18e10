import { createHmac } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { buildDeliveryRequest } from '../../../../src/webhooks/outbound/request.ts'
import { webhookTarget } from '../../../support/webhook-target.ts'

const EVENT = {
  id: '019a0000-0000-7000-8000-000000000001',
  type: 'record:updated',
  payload: { resource: 'contacts', name: 'Zoë' },
  createdAt: new Date('2026-11-22T10:00:00.500Z'),
  integratedAccountId: '019a0000-0000-7000-8000-0000000000aa',
}
const now = () => Math.floor(Date.now() / 1000)

describe('the request of a delivery', () => {
  it('has the standard envelope, and is the same for every attempt but for time and signature', () => {
    const target = webhookTarget('https://a.example/')
    const { headers, body } = buildDeliveryRequest(target, EVENT, now())
    expect(headers['content-type']).toBe('application/json')
    expect(new Webhook(target.secrets[0] ?? '').verify(String(body), headers)).toEqual({
      id: EVENT.id,
      event: 'record:updated',
      payload: EVENT.payload,
      environment_id: 'e',
      webhook_id: 'w',
      created_at: '2026-11-22T10:00:00.500Z',
    })
    expect(buildDeliveryRequest(target, EVENT, now() + 60).body).toEqual(body)
  })

  it('is a structured CloudEvents 1.0 event on request, under the same signature', () => {
    const target = webhookTarget('https://a.example/', { envelope: 'cloudevents' })
    const { headers, body } = buildDeliveryRequest(target, EVENT, now())
    expect(headers['content-type']).toBe('application/cloudevents+json')
    const event = new Webhook(target.secrets[0] ?? '').verify(String(body), headers) as object
    expect(event).toEqual({
      specversion: '1.0',
      id: EVENT.id,
      source: '/environment/e',
      type: 'record:updated',
      time: '2026-11-22T10:00:00.500Z',
      datacontenttype: 'application/json',
      integratedaccountid: EVENT.integratedAccountId,
      webhookid: 'w',
      data: EVENT.payload,
    })
    for (const name of Object.keys(event)) expect(name).toMatch(/^[a-z0-9]{1,20}$/)
  })

  it.each(['standard', 'cloudevents'] as const)('says in a %s envelope that it is a test', (envelope) => {
    const { body } = buildDeliveryRequest(webhookTarget('x', { envelope }), { ...EVENT, isTest: true }, now())
    expect(JSON.parse(String(body))).toMatchObject({ test: true })
  })

  it.each([
    ['single_header_base64', 'base64'],
    ['single_header_hex', 'hex'],
  ] as const)(
    'has a further signature header for %s, which keeps those of Standard Webhooks',
    (compatibility, encoding) => {
      const secrets = ['whsec_bmV3', 'whsec_b2xk']
      const { headers, body } = buildDeliveryRequest(webhookTarget('x', { compatibility, secrets }), EVENT, now())
      const digest = createHmac('sha256', 'whsec_bmV3').update(body).digest(encoding)
      expect(headers['x-truto-signature']).toBe(`format=sha256,v=${digest}`)
      expect(headers['webhook-signature']?.split(' ')).toHaveLength(2)
    },
  )

  it('has the custom headers, which replace none that it sets itself', () => {
    const target = webhookTarget('x', { headers: { 'x-tenant': 'acme', 'webhook-id': 'forged', 'content-type': 'x' } })
    expect(buildDeliveryRequest(target, EVENT, now()).headers).toMatchObject({
      'x-tenant': 'acme',
      'webhook-id': EVENT.id,
      'content-type': 'application/json',
    })
  })
})
