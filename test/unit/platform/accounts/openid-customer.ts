import { generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider from 'oidc-provider'

/** Clients of the provider, by the way they authenticate. */
export const CLIENT_SECRET = 'a-client-secret-of-the-openid-provider'
export const CLIENT_KEY = generateKeyPairSync('rsa', { modulusLength: 2048 })

/** An OpenID provider on a loopback port, and a customer who clicks through its pages without a browser. */
export interface OpenIdProvider extends AsyncDisposable {
  readonly url: string
  /** Logs in and consents. @returns the parameters with which the browser is sent back, and how */
  consent(url: string): Promise<BrowserReturn>
  /** Leaves the login page. */
  cancel(url: string): Promise<BrowserReturn>
  /** Status of the first page: the provider rejects some requests without sending the browser back. */
  statusOf(url: string): Promise<number>
}

interface BrowserReturn {
  readonly method: 'GET' | 'POST'
  readonly params: Readonly<Record<string, string>>
}

/** Starts oidc-provider: PKCE is required, refresh tokens rotate, tokens can be revoked. @param redirectUri of its clients */
export async function startOpenIdProvider(redirectUri: string): Promise<OpenIdProvider> {
  let serve: ReturnType<Provider['callback']> | undefined
  const server = createServer((request, response) => void serve?.(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const client = { grant_types: ['authorization_code', 'refresh_token'], redirect_uris: [redirectUri] }
  const provider = new Provider(url, {
    clients: [
      { ...client, client_id: 'header', client_secret: CLIENT_SECRET },
      { ...client, client_id: 'body', client_secret: CLIENT_SECRET, token_endpoint_auth_method: 'client_secret_post' },
      {
        ...client,
        client_id: 'key',
        token_endpoint_auth_method: 'private_key_jwt',
        jwks: { keys: [CLIENT_KEY.publicKey.export({ format: 'jwk' }) as { kty: 'RSA' }] },
      },
    ],
    pkce: { required: () => true },
    rotateRefreshToken: true,
    ttl: { AccessToken: 600, Grant: 600, IdToken: 600, Interaction: 600, RefreshToken: 600, Session: 600 },
    features: { devInteractions: { enabled: true }, revocation: { enabled: true } },
    findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  })
  serve = provider.callback()
  return {
    url,
    consent: (address) => visit({ first: address, origin: url, redirectUri }, (page) => submit(page, url)),
    cancel: (address) =>
      visit({ first: address, origin: url, redirectUri }, (page) => ({
        url: new URL(linkTo(page, 'abort'), url).href,
      })),
    statusOf: async (address) => (await fetch(address, { redirect: 'manual' })).status,
    [Symbol.asyncDispose]: () => {
      server.closeAllConnections()
      return new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

/** What the customer does on a page. */
interface Step {
  readonly url: string
  readonly form?: URLSearchParams
}

const HOPS_MAX = 20

/** Follows the provider with its cookies until it sends the browser back. */
async function visit(
  { first, origin, redirectUri }: { readonly first: string; readonly origin: string; readonly redirectUri: string },
  act: (page: string) => Step,
): Promise<BrowserReturn> {
  const cookies = new Map<string, string>()
  let step: Step = { url: first }
  for (let hop = 0; hop < HOPS_MAX; hop++) {
    const response = await fetch(step.url, {
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(step.form === undefined ? {} : { method: 'POST', body: step.form }),
    })
    for (const cookie of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
      cookies.set(name, value)
    }
    const location = response.headers.get('location')
    const page = await response.text()
    if (location?.startsWith(redirectUri))
      return { method: 'GET', params: Object.fromEntries(new URL(location).searchParams) }
    if (location === null && page.includes(`action="${redirectUri}"`)) return { method: 'POST', params: inputs(page) }
    if (location === null && response.status >= 400) throw new Error(`the provider answers ${response.status}: ${page}`)
    step = location === null ? act(page) : { url: new URL(location, origin).href }
  }
  throw new Error('the provider does not send the browser back')
}

/** Fills in and submits the form of a page. */
function submit(page: string, origin: string): Step {
  const action = /<form[^>]*action="([^"]+)"/.exec(page)?.[1]
  if (action === undefined) throw new Error(`a page without a form: ${page}`)
  const form = new URLSearchParams({ login: 'ann', password: 'any', ...inputs(page) })
  return { url: new URL(action, origin).href, form }
}

function inputs(page: string): Record<string, string> {
  const hidden = [...page.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)]
  return Object.fromEntries(hidden.map(([, name = '', value = '']) => [name, value.replaceAll('&amp;', '&')]))
}

function linkTo(page: string, word: string): string {
  const found = [...page.matchAll(/href="([^"]+)"/g)].find(([, href = '']) => href.includes(word))?.[1]
  if (found === undefined) throw new Error(`a page without a link to ${word}: ${page}`)
  return found
}
