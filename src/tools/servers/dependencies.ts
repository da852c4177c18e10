import type { ApiProxy } from '../../engine/proxy/index.ts'
import type { UnifiedDependencies } from '../../engine/unified/index.ts'
import type { Clock } from '../../foundation/base/index.ts'
import type { Database } from '../../foundation/database/index.ts'
import type { AccountDependencies, DryRunAccount, ResolvedAccount } from '../../platform/accounts/index.ts'
import type { LinkDependencies } from '../../platform/links/index.ts'
import type { UnifiedMappings } from '../../platform/unified-config/index.ts'
import type { ToolServerRecord } from './sql/tool-server.ts'

/** What calls of tools take. */
export interface ToolCallDeps extends Pick<UnifiedDependencies, 'evaluator' | 'clock'> {
  readonly database: Pick<Database, 'pool'>
  readonly proxy: Pick<ApiProxy, 'call' | 'pages' | 'preview'>
  readonly unifiedMappings: Pick<UnifiedMappings, 'find'>
  /** Loads an account for a call, with a valid token. @throws Failure as `loadAccountForCall` does */
  readonly readyAccount: (environmentId: string, id: string) => Promise<ResolvedAccount>
  /** Loads an account as it is stored; sends no request. @throws Failure as `loadAccountForDryRun` does */
  readonly previewAccount: (environmentId: string, id: string) => Promise<DryRunAccount>
  /** Where a customer connects the account again; `undefined` when no link session can be made for it. */
  readonly connectUrl: (environmentId: string, accountId: string) => Promise<string | undefined>
  /** Counts a write of the server. @returns the seconds to wait; `undefined` when it is within the limit */
  readonly takeWrite: (server: ToolServerRecord) => Promise<number | undefined>
}

/** What the module is built from, once per process. */
export interface ToolServerDeps {
  readonly database: Database
  readonly clock: Clock
  readonly accounts: AccountDependencies
  readonly links: LinkDependencies
  readonly proxy: ApiProxy
  readonly unifiedMappings: UnifiedMappings
  readonly evaluator: UnifiedDependencies['evaluator']
  /** Called when a record of a call or of a use could not be written; the call succeeded all the same. */
  readonly onWriteError: (error: unknown) => void
}
