import type { RunEvent } from '../../client/index.ts'

/** Where a run that is followed is shown. */
export interface RunDisplay {
  show(news: RunEvent): void
  /** Leaves what was shown and shows nothing more. */
  close(): void
}
