import type { RunNews } from '../../client/index.ts'

/** Where a run that is followed is shown. */
export interface RunDisplay {
  show(news: RunNews): void
  /** Leaves what was shown and shows nothing more. */
  close(): void
}
