import type { Step } from './journey.ts'

/**
 * Defects of the product that the rig has found, as a step of a definition and the reason it fails with. One that no longer occurs
 * has to go: the table is to become empty.
 */
export interface KnownFailure {
  readonly step: Step
  readonly reason: string
  readonly names: readonly string[]
}

/** All of them, in the order of the steps. */
export const KNOWN_FAILURES: readonly KnownFailure[] = []
