import type { ApiProxy, CallLog, ExpressionEvaluator } from '../../engine/proxy/index.ts'
import type { Clock, Random } from '../../foundation/base/index.ts'
import type { Database, Db, Tx } from '../../foundation/database/index.ts'
import type { Json } from '../../foundation/json/index.ts'
import type { SecretStore } from '../../foundation/secrets/index.ts'
import type { Logger } from '../../foundation/telemetry/index.ts'
import type { DefinitionCache, IntegrationCache } from '../integrations/definition-cache.ts'
import type { ContextValueStore } from '../objects/context-values.ts'
import type { ResolvedAccount } from './resolved-account.ts'
import type { AccountRef, AccountWithSecrets } from './sql/integrated-account.ts'
import type { TokenHttp } from './token-http.ts'

/** Dependencies of this module, built once per process; a function names the part that it uses. */
export interface AccountDependencies {
  readonly database: Pick<Database, 'pool' | 'transaction'>
  readonly secrets: Pick<
    SecretStore,
    'get' | 'put' | 'remove' | 'decryptAll' | 'encryptFor' | 'decryptFor' | 'destroyKeys' | 'sealer'
  >
  readonly definitions: DefinitionCache
  /** The context keys that live in the object store. */
  readonly contextValues: ContextValueStore
  readonly integrations: IntegrationCache
  readonly reader: AccountReader
  readonly tokens: TokenProvider
  readonly triggers: AccountTriggers
  readonly linkSessions: LinkSessionPort
  readonly subscriptions: AccountSubscriptions
  readonly http: TokenHttp
  readonly evaluator: ExpressionEvaluator
  readonly callLog?: CallLog | undefined
  /** Without a credential refresher, so that an action that requests a token never starts another refresh. */
  readonly proxyWithoutRefresh: Pick<ApiProxy, 'runAction'>
  readonly clock: Clock
  readonly random: Random
  /** Absent in tests: status changes and failed refreshes are not logged. */
  readonly logger?: Pick<Logger, 'info' | 'warn'> | undefined
}

/** Reads accounts by id; concurrent reads share statements. */
export interface AccountReader {
  /** `undefined` when there is no such account. Ids in upper or lower case. */
  read(account: AccountRef): Promise<AccountWithSecrets | undefined>
}

/** Access tokens of accounts: one refresh per account at a time, across all processes. */
export interface TokenProvider {
  /**
   * The account with a fresh token: as it is when its token is fresh or it needs none, else after a refresh. A token that has
   * not expired is used while a refresh fails transiently.
   *
   * @throws Failure CREDENTIALS_INVALID when the grant is rejected, TOKEN_REQUEST_FAILED, RESOURCE_NOT_FOUND
   */
  ensureFresh(resolved: ResolvedAccount): Promise<ResolvedAccount>
  /**
   * The account with a newer token than it has; `undefined` when only the customer can provide one.
   *
   * @param isForced whether to ask although the back-off after the last failure is not over
   * @throws Failure like `ensureFresh`
   */
  refresh(resolved: ResolvedAccount, isForced: boolean): Promise<ResolvedAccount | undefined>
}

/** The link sessions of accounts, which belong to a module above this one. */
export interface LinkSessionPort {
  /** Records a change of an account's activation at its link session, if there is one; in the transaction of the change. */
  recordActivation(tx: Tx, account: AccountRef, change: ActivationChange): Promise<void>
}

/** What happened in an activation. */
export type ActivationChange =
  | { readonly kind: 'post_install_passed' }
  /** It waits for the customer to fill in these fields of the form. */
  | { readonly kind: 'choice_needed'; readonly fields: readonly string[] }
  | { readonly kind: 'active' }
  | {
      readonly kind: 'failed'
      /**
       * `credentials_rejected`: by the token endpoint, the verification request or a 401; `provider_unreachable`: no conclusive
       * response in any attempt; `identity_changed`: the new credentials are of another account of the third party.
       */
      readonly code:
        | 'credentials_rejected'
        | 'provider_unreachable'
        | 'post_install_error'
        | 'validation_error'
        | 'identity_changed'
      /** For people; secrets are redacted. */
      readonly message: string
    }

/** A subscription at the third party, as deleting it needs it. */
export interface NamedSubscription {
  /** Empty: one subscription is for all events. */
  readonly event: string
  /** What the third party calls it. */
  readonly id: Json
}

/** The subscriptions of accounts at third parties, which belong to a module above this one. */
export interface AccountSubscriptions {
  /**
   * Has the subscriptions of an account created or checked by a worker, where its definition orders webhooks: the account has
   * just become active, or something casts doubt on them. In the transaction of that change.
   */
  schedule(tx: Tx, account: AccountRef): Promise<void>
  /** Those that exist at the third party. */
  list(tx: Db, account: AccountRef): Promise<readonly NamedSubscription[]>
  /**
   * Deletes one at the third party with the credentials of an account that is deleted here. Not in a transaction.
   *
   * @returns `undefined` when it no longer exists, or the definition does not say how it is deleted; messages are redacted
   */
  end(
    resolved: ResolvedAccount,
    subscription: NamedSubscription,
  ): Promise<{ readonly isTransient: boolean; readonly message: string } | undefined>
}

/** Deletes triggers, which belong to a module above this one. */
interface AccountTriggers {
  /** Deletes every trigger of the account with its schedule, and stops its runs. */
  deleteByAccount(tx: Tx, environmentId: string, integratedAccountId: string): Promise<void>
  /** Stops the runs of all accounts of an installation. */
  stopByInstallations(tx: Tx, environmentIntegrationIds: readonly string[]): Promise<void>
}
