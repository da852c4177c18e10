import type { FormOption } from '../../engine/formats/index.ts'
import type { ApiProxy } from '../../engine/proxy/index.ts'
import type { TtlCache } from '../../foundation/base/index.ts'
import type { Database } from '../../foundation/database/index.ts'
import type { SecretStore } from '../../foundation/secrets/index.ts'
import type { AccountDependencies } from '../accounts/dependencies.ts'
import type { CatalogCache } from './catalog-entry.ts'

/** Dependencies of this module, built once per process; a function names the part that it uses. */
export interface LinkDependencies {
  readonly database: Pick<Database, 'pool' | 'transaction'>
  readonly secrets: Pick<SecretStore, 'encryptFor' | 'decryptFor'>
  readonly accounts: AccountDependencies
  /** The proxy of all calls, with rate limits and credential refresh. */
  readonly proxy: Pick<ApiProxy, 'call'>
  readonly formOptions: FormOptionsCache
  readonly catalog: CatalogCache
  /** Address under which browsers reach the service, without a trailing slash; never taken from a request. */
  readonly publicUrl: () => string
}

/** A session as a browser names it. */
export interface LinkSessionRef {
  readonly id: string
  /** The secret that the browser got when it opened the session. */
  readonly browserKey: string
}

/** Address to which third parties send the browser back, the same for all of them. */
export function callbackUriOf({ publicUrl }: Pick<LinkDependencies, 'publicUrl'>): string {
  return `${publicUrl()}/connect/callback`
}

/** Pages of options, for 60 s per account, field, search, page and values that the options depend on. */
export type FormOptionsCache = TtlCache<Promise<SourcePage | undefined>>

/** One page of options as the third party returned it. */
export interface SourcePage {
  readonly options: readonly FormOption[]
  /** Cursor of the proxy; null on the last page. */
  readonly nextCursor: string | null
}
