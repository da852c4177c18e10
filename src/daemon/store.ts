import type { Json } from '../base/index.ts'

/** Where a daemon keeps records. Shared by all its runs. */
export interface Store extends AsyncDisposable {
  /** How long pages may go unreported, and be stored again after a crash. 0 where only the last page may be. */
  readonly reportIntervalMs: number
  /**
   * Takes the run over: from now on earlier holders of it write nothing.
   *
   * @throws Failure LEASE_LOST when a later holder has taken it; StoreUnavailable
   */
  open(holder: RunHolder): Promise<RunStore>
}

/** Whoever holds the run. Of two, the later one has the later `leasedUntil`, which the service's clock counted. */
export interface RunHolder {
  readonly runId: string
  readonly integratedAccountId: string
  readonly leaseId: string
  /** Begins anew when somebody retries the run, so it alone does not tell who is later. */
  readonly attempt: number
  /** When the lease ends that the run was handed out under, had nobody renewed it. */
  readonly leasedUntil: Date
}

/** The store of one run in the hands of one holder. One call at a time. */
export interface RunStore extends AsyncDisposable {
  /**
   * Stores a page, all of it or nothing; it is there when this resolves. The same page again leaves the same rows.
   *
   * @throws Failure LEASE_LOST when another holder has taken the run: nothing was stored; StoreUnavailable
   */
  write(page: StoredPage): Promise<void>
}

/** Records of one resource. */
export interface StoredPage {
  readonly resource: string
  /** Counts the pages of a run; a page that is repeated has the number it had. */
  readonly sequence: number
  /** Different ones have different keys. */
  readonly rows: readonly StoredRow[]
}

/** One record. */
export interface StoredRow {
  readonly key: string
  readonly record: Json
}

/** The store cannot be reached at the moment; the same may succeed later. */
export class StoreUnavailable extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause })
    this.name = 'StoreAway'
  }
}
