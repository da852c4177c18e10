import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

/** A server in front of an emulation of GitHub that links pages as GitHub does. */
export interface GitHubLinks extends AsyncDisposable {
  readonly url: string
}

const BY_NAME = /^\/repos\/([^/]+\/[^/]+)\//
const BY_ID = /^\/repositories\/(\d+)\//
/** Headers that belong to one connection. */
const OF_CONNECTION = new Set(['connection', 'content-encoding', 'content-length', 'keep-alive', 'transfer-encoding'])

/**
 * Passes requests on. GitHub names the next page of `/repos/{owner}/{name}/issues` by the id of the repository,
 * `/repositories/{id}/issues?page=2`, where the emulation repeats the path of the request.
 *
 * @param upstream address of the emulation
 */
export async function startGitHubLinks(upstream: string): Promise<GitHubLinks> {
  const names = new Map<string, string>()
  const server = createServer((request, response) => {
    forward(request, response).catch((error: Error) => response.writeHead(502).end(error.message))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  async function forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url: target = '/' } = request
    const path = target.replace(BY_ID, (whole, id: string) => (names.has(id) ? `/repos/${names.get(id)}/` : whole))
    const body = await buffer(request)
    const headers = Object.entries(request.headers).filter(([name]) => !OF_CONNECTION.has(name) && name !== 'host')
    const answer = await fetch(upstream + path, {
      method,
      headers: headers.map(([name, value]) => [name, String(value)] as [string, string]),
      redirect: 'manual',
      ...(body.length === 0 ? {} : { body }),
    })
    const link = answer.headers.get('link')
    const name = BY_NAME.exec(path)?.[1]
    const shown = Object.fromEntries([...answer.headers].filter(([header]) => !OF_CONNECTION.has(header)))
    if (link !== null) shown.link = await relinked(link, name, request.headers.authorization)
    response.writeHead(answer.status, shown).end(Buffer.from(await answer.arrayBuffer()))
  }

  /** The links on the origin of this server, by the id of the repository. */
  async function relinked(link: string, name: string | undefined, authorization = ''): Promise<string> {
    const here = link.replaceAll(/<https?:\/\/[^/>]+/g, `<${url}`)
    if (name === undefined) return here
    const id = await idOf(name, authorization)
    return here.replaceAll(`${url}/repos/${name}/`, `${url}/repositories/${id}/`)
  }

  async function idOf(name: string, authorization: string): Promise<string> {
    const known = [...names].find(([, each]) => each === name)?.[0]
    if (known !== undefined) return known
    const answer = await fetch(`${upstream}/repos/${name}`, { headers: { authorization } })
    const { id } = (await answer.json()) as { readonly id: number }
    names.set(String(id), name)
    return String(id)
  }

  return {
    url,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
