import { setTimeout as sleep } from 'node:timers/promises'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { METRICS, type MetricSpec } from './metric-table.ts'
import type { HealthProblem } from './metrics-server.ts'

/** How often a value is read. */
export interface ReadThrottle {
  /** Cache TTL of a value. */
  readonly intervalMs: number
  /** Largest share of the time that reading may take: slow reads are made less often. */
  readonly dutyCycleMax: number
}

/** A scrape waits this long for what is read elsewhere, counted from when the read began. */
const READ_MS_MAX = 500

/**
 * Throttles an expensive read: one at a time, and cached as the throttle says. `undefined` while it fails, or takes longer than 500 ms:
 * a database that does not answer delays no scrape.
 */
export function throttledRead<Value>(
  read: () => Promise<Value>,
  { intervalMs, dutyCycleMax }: ReadThrottle,
): () => Promise<Value | undefined> {
  let latest: Promise<Value | undefined> | undefined
  let freshUntilMs = 0
  let startedMs = 0
  const readNow = async (): Promise<Value | undefined> => {
    startedMs = performance.now()
    freshUntilMs = Number.POSITIVE_INFINITY
    try {
      return await read()
    } catch {
      return undefined
    } finally {
      const tookMs = performance.now() - startedMs
      freshUntilMs = performance.now() + Math.max(intervalMs, tookMs / dutyCycleMax)
    }
  }
  return () => {
    if (latest === undefined || performance.now() >= freshUntilMs) latest = readNow()
    return Promise.race([
      latest,
      sleep(Math.max(0, startedMs + READ_MS_MAX - performance.now()), undefined, { ref: false }),
    ])
  }
}

/** Counters of a worker, read at each scrape so that counting costs its loops nothing. */
export interface WorkerCounters {
  readonly ticker: {
    readonly passes: number
    readonly failedPasses: number
    readonly fired: number
    readonly skipped: Readonly<Record<string, number>>
    readonly missed: number
    readonly suspended: number
  }
  readonly runs: {
    readonly running: number
    /** Settled attempts by what became of the run. */
    readonly outcomes: Readonly<Record<string, number>>
    readonly leasesLost: number
    readonly pages: number
    readonly records: number
  }
  readonly leasesExpired: number
}

/** What the health check of a process knows, read at each scrape. */
export interface HealthFigures {
  readonly problem: HealthProblem | undefined
  /** By condition of the database. */
  readonly errorCounts: ReadonlyMap<string, number>
  readonly clockOffsetSeconds: number
}

/** Counters of a delivery worker, read at each scrape. */
export interface DeliveryCounters {
  readonly inFlight: number
  readonly events: number
  /** Settled deliveries by their state afterwards. */
  readonly outcomes: Readonly<Record<string, number>>
}

/** A finished call. */
export interface CallObservation {
  /** The operation's path as the contract names it, never the client's text. */
  readonly operation: string
  readonly outcome: string
  readonly durationMs: number
}

/** Instruments of one operation, cached by its name: looking labels up per call would cost more than counting. */
interface OperationInstruments {
  readonly duration: { observe(seconds: number): void }
  readonly byCode: Map<string, { inc(): void }>
}

/** Counting a long queue takes at most 1 % of the time. */
const QUEUE_DEPTH_THROTTLE = { intervalMs: 10_000, dutyCycleMax: 0.01 } as const
/** There may be millions of accounts, which seldom change. */
const ACCOUNTS_THROTTLE = { intervalMs: 60_000, dutyCycleMax: 0.01 } as const
/** Names of integrations that are labels, of one process. */
const INTEGRATIONS_MAX = 200
/** Classes of the request log, and those of the metric. */
const OUTBOUND_CLASSES = {
  success: 'ok',
  rate_limited: 'rate_limited',
  error: 'error',
  invalid_response: 'error',
  timeout: 'unreachable',
  network_error: 'unreachable',
  blocked: 'blocked',
  cancelled: 'cancelled',
} as const
/** Coarse enough that watching the event loop costs nothing. */
const EVENT_LOOP_PRECISION_MS = 50

