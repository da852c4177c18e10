import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { OAUTH1_METHODS, signOAuth1 } from '../../../../src/engine/formats/sign-oauth1.ts'

/** A third party with OAuth 1.0a that verifies every signature and nonce, on a loopback port. */
export interface OAuth1Server extends AsyncDisposable {
  readonly url: string
  /** Requests that were accepted and rejected, by path. */
  readonly log: readonly string[]
  /** Changes the next answer of a path. */
  answer(path: string, text: string, status?: number): void
  /** The customer consents: the address to which the browser is sent back. */
  consent(consentUrl: string): URL
}

export const CONSUMER = { key: 'the-consumer', secret: 'the-consumer-secret' }
const SECRETS: Readonly<Record<string, string>> = { 'request-token': 'request-secret', 'access-token': 'access-secret' }

/** Starts the server. Its one customer has the token `access-token`. */
export async function startOAuth1Server(): Promise<OAuth1Server> {
  const log: string[] = []
  const nonces = new Set<string>()
  const answers = new Map<string, { text: string; status: number }>()
  let callback = ''
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? '', url)
    const params = await verify(request)
    const isValid = params !== undefined && !nonces.has(params.oauth_nonce ?? '')
    nonces.add(params?.oauth_nonce ?? '')
    log.push(`${isValid ? 'accepted' : 'rejected'} ${pathname}`)
    callback = params?.oauth_callback ?? callback
    const scripted = answers.get(pathname)
    answers.delete(pathname)
    if (!isValid) response.writeHead(401).end('oauth_problem=signature_invalid')
    else if (scripted !== undefined) response.writeHead(scripted.status).end(scripted.text)
    else response.end(ANSWERS[pathname])
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  async function verify(request: IncomingMessage): Promise<Readonly<Record<string, string>> | undefined> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const header = request.headers.authorization ?? ''
    const fields = [...header.matchAll(/(oauth_\w+)="([^"]*)"/g)].map(([, name = '', value = '']) => [
      name,
      decodeURIComponent(value),
    ])
    const given = Object.fromEntries(fields) as Record<string, string>
    const { oauth_nonce, oauth_timestamp, oauth_token, oauth_consumer_key, oauth_signature_method, ...extra } = given
    const { oauth_signature: _, ...signed } = extra
    const method = OAUTH1_METHODS.find((each) => each === oauth_signature_method)
    if (oauth_consumer_key !== CONSUMER.key || method === undefined) return undefined
    const type = request.headers['content-type']
    const expected = signOAuth1(
      {
        method: request.method ?? '',
        url: `${url}${request.url}`,
        headers: type === undefined ? {} : { 'content-type': type },
        body: Buffer.concat(chunks).toString(),
      },
      {
        signatureMethod: method,
        consumerKey: CONSUMER.key,
        consumerSecret: CONSUMER.secret,
        token: oauth_token === undefined ? undefined : { key: oauth_token, secret: SECRETS[oauth_token] ?? '' },
        extra: signed,
        nonce: oauth_nonce ?? '',
        now: new Date(Number(oauth_timestamp) * 1_000),
      },
    )
    return expected === header ? given : undefined
  }

  return {
    url,
    log,
    answer: (path, text, status = 200) => {
      answers.set(path, { text, status })
    },
    consent(consentUrl) {
      const back = new URL(callback)
      back.searchParams.set('oauth_token', new URL(consentUrl).searchParams.get('oauth_token') ?? '')
      back.searchParams.set('oauth_verifier', 'the-verifier')
      return back
    },
    [Symbol.asyncDispose]: () => {
      server.closeAllConnections()
      return new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

const ANSWERS: Readonly<Record<string, string>> = {
  '/oauth/request_token': 'oauth_token=request-token&oauth_token_secret=request-secret&oauth_callback_confirmed=true',
  '/oauth/access_token': 'oauth_token=access-token&oauth_token_secret=access-secret&user_id=42&screen_name=ann',
  '/v2/user/info': '{"user":{"name":"ann"}}',
}
