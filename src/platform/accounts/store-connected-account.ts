import type { TokenSet } from '../../engine/formats/index.ts'
import type { Tx } from '../../foundation/database/index.ts'
import { type JsonObject, parseJson } from '../../foundation/json/index.ts'
import type { EnvironmentRef, IntegratedAccount } from './account.ts'
import { assertNoReservedKeys, contextKeysFromRedirect, contextKeysFromToken, contextPatchFrom } from './context.ts'
import {
  type CreateDependencies,
  getEnabledDefinition,
  type IntegratedAccountInput,
  storeNewAccount,
} from './create-account.ts'
import { type CollectedCredentials, chooseCredential, collectForMethod } from './credentials.ts'
import { integrationDisabled, lockAccount } from './load-account.ts'
import { type ReplaceDependencies, replaceCredentials } from './replace-credentials.ts'
import type { AcceptedTerms } from './sql/accepted-terms.ts'

const NO_RULES = { contextFromToken: [] }

/** What the third party granted after the customer's consent. */
export interface ConnectionGrant {
  readonly token: TokenSet
  /** Context keys that the redirect brought (`context_from_redirect`). */
  readonly context: JsonObject
}

/** An account that a customer connected in a link session. */
export interface ConnectedAccountInput
  extends Omit<IntegratedAccountInput, 'authenticationMethod' | 'credential' | 'credentials' | 'context'> {
  /** Key of the definition's `credentials`. */
  readonly credential: string
  /** Values of the method's fields, by name. */
  readonly fields: JsonObject
  /** Present exactly for methods with a consent redirect. */
  readonly grant?: ConnectionGrant | undefined
  /** Context of the link session; takes precedence over the fields. What the grant brings takes precedence over both. */
  readonly context: JsonObject
  /** That the customer accepted in the link session; absent: there were none to accept. */
  readonly terms?: AcceptedTerms | undefined
  /** Version of the installation whose definition the link session used. Absent: its present one. */
  readonly enteredVersion?: number | undefined
}

/**
 * Stores an account that a customer connected in a link session.
 *
 * The account is `connecting` until a worker has run its activation steps (`linkSessions.recordActivation` reports each), or
 * `active` immediately when there is nothing to do: then nothing is reported.
 *
 * @throws Failure RESOURCE_NOT_FOUND for an unknown installation, INTEGRATION_DISABLED, CREDENTIALS_INVALID and SECRET_MASKED
 * with every finding under `credentials` or `credential`, CONTEXT_KEY_RESERVED, DEFINITION_INVALID
 */
export async function storeConnectedAccount(
  deps: CreateDependencies,
  tx: Tx,
  scope: EnvironmentRef,
  input: ConnectedAccountInput,
): Promise<IntegratedAccount> {
  const { credential, fields, grant } = input
  const definition = await getEnabledDefinition(deps, tx, scope, input.environmentIntegrationId)
  const collected = collectForMethod(chooseCredential(definition.plan.credentials, { credential }), fields)
  const patch = contextPatchFrom(contextOf(collected, input))
  return await storeNewAccount(deps, tx, scope, definition, {
    ...input,
    collected,
    token: grant?.token,
    context: { ...collected.contextFields, ...patch.keys },
  })
}

/** New credentials for an account, given in a link session. */
export interface ReconnectedAccountInput {
  readonly id: string
  /** Key of the definition's `credentials`. */
  readonly credential: string
  /**
   * Values by name. Of the account's present credential a field left out keeps its value, null takes an optional one away. A secret that is left out is
   * removed when a visible field changes.
   */
  readonly fields: JsonObject
  readonly grant?: ConnectionGrant | undefined
  /** As in `ConnectedAccountInput`; null removes a key. */
  readonly context: JsonObject
  /** That the customer accepted in the link session; absent: those that were accepted before stay. */
  readonly terms?: AcceptedTerms | undefined
  /** As in `ConnectedAccountInput`. */
  readonly enteredVersion?: number | undefined
}

/**
 * Stores what a customer gave in a link session to connect an account again: the account is `connecting` from then on, and
 * every activation step runs again.
 *
 * @throws Failure RESOURCE_NOT_FOUND, INTEGRATION_DISABLED, CREDENTIALS_INVALID and SECRET_MASKED with every finding under
 * `credentials` or `credential`, CONTEXT_KEY_RESERVED, DEFINITION_INVALID
 */
export async function storeReconnectedAccount(
  deps: ReplaceDependencies,
  tx: Tx,
  { environmentId }: EnvironmentRef,
  input: ReconnectedAccountInput,
): Promise<IntegratedAccount> {
  const { id, credential, fields: credentials, grant, terms, enteredVersion } = input
  const account = await lockAccount(tx, { environmentId, id })
  if (!account.isEnabled) throw integrationDisabled(account.environmentIntegrationId)
  return await replaceCredentials(deps, tx, account, {
    credential,
    credentials,
    token: grant?.token,
    contextOf: (collected) => contextOf(collected, input),
    isFromCustomer: true,
    terms,
    enteredVersion,
  })
}

/** The session's keys, and over them those of the grant. @throws Failure CONTEXT_KEY_RESERVED */
function contextOf(
  { connect, secrets, secretNames }: CollectedCredentials,
  { context, grant }: Pick<ConnectedAccountInput, 'context' | 'grant'>,
): JsonObject {
  assertNoReservedKeys(context, secretNames)
  if (grant === undefined) return context
  const credentials = Object.fromEntries(Object.entries(secrets).map(([name, text]) => [name, parseJson(text)]))
  const fromToken = contextKeysFromToken(connect.token ?? NO_RULES, grant.token, context, credentials)
  return { ...context, ...contextKeysFromRedirect(grant.context, secretNames), ...fromToken }
}
