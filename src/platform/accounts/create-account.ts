import { type AuthenticationMethod, importedToken, type TokenSet } from '../../engine/formats/index.ts'
import { Failure, newId, notFound } from '../../foundation/base/index.ts'
import { type Db, isForeignKeyViolation, type Tx } from '../../foundation/database/index.ts'
import { isJsonObject, type JsonObject } from '../../foundation/json/index.ts'
import type { Region } from '../../foundation/queue/index.ts'
import type { EffectiveDefinition, InstalledDefinition } from '../integrations/definition-cache.ts'
import { type EnvironmentRef, type IntegratedAccount, withIntegrations } from './account.ts'
import { appendAccountEvent } from './account-events.ts'
import { assertNoReservedKeys, contextPatchFrom } from './context.ts'
import { assertContextRules } from './context-rules.ts'
import { type CollectedCredentials, collectCredentials } from './credentials.ts'
import type { AccountDependencies } from './dependencies.ts'
import { integrationDisabled } from './load-account.ts'
import { isMoved } from './resolved-account.ts'
import type { AcceptedTerms } from './sql/accepted-terms.ts'
import { insertAccountHistory } from './sql/account-history.ts'
import { findIntegratedAccount, insertIntegratedAccount, type NewIntegratedAccount } from './sql/integrated-account.ts'
import { ACCOUNT_TRANSITIONS } from './status.ts'
import { assertContextSize, splitContext } from './stored-context.ts'
import { accountSecretRef, storeGrantedToken, tokenPolicyOf } from './stored-credentials.ts'

const STATUS_ON_CREATION = ACCOUNT_TRANSITIONS.new.created
const STATUS_AFTER_STEPS = ACCOUNT_TRANSITIONS.connecting.steps_passed

/** An account to be connected with credentials that the application holds. */
export interface IntegratedAccountInput {
  readonly environmentIntegrationId: string
  /** 1 to 255 characters. */
  readonly tenantId: string
  /** Absent: the only one the definition offers. */
  readonly authenticationMethod?: AuthenticationMethod | undefined
  /** Key of the definition's `credentials`; absent: as the method says. */
  readonly credential?: string | undefined
  /**
   * Values of the method's fields, by name. For `oauth2` also `access_token`, `refresh_token` and `expires_in` (seconds; 0: it
   * has ended) of a token that was granted elsewhere.
   */
  readonly credentials?: JsonObject | undefined
  readonly context?: JsonObject | undefined
  /** Absent: `wnam`. */
  readonly region?: Region | undefined
  /** Absent: false. */
  readonly isSandbox?: boolean | undefined
  readonly objectStoreContextFields?: readonly string[] | undefined
}

/**
 * Connects an account with given credentials.
 *
 * It is `active` immediately when the definition has no activation steps, else `connecting` until they have passed. Fields that
 * are not secret become context keys.
 *
 * @throws Failure RESOURCE_NOT_FOUND for an unknown installation, INTEGRATION_DISABLED, CREDENTIALS_INVALID and SECRET_MASKED
 * with every finding under `credentials` or `authentication_method`, CONTEXT_KEY_RESERVED, DEFINITION_INVALID
 */
export async function createIntegratedAccount(
  deps: CreateDependencies,
  tx: Tx,
  scope: EnvironmentRef,
  input: IntegratedAccountInput,
): Promise<IntegratedAccount> {
  const { context = {}, credentials = {} } = input
  const definition = await getEnabledDefinition(deps, tx, scope, input.environmentIntegrationId)
  const collected = collectCredentials(definition.plan, input, credentials)
  assertNoReservedKeys(context, collected.secretNames)
  const { importedToken: imported } = collected
  return await storeNewAccount(deps, tx, scope, definition, {
    ...input,
    collected,
    token: imported === undefined ? undefined : importedToken(imported, deps.clock.now()),
    context: { ...contextPatchFrom(context).keys, ...collected.contextFields },
  })
}

/** What creating an account takes. */
export type CreateDependencies = Pick<
  AccountDependencies,
  'secrets' | 'definitions' | 'contextValues' | 'subscriptions' | 'clock' | 'random'
>

/** The definition of an installation. @throws Failure RESOURCE_NOT_FOUND, INTEGRATION_DISABLED, DEFINITION_INVALID */
export async function getEnabledDefinition(
  { definitions }: Pick<AccountDependencies, 'definitions'>,
  tx: Db,
  { environmentId }: EnvironmentRef,
  environmentIntegrationId: string,
): Promise<InstalledDefinition> {
  const definition = await definitions.get(tx, environmentId, environmentIntegrationId)
  if (!definition.isEnabled) throw integrationDisabled(environmentIntegrationId)
  return definition
}