/** Metrics of one process in the text format of Prometheus. A process shows only what it does: a server has no ticks. */
export class Metrics {
  readonly #registry = new Registry()
  readonly #operations = new Map<string, OperationInstruments>()
  readonly #requests = this.#counter(METRICS.requests)
  readonly #durations = this.#histogram(METRICS.requestDuration)
  readonly #lateness = this.#histogram(METRICS.tickLateness)
  readonly #callLogDropped = this.#counter(METRICS.callLogDropped)
  readonly #outboundCalls = this.#counter(METRICS.outboundCalls)
  readonly #inboundEvents = this.#counter(METRICS.inboundEvents)
  readonly #integrations = new Set<string>()
  readonly #toolCalls = this.#counter(METRICS.toolCalls)
  /** What is read from the database, each `undefined` while that does not answer. */
  readonly #databaseReads: (() => Promise<unknown>)[] = []

  constructor() {
    this.#gauge(METRICS.databaseFigures, async (gauge) => {
      const found = await Promise.all(this.#databaseReads.map((read) => read()))
      gauge.set(found.includes(undefined) ? 0 : 1)
    })
    collectDefaultMetrics({ register: this.#registry, eventLoopMonitoringPrecision: EVENT_LOOP_PRECISION_MS })
  }

  /** Counts a finished call. */
  readonly observeCall = ({ operation, outcome, durationMs }: CallObservation): void => {
    const { duration, byCode } = this.#operation(operation)
    const requests = byCode.get(outcome) ?? this.#requests.labels({ operation, code: outcome })
    byCode.set(outcome, requests)
    duration.observe(durationMs / 1_000)
    requests.inc()
  }

  /** Counts a call of a tool. @param errorType empty: it succeeded */
  readonly observeToolCall = (errorType: string): void => {
    this.#toolCalls.inc({ outcome: errorType === '' ? 'ok' : errorType })
  }

  /** Counts a request to a third party, by a bounded number of integrations. */
  readonly observeOutboundCall = (call: {
    readonly integrationName: string | undefined
    readonly class: keyof typeof OUTBOUND_CLASSES
  }): void => {
    const { integrationName: name = '' } = call
    if (this.#integrations.size < INTEGRATIONS_MAX) this.#integrations.add(name)
    const integration = this.#integrations.has(name) ? name : 'other'
    this.#outboundCalls.inc({ integration, class: OUTBOUND_CLASSES[call.class] })
  }

  /** Counts a received webhook in its state. */
  readonly observeInboundEvent = (state: string): void => {
    this.#inboundEvents.inc({ state })
  }

  /** Counts entries of the request log that were not stored. */
  readonly observeCallLogDrop = (entries: number): void => {
    this.#callLogDropped.inc(entries)
  }

  /** Counts ticks that have their run or skip, by how late each was, in seconds. */
  readonly observeTicks = (latenessSeconds: readonly number[]): void => {
    for (const seconds of latenessSeconds) this.#lateness.observe(Math.max(0, seconds))
  }

  /** Shows the health of the process. */
  readHealth(health: HealthFigures): void {
    this.#gauge(METRICS.healthProblem, (gauge) => {
      gauge.reset()
      if (health.problem !== undefined) gauge.set({ reason: health.problem.reason }, 1)
    })
    this.#externalCounter(METRICS.databaseErrors, () =>
      [...health.errorCounts].map(([reason, count]) => [{ reason }, count]),
    )
    this.#gauge(METRICS.clockOffset, (gauge) => gauge.set(health.clockOffsetSeconds))
  }

  /** Shows how many log lines were dropped. */
  readLogSink(sink: { readonly dropped: number }): void {
    this.#externalCounter(METRICS.logLinesDropped, () => [[{}, sink.dropped]])
  }

  /** Shows the age of the oldest due tick. */
  readOldestDueAge(read: () => number): void {
    this.#gauge(METRICS.oldestDueAge, (gauge) => gauge.set(read()))
  }

  /** Shows how much there is of something, by the labels of its metric; `read` is throttled. */
  readCounts(
    name: 'queueDepth' | 'deliveryBacklog' | 'unservedWork' | 'accounts',
    read: () => Promise<readonly { readonly count: number }[]>,
  ): void {
    const figures = throttledRead(read, name === 'accounts' ? ACCOUNTS_THROTTLE : QUEUE_DEPTH_THROTTLE)
    this.#databaseReads.push(figures)
    this.#gauge(METRICS[name], async (gauge) => {
      const found = await figures()
      gauge.reset()
      for (const { count, ...labels } of found ?? []) gauge.set(labels, count)
    })
  }

  /** Shows the counters of a delivery worker. */
  readDeliveries(read: () => DeliveryCounters): void {
    this.#gauge(METRICS.deliveriesInFlight, (gauge) => gauge.set(read().inFlight))
    this.#externalCounter(METRICS.eventsDispatched, () => [[{}, read().events]])
    this.#externalCounter(METRICS.deliveryAttempts, () =>
      Object.entries(read().outcomes).map(([outcome, count]) => [{ outcome }, count]),
    )
  }

  /** Shows the counters of a worker. */
  readWorker(read: () => WorkerCounters): void {
    this.#gauge(METRICS.runsHeld, (gauge) => gauge.set(read().runs.running))
    this.#externalCounter(METRICS.ticks, () => {
      const { fired, skipped, missed, suspended } = read().ticker
      const plain = Object.entries({ fired, missed, suspended }).map(
        ([outcome, count]) => [outcome, '', count] as const,
      )
      const reasons = Object.entries(skipped).map(([reason, count]) => ['skipped', reason, count] as const)
      return [...plain, ...reasons].map(([outcome, reason, count]) => [{ outcome, reason }, count])
    })
    this.#externalCounter(METRICS.tickPasses, () => {
      const { passes, failedPasses } = read().ticker
      return [
        [{ outcome: 'done' }, passes],
        [{ outcome: 'failed' }, failedPasses],
      ]
    })
    this.#externalCounter(METRICS.runsSettled, () =>
      Object.entries(read().runs.outcomes).map(([outcome, count]) => [{ outcome }, count]),
    )
    this.#externalCounter(METRICS.leasesLost, () => [[{}, read().runs.leasesLost]])
    this.#externalCounter(METRICS.leasesExpired, () => [[{}, read().leasesExpired]])
    this.#externalCounter(METRICS.pagesDelivered, () => [[{}, read().runs.pages]])
    this.#externalCounter(METRICS.recordsDelivered, () => [[{}, read().runs.records]])
  }

  get contentType(): string {
    return this.#registry.contentType
  }

  /** All metrics, as a scrape gets them. */
  async text(): Promise<string> {
    return await this.#registry.metrics()
  }

  #operation(operation: string): OperationInstruments {
    const known = this.#operations.get(operation)
    if (known !== undefined) return known
    const made: OperationInstruments = { duration: this.#durations.labels({ operation }), byCode: new Map() }
    this.#operations.set(operation, made)
    return made
  }

  #counter(spec: MetricSpec): Counter {
    return new Counter(this.#configuration(spec))
  }

  #histogram({ buckets = [], ...spec }: MetricSpec): Histogram {
    return new Histogram({ ...this.#configuration(spec), buckets: [...buckets] })
  }

  #gauge(spec: MetricSpec, collect: (gauge: Gauge) => void | Promise<void>): void {
    const gauge: Gauge = new Gauge({ ...this.#configuration(spec), collect: () => collect(gauge) })
  }

  /** A counter whose values are counted elsewhere. */
  #externalCounter(
    spec: MetricSpec,
    read: () => readonly (readonly [Readonly<Record<string, string>>, number])[],
  ): void {
    const counter: Counter = new Counter({
      ...this.#configuration(spec),
      collect() {
        counter.reset()
        for (const [labels, count] of read()) counter.inc(labels, count)
      },
    })
  }

  #configuration({ name, help, labels }: MetricSpec) {
    return { name, help, labelNames: [...labels], registers: [this.#registry] }
  }
}
