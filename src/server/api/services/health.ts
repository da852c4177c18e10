import { setMaxListeners } from 'node:events'
import {
  Health as HealthService,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from '../../../../gen/grpc/health/v1/health_pb.ts'
import { Failure } from '../../../foundation/base/index.ts'
import type { HealthProblem } from '../../../foundation/telemetry/index.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'

const SERVING = ServingStatus.SERVING
const NOT_SERVING = ServingStatus.NOT_SERVING
const DRAINING: HealthProblem = { reason: 'SHUTTING_DOWN', message: 'the server is shutting down' }

/**
 * Health of each service, as in `grpc.health.v1`: the empty name is the whole server. All are SERVING at start; a drain sets all to
 * NOT_SERVING, finally.
 */
export class Health {
  /** The problem of each service that does not serve. */
  readonly #problems = new Map<string, HealthProblem | undefined>()
  readonly #changes = new EventTarget()
  #isDraining = false

  /** @param services full names of the services */
  constructor(services: readonly string[]) {
    for (const name of ['', ...services]) this.#problems.set(name, undefined)
    setMaxListeners(0, this.#changes) // one for each open Watch, which `publicStreamsMax` bounds
  }

  /**
   * Sets the problem of a service; undefined: it serves. A problem of the whole server is one of every service. Unknown
   * names are added.
   */
  set(service: string, problem: HealthProblem | undefined): void {
    this.#problems.set(service, problem)
    this.#changes.dispatchEvent(new Event('change'))
  }

  /** Sets all to NOT_SERVING, so that load balancers send no new requests. */
  startDrain(): void {
    this.#isDraining = true
    this.#changes.dispatchEvent(new Event('change'))
  }

  /** Why the service does not serve; `undefined` when it does. */
  problemOf(service: string): HealthProblem | undefined {
    if (this.#isDraining) return DRAINING
    return this.#problems.get('') ?? this.#problems.get(service)
  }

  /** Whether the service serves; `undefined` for an unknown name. */
  isServing(service: string): boolean | undefined {
    return this.#problems.has(service) ? this.problemOf(service) === undefined : undefined
  }

  get services(): readonly string[] {
    return [...this.#problems.keys()]
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

/** `grpc.health.v1.Health`. */
export function healthService(health: Health): ServiceDefinition {
  return defineService(HealthService, {
    async check({ service }) {
      const isServing = health.isServing(service)
      if (isServing === undefined) throw new Failure('RESOURCE_NOT_FOUND', 'no service of this name')
      return { status: isServing ? SERVING : NOT_SERVING }
    },
    async list() {
      const entries = health.services.map((name) => [name, { status: statusOf(health.isServing(name)) }] as const)
      return { statuses: Object.fromEntries(entries) }
    },
    async *watch({ service }, context) {
      for await (const isServing of health.watch(service, context.signal)) yield { status: statusOf(isServing) }
    },
  })
}

function statusOf(isServing: boolean | undefined): ServingStatus {
  if (isServing === undefined) return ServingStatus.SERVICE_UNKNOWN
  return isServing ? SERVING : NOT_SERVING
}
