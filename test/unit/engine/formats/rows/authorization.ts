import { createHash } from 'node:crypto'
import type { Json, JsonObject } from '../../../../../src/foundation/json/index.ts'

/** One promise of an authorization format: this config on this request gives this effect, or this failure. */
export interface AuthorizationRow {
  readonly promise: string
  readonly config?: Json
  readonly request?: {
    readonly method?: string
    readonly url?: string
    readonly headers?: Record<string, string>
    readonly body?: string
  }
  readonly context?: JsonObject
  readonly credentials?: JsonObject
  /** What the evaluator answers; the row also sees that it was asked. */
  readonly evaluated?: Json
  readonly now?: string
  readonly nonce?: string
  /** `WWW-Authenticate` of the response before. */
  readonly challenge?: string
  readonly headers?: Record<string, string>
  readonly query?: Record<string, string>
  readonly failure?: string
}

const TWITTER_SECRETS = {
  consumer_secret: 'kAcSOqF21Fu85e7zjz7ZN2U4ZRhfV3WpwPAoE3Z7kBw',
  token_secret: 'LswwdoUaIvS8ltyTt5jkRh4J50vUPVVHtR2YPi5kE',
}

const AWS = {
  access_key_id: 'AKIAIOSFODNN7EXAMPLE',
  secret_access_key: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
  region: 'us-east-1',
  service: 's3',
}
const EMPTY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'

const MUFASA = { username: 'Mufasa', password: 'Circle of Life' }
const CNONCE = 'f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ'
const RFC_7616_NONCES =
  'nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"'
const mufasa = (algorithm: string, response: string) =>
  `Digest username="Mufasa", realm="http-auth@example.org", nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", uri="/dir/index.html", algorithm=${algorithm}, cnonce="${CNONCE}", qop=auth, nc=00000001, response="${response}", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"`
const md5 = (text: string) => createHash('md5').update(text).digest('hex')
const withoutQop = (realm: string, nonce: string, uri: string) =>
  md5(`${md5(`Mufasa:${realm}:Circle of Life`)}:${nonce}:${md5(`GET:${uri}`)}`)

const awsHeaders = (signature: string, service = 's3') => ({
  'x-amz-content-sha256': EMPTY_SHA256,
  'x-amz-date': '20130524T000000Z',
  authorization: `AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/${service}/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=${signature}`,
})

