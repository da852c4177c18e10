import type { VerifiedDelivery } from './receiver.ts'

/** A run as known from its signed deliveries. */
export interface ReceivedRun {
  readonly id: string
  /** From 1, in the order of arrival. */
  readonly number: number
  readonly path: string
  readonly scheduledFor: string
  readonly sequences: readonly number[]
  readonly deliveries: number
  /** Every record that was delivered, by resource, in the order of arrival. */
  readonly recordIds: ReadonlyMap<string, readonly number[]>
  readonly isCompleted: boolean
}

/** Runs composed from deliveries. */
export class ReceivedRuns {
  readonly #runs = new Map<string, ReceivedRun>()

  /** Adds a delivery. @returns its run so far */
  add(delivery: VerifiedDelivery): ReceivedRun {
    const run = this.#runs.get(delivery.runId) ?? newRun(delivery, this.#runs.size + 1)
    const { event, sequence, resource, recordIds } = delivery
    const known = resource === undefined ? [] : (run.recordIds.get(resource) ?? [])
    const next: ReceivedRun = {
      ...run,
      deliveries: run.deliveries + 1,
      sequences: sequence === undefined ? run.sequences : [...run.sequences, sequence],
      recordIds:
        resource === undefined
          ? run.recordIds
          : new Map([...run.recordIds, [resource, [...known, ...(recordIds ?? [])]]]),
      isCompleted: run.isCompleted || event === 'completed',
    }
    this.#runs.set(run.id, next)
    return next
  }

  /** All runs, in the order of their first delivery. */
  get runs(): readonly ReceivedRun[] {
    return [...this.#runs.values()]
  }

  /** The first `count` runs of ticks from a time on, once all of them are complete; undefined before. */
  completedFrom(scheduledFrom: string, count: number): readonly ReceivedRun[] | undefined {
    const from = Date.parse(scheduledFrom)
    const runs = this.runs.filter((run) => run.isCompleted && Date.parse(run.scheduledFor) >= from).slice(0, count)
    return runs.length === count ? runs : undefined
  }
}

function newRun({ runId, path, scheduledFor }: VerifiedDelivery, number: number): ReceivedRun {
  return {
    id: runId,
    number,
    path,
    deliveries: 0,
    isCompleted: false,
    scheduledFor: scheduledFor ?? '',
    sequences: [],
    recordIds: new Map(),
  }
}

/** Number of records of a resource that a run delivered. */
export function countRecords(run: ReceivedRun, resource: string): number {
  return run.recordIds.get(resource)?.length ?? 0
}
