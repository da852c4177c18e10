import type { Config } from './config.ts'

/**
 * Address under which clients and browsers reach the server: PATCHBAY_PUBLIC_URL, else where it listens (`localhost` for all
 * addresses of the machine). Never taken from a
 * request, whose Host header anybody can choose.
 */
export class PublicAddress {
  readonly #config: Pick<Config, 'publicUrl' | 'tlsCert' | 'host' | 'port'>
  #port: number

  constructor(config: Pick<Config, 'publicUrl' | 'tlsCert' | 'host' | 'port'>) {
    this.#config = config
    this.#port = config.port
  }

  /** Sets the port that was bound, where the configuration takes any free one. */
  setPort(port: number): void {
    this.#port = port
  }

  /** The path of the address, without a trailing slash; empty for most. */
  get basePath(): string {
    const { publicUrl } = this.#config
    return publicUrl === undefined ? '' : new URL(publicUrl).pathname.replace(/\/+$/, '')
  }

  /** Without a trailing slash. */
  get url(): string {
    const { publicUrl, tlsCert, host } = this.#config
    const name = host.includes(':') ? `[${host}]` : host
    const reached = isEveryAddress(host) ? 'localhost' : name
    return (publicUrl ?? `${tlsCert === undefined ? 'http' : 'https'}://${reached}:${this.#port}`).replace(/\/+$/, '')
  }
}

/** A warning where links lead to this machine alone, although it listens on all of its addresses. @param url of the links */
export function publicAddressWarnings({ publicUrl, host }: Pick<Config, 'publicUrl' | 'host'>, url: string): string[] {
  return publicUrl === undefined && isEveryAddress(host)
    ? [
        `Links begin with ${url}, which only browsers of this machine open: set PATCHBAY_PUBLIC_URL to its address for others.`,
      ]
    : []
}

/** Whether it stands for all addresses of the machine, and is none that a browser opens. */
function isEveryAddress(host: string): boolean {
  return host === '0.0.0.0' || host === '::'
}