/** An account whose credentials are collected. */
export interface CollectedAccount
  extends Omit<IntegratedAccountInput, 'authenticationMethod' | 'credential' | 'credentials'> {
  readonly collected: CollectedCredentials
  /** Granted by the customer's consent, here or elsewhere. */
  readonly token: TokenSet | undefined
  /** Whole: visible fields included. */
  readonly context: JsonObject
  /** Absent: the customer was not asked. */
  readonly terms?: AcceptedTerms | undefined
  /** Version of the installation with which they were entered. Absent: its present one. */
  readonly enteredVersion?: number | undefined
}

/** Stores a new account with credentials, token, history and events. @throws Failure RESOURCE_NOT_FOUND */
export async function storeNewAccount(
  deps: CreateDependencies,
  tx: Tx,
  { environmentId }: EnvironmentRef,
  definition: InstalledDefinition,
  input: CollectedAccount,
): Promise<IntegratedAccount> {
  const { collected, token } = input
  const account: NewIntegratedAccount = {
    id: newId(),
    environmentId,
    environmentIntegrationId: input.environmentIntegrationId,
    tenantId: input.tenantId,
    authenticationMethod: collected.authenticationMethod,
    credential: collected.credential,
    context: input.context,
    status: isActiveImmediately(definition, collected) ? STATUS_AFTER_STEPS : STATUS_ON_CREATION,
    isSandbox: input.isSandbox ?? false,
    region: input.region ?? 'wnam',
    objectStoreContextFields: input.objectStoreContextFields ?? [],
    termsUrl: input.terms?.url ?? '',
    termsAcceptedAt: input.terms?.acceptedAt ?? null,
    enteredVersion: enteredVersionOf(definition, input),
  }
  const { plan } = definition
  assertContextRules({ plan, connect: collected.connect, context: input.context, before: {}, writer: 'entry' })
  const { inline, stored } = splitContext(account, input.context)
  assertContextSize(inline)
  await insertAccount(tx, { ...account, context: inline })
  if (Object.keys(stored).length > 0) await deps.contextValues.put(tx, account, stored)
  await deps.secrets.put(tx, accountSecretRef(account), collected.secrets)
  if (token !== undefined)
    await storeGrantedToken(deps, tx, account, tokenPolicyOf(definition.plan, collected.connect, token), token)
  await writeFirstHistory(tx, account)
  await appendAccountEvent(tx, account, 'created')
  if (account.status === STATUS_AFTER_STEPS) await appendAccountEvent(tx, account, 'active')
  if (account.status === STATUS_AFTER_STEPS) await deps.subscriptions.schedule(tx, account)
  return await readBack(tx, account)
}

/**
 * The version of the installation for which given credentials are.
 *
 * @throws Failure CREDENTIALS_INVALID when requests have gone to other hosts since they were entered
 */
export function enteredVersionOf(
  definition: Pick<EffectiveDefinition, 'installationVersion' | 'reauthorizationVersion'>,
  { enteredVersion = definition.installationVersion }: { readonly enteredVersion?: number | undefined },
): number {
  if (!isMoved({ enteredVersion }, definition)) return enteredVersion
  const message = 'the integration sends requests to other hosts since the credentials were entered: enter them again'
  throw new Failure('CREDENTIALS_INVALID', message)
}

/** Whether the definition has no token to request, no steps, nothing to verify and nothing to wait for. */
function isActiveImmediately(
  { config, plan }: Pick<InstalledDefinition, 'config' | 'plan'>,
  { connect }: CollectedCredentials,
): boolean {
  const actions = isJsonObject(config.actions) ? config.actions : {}
  const { verification, token, identity } = connect
  const hasNothingToVerify = verification === undefined && token === undefined && identity === undefined
  const hasSteps = actions.post_install !== undefined || actions.validation !== undefined
  return hasNothingToVerify && !hasSteps && plan.choicesBeforeActive.length === 0
}

async function insertAccount(tx: Db, account: NewIntegratedAccount): Promise<void> {
  try {
    await insertIntegratedAccount(tx, account)
  } catch (error) {
    if (!isForeignKeyViolation(error, 'integrated_account_installation')) throw error
    // The installation was deleted after its definition was read.
    throw notFound('environment_integration', account.environmentIntegrationId)
  }
}

async function writeFirstHistory(tx: Db, account: NewIntegratedAccount): Promise<void> {
  await insertAccountHistory(tx, account, {
    version: 0,
    fromStatus: null,
    toStatus: STATUS_ON_CREATION,
    cause: 'created',
  })
  if (account.status === STATUS_ON_CREATION) return
  const passed = { version: 1, fromStatus: STATUS_ON_CREATION, toStatus: account.status, cause: 'steps_passed' }
  await insertAccountHistory(tx, account, passed)
}

async function readBack(tx: Db, { environmentId, id }: NewIntegratedAccount): Promise<IntegratedAccount> {
  const stored = await findIntegratedAccount(tx, environmentId, id)
  const [account] = stored === undefined ? [] : await withIntegrations(tx, [stored], true)
  if (account === undefined) throw new Error('an account is missing right after it was stored')
  return account
}
