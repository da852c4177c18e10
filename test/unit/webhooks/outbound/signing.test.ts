import { Webhook } from 'standardwebhooks'
import { describe, expect, it } from 'vitest'
import { newSigningSecret, signatureHeaders } from '../../../../src/webhooks/outbound/signing.ts'

describe('signatures', () => {
  it('agree with the published test vector of Standard Webhooks', () => {
    const headers = signatureHeaders(
      {
        id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
        timestampSeconds: 1614265330,
        body: Buffer.from('{"test": 2432232314}'),
      },
      ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
    )
    expect(headers).toEqual({
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    })
  })

  it('made with several secrets verify with each of them and with no other', () => {
    const secrets = [newSigningSecret(), newSigningSecret()]
    const body = '{"name":"Zoë 🎈"}'
    const timestampSeconds = Math.floor(Date.now() / 1000)
    const headers = signatureHeaders({ id: 'evt_1', timestampSeconds, body: Buffer.from(body) }, secrets)
    for (const secret of secrets) expect(new Webhook(secret).verify(body, headers)).toEqual({ name: 'Zoë 🎈' })
    expect(() => new Webhook(newSigningSecret()).verify(body, headers)).toThrow('No matching signature')
    expect(() => new Webhook(secrets[0]!).verify(`${body} `, headers)).toThrow('No matching signature')
  })

  it('use secrets of 32 random bytes', () => {
    const [one, other] = [newSigningSecret(), newSigningSecret()]
    expect(one).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(one).not.toBe(other)
  })
})
