import type { ReadyAccount } from '../accounts/index.ts'
import type { Clock } from '../base/index.ts'
import type { Proxy as Engine } from '../proxy/index.ts'

/** What calling third parties through accounts needs, whatever the protocol. */
export interface CallThroughDeps {
  readonly proxy: Engine
  readonly clock: Clock
  /** Loads an account that may be called through, its token fresh. @throws Failure as `readyAccess` does */
  readonly readyAccount: (environmentId: string, id: string) => Promise<ReadyAccount>
}
