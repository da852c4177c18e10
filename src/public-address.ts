import type { Config } from './config.ts'

/**
 * Address under which clients and browsers reach the server: PATCHBAY_PUBLIC_URL, else where it listens. Never taken from a
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
    return (publicUrl ?? `${tlsCert === undefined ? 'http' : 'https'}://${name}:${this.#port}`).replace(/\/+$/, '')
  }
}

/** A warning where links begin with the address that stands for all of a machine's, which no browser opens. @param url of the links */
export function publicAddressWarnings({ publicUrl, host }: Pick<Config, 'publicUrl' | 'host'>, url: string): string[] {
  const isWildcard = host === '0.0.0.0' || host === '::'
  return publicUrl === undefined && isWildcard
    ? [`Links begin with ${url}, which no browser opens: set PATCHBAY_PUBLIC_URL to the address of this server.`]
    : []
}
