import { OAuth2Server } from 'oauth2-mock-server'

/** oauth2-mock-server: its authorise address redirects at once, without a page. */
export async function startMockProvider(): Promise<{ readonly url: string } & AsyncDisposable> {
  const server = new OAuth2Server()
  await server.issuer.keys.generate('RS256')
  await server.start(0, 'localhost')
  return {
    url: server.issuer.url ?? '',
    [Symbol.asyncDispose]: () => server.stop(),
  }
}
