import { createHash } from 'node:crypto'
import type { Json, JsonObject } from '../../foundation/json/index.ts'

/** Store of a daemon's records, shared by all its runs. Its methods throw StoreError with what is wrong and what to do. */
export interface Store extends AsyncDisposable {
  /** Progress is saved no oftener: pages since then are stored again after a crash. 0: after every page. */
  readonly saveIntervalMs: number
  /** Checks address and rights by making what every run needs. @throws StoreError */
  check(): Promise<void>
  /**
   * Takes over the run: earlier holders cannot write any more.
   *
   * @throws Failure LEASE_LOST when a later holder has taken it; StoreError
   */
  open(holder: RunHolder): Promise<RunStore>
}

/** The holder of a run. The later of two has the later `leasedUntil`, by the clock of the service. */
export interface RunHolder {
  readonly runId: string
  readonly integratedAccountId: string
  readonly leaseId: string
  /** Starts at 1 again when the run is retried by hand, so it does not order holders. */
  readonly attempt: number
  /** Expiry of the lease when it was granted, before any renewal. */
  readonly leasedUntil: Date
}

/** Writes the records of one run for one holder. One call at a time. */
export interface RunStore extends AsyncDisposable {
  /**
   * Stores a page atomically and durably. Idempotent.
   *
   * @throws Failure LEASE_LOST when another holder has taken the run: nothing was stored; StoreError
   */
  write(page: StoredPage): Promise<void>
}

/** Records of one resource. */
export interface StoredPage {
  readonly resource: string
  /** Number of the page within the run; a repeated page has its old number. */
  readonly sequence: number
  /** With distinct keys. */
  readonly rows: readonly StoredRow[]
  /** JSON Schema of the records of a unified resource, for stores that have types. Absent: a resource of the definition. */
  readonly recordSchema?: JsonObject | undefined
}

/** One record. */
export interface StoredRow {
  readonly key: string
  readonly record: Json
}

/** Begins the names of views over unified resources. */
export const UNIFIED_PREFIX = 'unified_'
/** Resource names that can be used unchanged; the prefixes are reserved for tables and views of the store itself. */
const SAFE_NAME = /^(?!patchbay_|unified_)[a-z][a-z0-9_]{0,49}$/
/** With the digest within the 63 bytes of a name in PostgreSQL. */
const READABLE_LENGTH_MAX = 40
const DIGEST_LENGTH = 8

/**
 * Name of the table or folder of a resource: its own name if that is lower case, else a readable form with a digest, so that
 * `crm/contacts` and `crm_contacts` do not collide.
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
