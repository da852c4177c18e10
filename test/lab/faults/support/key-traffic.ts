import { setTimeout as sleep } from 'node:timers/promises'
import { newId } from '../../../../src/foundation/base/index.ts'
import { callRest, expectJson, type JsonAnswer } from '../../../support/rest.ts'
import type { KeyCluster } from './key-cluster.ts'

const PAUSE_MS = 60

/** An account that was created with a request id and a context value in the object store. */
interface Created {
  readonly environmentId: string
  readonly accountId: string
  readonly archive: string
  readonly request: object
}

/** What requests saw while keys were rotated. */
export interface Traffic {
  readonly created: readonly Created[]
  readonly reads: number
  /** Values that could not be read, or were others. */
  readonly failures: readonly string[]
}

/** Creates environments, which get data keys, with accounts in them, and reads what was created, until the signal. */
export class KeyTraffic implements Traffic {
  readonly created: Created[] = []
  readonly failures: string[] = []
  reads = 0
  readonly #cluster: KeyCluster
  #integrationId = ''

  constructor(cluster: KeyCluster) {
    this.#cluster = cluster
  }

  /** Creates the integration that every environment installs. */
  async prepare(): Promise<void> {
    const config = {
      label: 'Example',
      base_url: 'http://127.0.0.1:9',
      credentials: {
        format: 'api_key',
        config: { fields: [{ name: 'api_key', label: 'API key', type: 'password', required: true }] },
      },
      authorization: { format: 'bearer', config: { token: '{{api_key}}' } },
      resources: { items: { list: { method: 'get', path: '/items' } } },
    }
    const [url = ''] = this.#cluster.urls
    const body = { name: 'keys-example', config }
    this.#integrationId = (await expectJson('POST', `${url}/integration`, this.#teamToken, body)).id
  }

  async run(signal: AbortSignal): Promise<void> {
    const loops = [
      this.#repeat(signal, () => this.#create()),
      ...[1, 2].map(() => this.#repeat(signal, () => this.#read())),
    ]
    await Promise.all(loops)
  }

  get #teamToken(): string {
    return this.#cluster.teamToken
  }

  async #repeat(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    while (!signal.aborted) {
      // A server that is killed takes its requests along: only what was answered counts.
      await work().catch((error: unknown) => {
        if (!/fetch failed|terminated|no server|UNAVAILABLE|other side closed/.test(String(error)))
          this.failures.push(String(error))
      })
      await sleep(PAUSE_MS)
    }
  }

  async #call(method: string, path: string, environmentId?: string, body?: object): Promise<JsonAnswer> {
    const { urls } = this.#cluster
    const url = urls[Math.floor(Math.random() * urls.length)]
    if (url === undefined) throw new Error('no server')
    const headers = environmentId === undefined ? {} : { 'patchbay-environment': environmentId }
    const answer = await callRest(method, `${url}${path}`, this.#teamToken, body, headers)
    if (answer.status !== 200)
      throw new Error(`${method} ${path} answered ${answer.status}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }

  async #create(): Promise<void> {
    const { id: environmentId } = await this.#call('POST', '/environment', undefined, { name: newId() })
    const installation = await this.#call('POST', '/environment-integration', environmentId, {
      integration_id: this.#integrationId,
      request_id: newId(),
    })
    const archive = `archive of ${environmentId}`
    const request = {
      environment_integration_id: installation.id,
      tenant_id: 'acme',
      credentials: { api_key: `key of ${environmentId}` },
      context: { archive: { text: archive } },
      object_store_context_fields: ['archive'],
      request_id: newId(),
    }
    const { id: accountId } = await this.#call('POST', '/integrated-account', environmentId, request)
    this.created.push({ environmentId, accountId, archive, request })
  }

  async #read(): Promise<void> {
    const one = this.created[Math.floor(Math.random() * this.created.length)]
    if (one === undefined) return
    const account = await this.#call('GET', `/integrated-account/${one.accountId}`, one.environmentId)
    if (account.context?.archive?.text !== one.archive)
      this.failures.push(
        `the context of ${one.accountId} is ${JSON.stringify([account.context, account.context_errors])}`,
      )
    const repeated = await this.#call('POST', '/integrated-account', one.environmentId, one.request)
    if (repeated.id !== one.accountId) this.failures.push(`a repetition of ${one.accountId} gave ${repeated.id}`)
    this.reads++
  }
}
