import { expect, it } from 'vitest'
import { type OAuth1Input, signOAuth1 } from '../../../../src/engine/formats/sign-oauth1.ts'

const CLIENT = {
  consumerKey: 'dpf43f3p2l4k3l03',
  consumerSecret: 'kd94hf93k423kf44',
  signatureMethod: 'HMAC-SHA1',
} as const
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

interface Vector {
  readonly what: string
  readonly request: Partial<Parameters<typeof signOAuth1>[0]>
  readonly input: Partial<OAuth1Input> & { readonly nonce: string }
  readonly seconds: number
  readonly signature: string
}

// The examples of RFC 5849; the secrets of the one with a form are those of the erratum about it.
const VECTORS: readonly Vector[] = [
  {
    what: 'the request for temporary credentials of §1.2',
    request: { method: 'POST', url: 'https://photos.example.net/initiate' },
    input: { ...CLIENT, nonce: 'wIjqoS', extra: { oauth_callback: 'http://printer.example.com/ready' } },
    seconds: 137131200,
    signature: '74KNZJeDHnMBp0EMJ9ZHt/XKycU=',
  },
  {
    what: 'the request for the token of §1.2',
    request: { method: 'POST', url: 'https://photos.example.net/token' },
    input: {
      ...CLIENT,
      nonce: 'walatlh',
      token: { key: 'hh5s93j4hdidpola', secret: 'hdhd0244k9j7ao03' },
      extra: { oauth_verifier: 'hfdp7dh39dks9884' },
    },
    seconds: 137131201,
    signature: 'gKgrFCywp7rO0OXSjdot/IHF7IU=',
  },
  {
    what: 'the request for a photo of §1.2',
    request: { url: 'http://photos.example.net/photos?file=vacation.jpg&size=original' },
    input: { ...CLIENT, nonce: 'chapoH', token: { key: 'nnch734d00sl2jdk', secret: 'pfkkdhi9sl3r4s00' } },
    seconds: 137131202,
    signature: 'MdpQcU8iPSUjWoN/UDMsK2sui9I=',
  },
  {
    what: 'parameters of query and form of §3.4.1.3',
    request: {
      method: 'POST',
      url: 'http://example.com/request?b5=%3D%253D&a3=a&c%40=&a2=r%20b',
      headers: FORM,
      body: 'c2&a3=2+q',
    },
    input: {
      ...CLIENT,
      consumerKey: '9djdj82h48djs9d2',
      consumerSecret: 'j49sk3j29djd',
      nonce: '7d8f3e4a',
      token: { key: 'kkk9d7dh3k39sjv7', secret: 'dh893hdasih9' },
    },
    seconds: 137131201,
    signature: 'r6/TJjbCOr97/+UU0NsvSne7s5g=',
  },
]

it.each(VECTORS)('signs $what as published', ({ request, input, seconds, signature }) => {
  const header = signOAuth1(
    { method: 'GET', url: '', headers: {}, body: undefined, ...request },
    { ...CLIENT, token: undefined, extra: {}, now: new Date(seconds * 1_000), ...input },
  )
  expect(header).toContain(`oauth_signature="${encodeURIComponent(signature)}"`)
})
