import type { IncomingMessage } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { CertificateAuthority } from '../../support/certificate-authority.ts'

/** A request as a third party gets it. */
export interface ProviderRequest {
  readonly method: string
  /** With the host that the client named. */
  readonly url: URL
  readonly headers: IncomingMessage['headers']
  readonly body: string
  /** All of it as one text, percent-decoded, credentials of HTTP Basic decoded: to look for values in. */
  readonly text: string
}

/** What a third party answers. */
export interface ProviderAnswer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string | Buffer
}

/** One HTTPS server for the hosts of all third parties, of which one is played at a time. */
export interface StandIn extends AsyncDisposable {
  readonly port: number
  /** Answers from now on. */
  play(answer: (request: ProviderRequest) => ProviderAnswer): void
}

/** Starts it on a free port of loopback, with a certificate of the authority for each name that is asked for. */
export async function startStandIn(authority: CertificateAuthority): Promise<StandIn> {
  let answerTo: (request: ProviderRequest) => ProviderAnswer = () => ({ status: 503, body: '' })
  const server = createServer(
    { SNICallback: (name, done) => done(null, authority.contextOf(name)) },
    async (incoming, outgoing) => {
      const { status = 200, headers = {}, body } = answerTo(await readRequest(incoming))
      outgoing.writeHead(status, headers).end(body)
    },
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    play: (answer) => {
      answerTo = answer
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function readRequest(incoming: IncomingMessage): Promise<ProviderRequest> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  const { method = '', headers } = incoming
  const body = Buffer.concat(chunks).toString()
  const basic = /^Basic (.*)$/.exec(headers.authorization ?? '')?.[1]
  const decoded = basic === undefined ? '' : Buffer.from(basic, 'base64').toString()
  const text = [incoming.url, JSON.stringify(headers), body, decoded].map(percentDecoded).join('\n')
  return { method, url: new URL(`https://${headers.host}${incoming.url}`), headers, body, text }
}

function percentDecoded(text: string | undefined): string {
  try {
    return decodeURIComponent((text ?? '').replaceAll('+', ' '))
  } catch {
    return text ?? ''
  }
}
