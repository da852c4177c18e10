import Provider from 'oidc-provider'
import { listen, type Peer } from './listen.ts'
import { CLIENT } from './provider.ts'

/**
 * oidc-provider with its development interactions: HTML forms for login and consent. It demands PKCE, returns `iss`, and
 * revokes the grant when a code is used twice.
 */
export async function startOpenIdProvider(redirectUri: string): Promise<Peer> {
  let serve: ReturnType<Provider['callback']> | undefined
  const peer = await listen(async (request, response) => {
    await serve?.(request, response)
  })
  const provider = new Provider(peer.url, {
    clients: [{ client_id: CLIENT.id, client_secret: CLIENT.secret, redirect_uris: [redirectUri] }],
    pkce: { required: () => true },
    features: { devInteractions: { enabled: true }, revocation: { enabled: true } },
    findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  })
  serve = provider.callback()
  return peer
}
