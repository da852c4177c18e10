import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'

/** A fault, and how probable it is. */
interface ReceiverFault {
  readonly share: number
  /** The event is processed, but the sender does not learn of it. */
  readonly isAccepted?: boolean
  readonly respond: (response: ServerResponse) => void
}

/** What a receiver does wrong; the rest is accepted. */
const FAULTS: readonly ReceiverFault[] = [
  { share: 0.12, respond: (response) => response.writeHead(500).end('broken') },
  { share: 0.12, respond: (response) => response.socket?.destroy() },
  { share: 0.03, respond: (response) => response.writeHead(404).end() },
  { share: 0.02, respond: (response) => response.writeHead(302, { location: '/elsewhere' }).end() },
  { share: 0.004, respond: (response) => response.writeHead(429, { 'retry-after': '0.2' }).end() },
  { share: 0.005, isAccepted: true, respond: (response) => response.socket?.destroy() },
  // Never answered: the attempt times out.
  { share: 0.001, respond: () => {} },
]

/** Receivers of deliveries that fail at random and count what they accepted. */
export class FaultyReceiver implements AsyncDisposable {
  readonly #server = createServer((request, response) => void this.#receive(request, response))
  readonly #random: () => number
  readonly #secrets = new Map<string, string>()
  /** Times that an event was accepted, by path and id. */
  readonly accepted = new Map<string, number>()
  /** Requests of any kind. */
  requests = 0
  faults = 0
  /** Requests whose signature the standardwebhooks library rejects, or whose body is about another event. */
  forged = 0

  constructor(random: () => number) {
    this.#random = random
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** The secret that deliveries to a path are signed with. */
  expect(path: string, secret: string): void {
    this.#secrets.set(path, secret)
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    try {
      for await (const chunk of request) chunks.push(chunk)
    } catch {
      return // its sender was killed
    }
    this.requests++
    const path = request.url ?? ''
    if (!this.#isGenuine(path, request.headers as Record<string, string>, Buffer.concat(chunks).toString()))
      this.forged++
    const fault = this.#drawFault()
    if (fault === undefined || fault.isAccepted === true) {
      const key = `${path} ${request.headers['webhook-id']}`
      this.accepted.set(key, (this.accepted.get(key) ?? 0) + 1)
    }
    if (fault === undefined) return void response.writeHead(204).end()
    this.faults++
    fault.respond(response)
  }

  #drawFault(): ReceiverFault | undefined {
    let dice = this.#random()
    return FAULTS.find(({ share }) => {
      dice -= share
      return dice < 0
    })
  }

  #isGenuine(path: string, headers: Record<string, string>, body: string): boolean {
    try {
      const event = new Webhook(this.#secrets.get(path) ?? '').verify(body, headers) as { readonly id: string }
      return event.id === headers['webhook-id']
    } catch {
      return false
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
