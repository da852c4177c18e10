import { setMaxListeners } from 'node:events'
import {
  Health as HealthService,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from '../../../gen/grpc/health/v1/health_pb.ts'
import { Failure } from '../../base/index.ts'
import { defineService, type ServiceDefinition } from '../service.ts'

const SERVING = ServingStatus.SERVING
const NOT_SERVING = ServingStatus.NOT_SERVING

/**
 * Which services serve. The empty name stands for the whole server, as in `grpc.health.v1`.
 *
 * Everything serves from the start; a drain turns everything off for good.
 */
export class Health {
  readonly #serving = new Map<string, boolean>()
  readonly #changes = new EventTarget()
  #isDraining = false

  /** @param services full names of the services beside the whole */
  constructor(services: readonly string[]) {
    for (const name of ['', ...services]) this.#serving.set(name, true)
    setMaxListeners(0, this.#changes) // one for each open Watch, which `publicStreamsMax` bounds
  }

  /** Says whether a service serves, e.g. when a dependency came or went. Unknown names are added. */
  set(service: string, isServing: boolean): void {
    this.#serving.set(service, isServing)
    this.#changes.dispatchEvent(new Event('change'))
  }

  /** Turns everything to NOT_SERVING, so that balancers send nothing new. */
  startDrain(): void {
    this.#isDraining = true
    this.#changes.dispatchEvent(new Event('change'))
  }

  /** Whether the service serves; `undefined` for an unknown name. */
  isServing(service: string): boolean | undefined {
    const isServing = this.#serving.get(service)
    return isServing === undefined ? undefined : isServing && !this.#isDraining
  }

  get services(): readonly string[] {
    return [...this.#serving.keys()]
  }

  /** The state now and after every change, until the signal aborts. */
  async *watch(service: string, signal: AbortSignal): AsyncGenerator<boolean | undefined> {
    let last: boolean | undefined | null = null
    while (!signal.aborted) {
      const changed = this.#nextChange(signal)
      const now = this.isServing(service)
      if (now !== last) yield now
      last = now
      await changed
    }
  }

  #nextChange(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const once = new AbortController()
      const done = () => {
        once.abort()
        resolve()
      }
      this.#changes.addEventListener('change', done, { once: true, signal: once.signal })
      signal.addEventListener('abort', done, { once: true, signal: once.signal })
    })
  }
}

/** `grpc.health.v1.Health`, open to everyone. */
export function healthService(health: Health): ServiceDefinition {
  return defineService(HealthService, {
    check: {
      access: 'public',
      async handle({ service }) {
        const isServing = health.isServing(service)
        if (isServing === undefined) throw new Failure('RESOURCE_NOT_FOUND', 'no service of this name')
        return { status: isServing ? SERVING : NOT_SERVING }
      },
    },
    list: {
      access: 'public',
      async handle() {
        const entries = health.services.map((name) => [name, { status: statusOf(health.isServing(name)) }] as const)
        return { statuses: Object.fromEntries(entries) }
      },
    },
    watch: {
      access: 'public',
      async *handle({ service }, { signal }) {
        for await (const isServing of health.watch(service, signal)) yield { status: statusOf(isServing) }
      },
    },
  })
}

function statusOf(isServing: boolean | undefined): ServingStatus {
  if (isServing === undefined) return ServingStatus.SERVICE_UNKNOWN
  return isServing ? SERVING : NOT_SERVING
}
