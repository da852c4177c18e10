import { createHash } from 'node:crypto'
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

/** Names that are tables and files as they are. Those of the store itself begin with its own word. */
const SAFE_NAME = /^(?!patchbay_)[a-z][a-z0-9_]{0,49}$/
/** Leaves room for the digest within the 63 bytes of a name in PostgreSQL. */
const READABLE_LENGTH_MAX = 40
const DIGEST_LENGTH = 8

/**
 * The table or folder of a resource: its name when that is lower case, else a readable form of it and a digest, so that
 * `crm/contacts` and `crm_contacts` stay apart.
 */
export function storageName(resource: string): string {
  if (SAFE_NAME.test(resource)) return resource
  const readable = resource
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .slice(0, READABLE_LENGTH_MAX)
  const digest = createHash('sha256').update(resource).digest('hex').slice(0, DIGEST_LENGTH)
  return `${readable.replace(/^(?![a-z])/, 'r_')}_${digest}`
}
