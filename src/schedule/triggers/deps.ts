import type { JsonObject, Violation } from '../../base/index.ts'
import type { RunQueue, RunReferences } from '../../queue/index.ts'
import type { Tx } from '../../storage/index.ts'
import type { CatchUpPolicy } from '../tick/due-ticks.ts'

/** What looking after triggers needs. */
export interface TriggerDeps {
  readonly queue: Pick<RunQueue, 'enqueue' | 'enqueueTicks' | 'countWaiting'>
  readonly minTickGapSeconds: number
  readonly catchUp?: CatchUpPolicy | undefined
  /** Moves the clocks of process and database, for tests. */
  readonly now?: (() => Date) | undefined
  /** Everything that keeps resources from replacing those of the job, with fields below `resources`. */
  checkResources(
    tx: Tx,
    environmentId: string,
    syncJobId: string,
    resources: readonly JsonObject[],
  ): Promise<readonly Violation[]>
  /**
   * The arguments with the schema's defaults filled in.
   *
   * @throws Failure ARGS_INVALID
   */
  resolveArgs(rules: RunReferences['argsRules'], given: JsonObject): Promise<JsonObject>
}
