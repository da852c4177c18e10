import type { AuthenticationMethod } from '../../engine/formats/index.ts'
import type { Violation } from '../../foundation/base/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import type { Region } from '../../foundation/queue/index.ts'
import type { LinkError, LinkErrorCode } from './error-codes.ts'
import type { LinkCause, LinkPageStep, LinkStatus } from './status.ts'

/** A link session: how one account is being connected or reconnected. Holds no secret. */
export interface LinkSession {
  readonly id: string
  readonly environmentId: string
  readonly status: LinkStatus
  /** What the connect page shows. */
  readonly step: LinkPageStep
  readonly tenantId: string
  readonly isReconnect: boolean
  /** The account to reconnect, or the one that was connected; null until there is one. */
  readonly integratedAccountId: string | null
  /** Null: every enabled installation that the catalogue shows. */
  readonly allowedInstallationIds: readonly string[] | null
  /** Keys of the definition's `credentials`. Null: all that can be used on the connect page. */
  readonly allowedCredentials: readonly string[] | null
  /** What the customer chose; null until then. */
  readonly environmentIntegrationId: string | null
  /** Name of that integration; null until then, and when it was uninstalled. */
  readonly integrationName: string | null
  readonly authenticationMethod: AuthenticationMethod | null
  /** Key of the definition's `credentials` that the customer chose; null until then. */
  readonly credential: string | null
  /** What the customer entered last, without passwords. */
  readonly formValues: JsonObject
  /** Of the application; wins over the form, which does not show its keys. */
  readonly context: JsonObject
  readonly scopes: readonly string[]
  readonly grantedScopes: readonly string[]
  readonly missingScopes: readonly string[]
  readonly region: Region
  readonly isSandbox: boolean
  readonly objectStoreContextFields: readonly string[]
  /** Where the browser goes in the end; empty: nowhere. */
  readonly redirectUri: string
  readonly origins: readonly string[]
  /** BCP 47; empty: the browser's. */
  readonly locale: string
  readonly persistPreviousContext: boolean
  readonly skipPostConnectForm: boolean
  /** Address of the terms of service that the customer accepted; empty until then. */
  readonly termsUrl: string
  readonly termsAcceptedAt: Date | null
  /** Forms that were submitted. */
  readonly attempts: number
  /** Of the last attempt, when it failed. */
  readonly error: LinkError | null
  readonly expiresAt: Date
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly version: number
}

/** One change of status; rows are never altered. */
export interface LinkTransition {
  /** Null on the first. */
  readonly fromStatus: LinkStatus | null
  readonly toStatus: LinkStatus
  readonly cause: LinkCause
  readonly errorCode: LinkErrorCode | null
  readonly message: string
  readonly occurredAt: Date
}

/** What the page that embeds or opens the connect page may know of a session. */
export interface LinkSummary {
  readonly status: LinkStatus
  readonly error_code: LinkErrorCode | null
  readonly integrated_account_id: string | null
  readonly integration: string | null
}

/** The result of a step that the customer took. */
export type LinkStepResult =
  /** Show the session's present step; it may be another one than before, also because of another tab. */
  | { readonly kind: 'progress'; readonly session: LinkSession }
  /** Values are wrong; nothing was changed. Fields are names of the form. */
  | {
      readonly kind: 'invalid'
      readonly session: LinkSession
      readonly violations: readonly Violation[]
      /** The terms of service have to be accepted. */
      readonly needsTerms: boolean
    }
  /** Go to the third party's consent page, always in the top window. */
  | { readonly kind: 'redirect'; readonly session: LinkSession; readonly url: string }
  /** No session with that id for that browser. */
  | { readonly kind: 'unknown' }
