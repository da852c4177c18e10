import { afterAll } from 'vitest'
import type { JsonObject } from '../../../../src/foundation/json/index.ts'
import { jsonReply, listen, type Reply, readBody, send } from '../../../lab/browser/peers/listen.ts'

/** A third party with a token endpoint, an API that checks credentials, and a count of what both were asked. */
export async function startThirdParty() {
  const exchanges: URLSearchParams[] = []
  const paths: string[] = []
  const answers = {
    token: (_form: URLSearchParams): Reply | Promise<Reply> =>
      jsonReply(200, { access_token: 'at-canary', refresh_token: 'rt-canary', token_type: 'bearer', expires_in: 3600 }),
    me: (): Reply => jsonReply(200, { id: 'acme-1' }),
  }
  const peer = await listen(async (request, response) => {
    if (request.url?.startsWith('/token') === true) {
      const form = new URLSearchParams(await readBody(request))
      exchanges.push(form)
      paths.push(request.url)
      send(response, await answers.token(form))
    } else send(response, answers.me())
  }, '127.0.0.1')
  afterAll(() => peer[Symbol.asyncDispose]())
  return {
    url: peer.url,
    /** Requests to the token endpoint. */
    exchanges,
    /** Their paths. */
    paths,
    /** How it answers; tests replace one. */
    answers,
    /** A definition of OAuth 2 for it. */
    oauth: (changes: JsonObject = {}, root: JsonObject = {}): JsonObject => ({
      label: 'Third party',
      base_url: peer.url,
      retry: { max_attempts: 1 },
      credentials: {
        oauth2: {
          config: {
            client: { id: 'client', secret: 'client-secret-canary' },
            auth: {
              tokenHost: peer.url,
              tokenPath: '/token',
              authorizeHost: peer.url,
              authorizePath: '/authorize',
            },
            scope: ['read', 'write'],
            ...changes,
          },
        },
      },
      authorization: { format: 'bearer', config: { token: '{{oauth.token.access_token}}' } },
      ...root,
    }),
    /** A definition whose API key is verified by a request. */
    keys: (): JsonObject => ({
      base_url: peer.url,
      retry: { max_attempts: 1 },
      credentials: {
        api_key: {
          config: {
            fields: [
              { name: 'api_key', type: 'password', required: true },
              { name: 'subdomain', required: true },
            ],
            verification: { method: 'GET', path: '/me' },
          },
        },
      },
      authorization: { format: 'bearer', config: { token: '{{api_key}}' } },
    }),
  }
}