export const AUTHORIZATION_ROWS: Readonly<Record<string, readonly AuthorizationRow[]>> = {
  bearer: [
    {
      promise: 'sends the given token',
      config: { token: '{{api_key}}' },
      credentials: { api_key: 'k' },
      headers: { authorization: 'Bearer k' },
    },
    {
      promise: 'prefers the access token when nothing is said',
      credentials: { api_key: 'k', oauth: { token: { access_token: 't' } } },
      headers: { authorization: 'Bearer t' },
    },
    {
      promise: 'takes the api_key next',
      config: {},
      credentials: { api_key: 'k' },
      headers: { authorization: 'Bearer k' },
    },
    { promise: 'never sends an empty token', credentials: {}, failure: 'PLACEHOLDER_UNRESOLVED' },
  ],
  digest: [
    { promise: 'sends nothing before the challenge', config: MUFASA, headers: {} },
    {
      promise: 'answers with MD5 as in RFC 7616 §3.9.1',
      config: MUFASA,
      request: { url: 'http://www.example.org/dir/index.html' },
      nonce: CNONCE,
      challenge: `Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=MD5, ${RFC_7616_NONCES}`,
      headers: { authorization: mufasa('MD5', '8ca523f5e9506fed4657c9700eebdbec') },
    },
    {
      promise:
        'answers with SHA-256 as in RFC 7616 §3.9.1, the second of several challenges where the first is not known',
      config: MUFASA,
      request: { url: 'http://www.example.org/dir/index.html' },
      nonce: CNONCE,
      challenge: `Basic realm="a, Digest b", Digest nonce=x, algorithm=FOO, Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=SHA-256, ${RFC_7616_NONCES}`,
      headers: {
        authorization: mufasa('SHA-256', '753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1'),
      },
    },
    {
      promise: 'answers without qop (RFC 2617 §3.5, without cnonce)',
      config: MUFASA,
      request: { url: 'http://www.nowhere.org/a?b=c' },
      challenge: 'digest nonce=abc,realm="r \\"q\\""',
      headers: {
        authorization: `Digest username="Mufasa", realm="r \\"q\\"", nonce="abc", uri="/a?b=c", response="${withoutQop('r "q"', 'abc', '/a?b=c')}"`,
      },
    },
    {
      promise: 'does not answer a challenge with an unknown algorithm',
      config: MUFASA,
      challenge: 'Digest realm="r", nonce="n", algorithm=SHA-1',
      failure: 'no known algorithm',
    },
  ],
  basic: [
    {
      promise: 'encodes the pair of RFC 7617 §2',
      config: { username: 'Aladdin', password: 'open sesame' },
      headers: { authorization: 'Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==' },
    },
    {
      promise: 'encodes as UTF-8 (RFC 7617 §2.1)',
      config: { username: 'test', password: '123£' },
      headers: { authorization: 'Basic dGVzdDoxMjPCow==' },
    },
    {
      promise: 'takes a key as the user name with an empty password',
      config: { username: '{{api_key}}' },
      credentials: { api_key: 'k' },
      headers: { authorization: 'Basic azo=' },
    },
    {
      promise: 'rejects a missing password',
      config: { username: 'u', password: '{{password}}' },
      failure: '{{password}}',
    },
  ],
  header: [
    {
      promise: 'sends one header under its lower-case name',
      config: { header_name: 'X-Api-Key', header_value: '{{api_key}}' },
      credentials: { api_key: 'k' },
      headers: { 'x-api-key': 'k' },
    },
    {
      promise: 'sends several headers',
      config: { headers: { 'X-App': 'a', 'X-Key': 'Token {{api_key}}' } },
      credentials: { api_key: 'k' },
      headers: { 'x-app': 'a', 'x-key': 'Token k' },
    },
    {
      promise: 'sends what the expression makes of the request',
      config: { expression: '{"X-Signature": request.body & url & credentials.secret & context.site}' },
      request: { method: 'POST', body: 'b' },
      evaluated: { 'X-Signature': 's' },
      headers: { 'x-signature': 's' },
    },
    {
      promise: 'rejects a result that is not an object',
      config: { expression: '"x"' },
      evaluated: 'x',
      failure: 'EXPRESSION_FAILED',
    },
    {
      promise: 'rejects a missing value',
      config: { header_name: 'X-Api-Key', header_value: '{{api_key}}' },
      failure: '{{api_key}}',
    },
  ],
  query: [
    {
      promise: 'adds parameters',
      config: { params: { api_key: '{{api_key}}', v: '2' } },
      credentials: { api_key: 'a&b' },
      query: { api_key: 'a&b', v: '2' },
    },
    { promise: 'rejects a missing value', config: { params: { api_key: '{{api_key}}' } }, failure: '{{api_key}}' },
  ],
  oauth1: [
    {
      promise: "signs query and form body as in Twitter's published example",
      config: {
        ...TWITTER_SECRETS,
        consumer_key: 'xvz1evFS4wEEPTGEFPHBog',
        token: '370773112-GmHxMAgYyLbNEtIKZeRNFsMKPR9EyMZeS9weJAEb',
      },
      request: {
        method: 'POST',
        url: 'https://api.twitter.com/1.1/statuses/update.json?include_entities=true',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: 'status=Hello%20Ladies%20%2B%20Gentlemen%2C%20a%20signed%20OAuth%20request%21',
      },
      now: '2011-10-14T20:09:18Z',
      nonce: 'kYjzVBB8Y0ZFabxSWbWovY3uYSQ2pTgmZeNu2VS4cg',
      headers: {
        authorization:
          'OAuth oauth_consumer_key="xvz1evFS4wEEPTGEFPHBog", oauth_nonce="kYjzVBB8Y0ZFabxSWbWovY3uYSQ2pTgmZeNu2VS4cg", oauth_signature_method="HMAC-SHA1", oauth_timestamp="1318622958", oauth_token="370773112-GmHxMAgYyLbNEtIKZeRNFsMKPR9EyMZeS9weJAEb", oauth_version="1.0", oauth_signature="hCtSmYh%2BiHYCEqBWrE7C7hYmtUk%3D"',
      },
    },
    {
      promise: 'sends the secrets themselves as PLAINTEXT signature (RFC 5849 §3.4.4), after the realm',
      config: {
        consumer_key: 'c',
        consumer_secret: 'c s',
        token: 't',
        token_secret: 'x&y',
        signature_method: 'PLAINTEXT',
        realm: 'Photos',
      },
      now: '1970-01-01T00:00:01Z',
      nonce: 'n',
      headers: {
        authorization:
          'OAuth realm="Photos", oauth_consumer_key="c", oauth_nonce="n", oauth_signature_method="PLAINTEXT", oauth_timestamp="1", oauth_token="t", oauth_version="1.0", oauth_signature="c%2520s%26x%2526y"',
      },
    },
  ],
  aws_sigv4: [
    {
      promise: "signs as Amazon's published example of a bucket's lifecycle",
      config: AWS,
      request: { url: 'https://examplebucket.s3.amazonaws.com/?lifecycle=' },
      now: '2013-05-24T00:00:00Z',
      headers: awsHeaders('fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543'),
    },
    {
      promise: "signs as Amazon's published example of a bucket's list",
      config: AWS,
      request: { url: 'https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J' },
      now: '2013-05-24T00:00:00Z',
      headers: awsHeaders('34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7'),
    },
    {
      promise: 'sorts parameters by name alone',
      config: { ...AWS, service: 'execute-api' },
      request: { url: 'https://h.example.com/?a-b=1&a=2&a=1&ab=3' },
      now: '2013-05-24T00:00:00Z',
      headers: awsHeaders('0cb0924623087a5bbc04b86f82f35b2d6a521508b8e298c4ec0a3daf7c51cd20', 'execute-api'),
    },
    {
      promise: 'joins slashes of a path that follow each other, but for a bucket',
      config: { ...AWS, service: 'execute-api' },
      request: { url: 'https://h.example.com/a//b%20c' },
      now: '2013-05-24T00:00:00Z',
      headers: awsHeaders('21817d321834280104ed5b42528cd0ba98f4ad0ec507f3a4b731c4f58b73a466', 'execute-api'),
    },
    {
      promise: 'signs the temporary token and the hash that the caller names, and the path of a bucket as it is',
      config: { ...AWS, session_token: '{{token}}' },
      credentials: { token: 'T' },
      request: {
        method: 'PUT',
        url: 'https://h.example.com/a//b%20c',
        headers: { 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' },
      },
      now: '2013-05-24T00:00:00Z',
      headers: {
        'x-amz-content-sha256': 'UNSIGNED-PAYLOAD',
        'x-amz-date': '20130524T000000Z',
        'x-amz-security-token': 'T',
        authorization:
          'AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token, Signature=1026689243e060cc090a44c7595f505ab362344ba02a6ebc152f94fba791a57d',
      },
    },
  ],
  jwt: [
    {
      promise: 'signs claims with the times of issue and expiry',
      config: {
        algorithm: 'HS256',
        key: '{{api_secret}}',
        claims: { iss: '{{context.app}}' },
        key_id: 'k1',
        expires_in: 60,
      },
      credentials: { api_secret: 'secret' },
      context: { app: 'a' },
      now: '1970-01-01T00:01:00Z',
      headers: {
        // Header {"alg":"HS256","typ":"JWT","kid":"k1"}, claims {"iat":60,"exp":120,"iss":"a"}; signed with openssl.
        authorization:
          'Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6ImsxIn0.eyJpYXQiOjYwLCJleHAiOjEyMCwiaXNzIjoiYSJ9.5Me8GEHrUuiIT1qzrqRohHyJgfEjN-rkAHmxc7EvLeg',
      },
    },
    {
      promise: 'reports an unusable key without showing it',
      config: { algorithm: 'RS256', key: 'not a key' },
      failure: 'the signing key is not usable with RS256',
    },
  ],
  none: [{ promise: 'sends nothing', headers: {}, query: {} }],
}
