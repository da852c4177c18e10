import type { Verified } from './receiver.ts'

/** A run as the receiver knows it: from signed deliveries alone. */
export interface SeenRun {
  readonly id: string
  /** 1 for the first run that arrived. */
  readonly number: number
  readonly path: string
  readonly scheduledFor: string
  readonly sequences: readonly number[]
  readonly deliveries: number
  /** Every record that was delivered, by resource, in the order of arrival. */
  readonly recordIds: ReadonlyMap<string, readonly number[]>
  readonly isCompleted: boolean
}

/** What the deliveries add up to. */
export class Journal {
  readonly #runs = new Map<string, SeenRun>()

  /** Adds a delivery and returns its run as it now is. */
  note(delivery: Verified): SeenRun {
    const run = this.#runs.get(delivery.runId) ?? newRun(delivery, this.#runs.size + 1)
    const { event, sequence, resource, recordIds } = delivery
    const known = resource === undefined ? [] : (run.recordIds.get(resource) ?? [])
    const next: SeenRun = {
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

  /** All runs, in the order in which they began to arrive. */
  get runs(): readonly SeenRun[] {
    return [...this.#runs.values()]
  }

  /** The first so many runs of ticks from a moment on, once all of them are complete; undefined until then. */
  completedFrom(scheduledFrom: string, count: number): readonly SeenRun[] | undefined {
    const from = Date.parse(scheduledFrom)
    const runs = this.runs.filter((run) => run.isCompleted && Date.parse(run.scheduledFor) >= from).slice(0, count)
    return runs.length === count ? runs : undefined
  }
}

function newRun({ runId, path, scheduledFor }: Verified, number: number): SeenRun {
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

/** How many records of a resource a run delivered. */
export function countOf(run: SeenRun, resource: string): number {
  return run.recordIds.get(resource)?.length ?? 0
}
