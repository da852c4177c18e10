import type { ConnectPlan, MethodPlan, Plan } from '../../engine/definitions/index.ts'
import type { TokenRules } from '../../engine/formats/index.ts'
import type { AccountAccess } from '../../engine/proxy/index.ts'
import { type Json, type JsonObject, parseJson } from '../../foundation/json/index.ts'
import type { EffectiveDefinition } from '../integrations/definition-cache.ts'
import { findCredential } from './credentials.ts'
import type { AccountWithDefinition } from './sql/integrated-account.ts'
import {
  parseStoredToken,
  type StoredToken,
  SUBSCRIPTION_SECRET,
  type SubscriptionState,
  TOKEN_SECRET,
  webhookSecretKey,
} from './stored-credentials.ts'
import { webhookPath } from './webhook-address.ts'

/** An account with everything that a call through it needs. Holds plain credentials: never shown, never logged. */
export interface ResolvedAccount {
  readonly account: AccountWithDefinition
  readonly integrationName: string
  readonly plan: Plan
  readonly access: AccountAccess
  /** Absent for accounts that need none, or have none yet. */
  readonly token: StoredToken | undefined
  /** Its credentials were entered for other hosts than those of the definition: it has none here, and has to be connected again. */
  readonly isMoved: boolean
}

/** The action of a definition that requests the next token. */
export const REFRESH_ACTION = 'refresh_token'

/** Whether credentials of an account were entered for other hosts than those to which a definition sends requests. */
export function isMoved(
  { enteredVersion }: Pick<AccountWithDefinition, 'enteredVersion'>,
  { reauthorizationVersion }: Pick<EffectiveDefinition, 'reauthorizationVersion'>,
): boolean {
  return enteredVersion < reauthorizationVersion
}

/**
 * Account, definition and secrets as one. Credentials that were entered for other hosts than those of this definition are left
 * out, whichever of them was read first.
 *
 * @param held secrets of the account in plain text, JSON by name; the token is one of them
 */
export function resolveAccount(
  account: AccountWithDefinition,
  definition: Omit<EffectiveDefinition, 'installationVersion'>,
  held: Readonly<Record<string, string>>,
): ResolvedAccount {
  const { plan, environmentVariables, connection } = definition
  const moved = isMoved(account, definition)
  const secrets: Readonly<Record<string, string>> = moved ? {} : held
  const { [TOKEN_SECRET]: tokenText, [SUBSCRIPTION_SECRET]: subscriptionText, ...texts } = secrets
  const stored = parseFields(texts)
  const state =
    subscriptionText === undefined ? undefined : (parseJson(subscriptionText) as unknown as SubscriptionState)
  const { id, environmentId, environmentIntegrationId, tenantId, context, isSandbox, integrationName } = account
  const access = {
    id,
    environmentId,
    environmentIntegrationId,
    tenantId,
    integrationName,
    context,
    environmentVariables,
    connection: withWebhookSecrets(connectionOf(connection, plan, account), stored),
    subscription: subscriptionOf(plan, state),
    isSandbox,
    credentials: {
      ...(state?.secret === undefined ? {} : { subscription: { secret: state.secret } }),
      ...credentialsOf(stored),
    },
    unauthorizedSince: account.unauthorizedSince ?? undefined,
  }
  const resolved = { account, integrationName, plan, access, token: undefined, isMoved: moved }
  return tokenText === undefined ? resolved : withToken(resolved, parseStoredToken(tokenText))
}

/** The account with another token. */
export function withToken(resolved: ResolvedAccount, token: StoredToken): ResolvedAccount {
  const { access, account } = resolved
  const credentials = { ...access.credentials, oauth: { token: token.fields } }
  return {
    ...resolved,
    token,
    access: { ...access, context: account.context, credentials, credentialVersion: token.version },
  }
}

/** The credential format by which the account was connected, as the definition has it now. */
export function connectPlanOf({ plan, account }: Pick<ResolvedAccount, 'plan' | 'account'>): ConnectPlan | undefined {
  return plan.credentials.length === 0 ? undefined : findCredential(plan.credentials, account)
}

/** How the account's tokens are requested; absent where its fields are all it needs. */
export function tokenRulesOf(resolved: ResolvedAccount): TokenRules<MethodPlan> | undefined {
  if (resolved.isMoved) return undefined
  const rules = connectPlanOf(resolved)?.token
  if (rules === undefined || !resolved.plan.actions.has(REFRESH_ACTION)) return rules
  return { ...rules, canRequestToken: (previous) => previous !== undefined || rules.canRequestToken(previous) }
}

/** Whether the next token is requested by the definition's own action. The first token never is. */
export function usesRefreshAction({ plan, token }: Pick<ResolvedAccount, 'plan' | 'token'>): boolean {
  return token !== undefined && plan.actions.has(REFRESH_ACTION)
}

/** `{{connection.<name>}}`, with the address to which the third party sends webhooks about the account. */
function connectionOf(
  { public_url: publicUrl, ...connection }: JsonObject,
  { webhookSubscription }: Plan,
  { id, environmentIntegrationId }: AccountWithDefinition,
): JsonObject {
  if (typeof publicUrl !== 'string') return connection
  const path =
    webhookSubscription?.scope === 'installation'
      ? webhookPath('environment_integration', environmentIntegrationId)
      : webhookPath('integrated_account', id)
  return { ...connection, webhook_url: publicUrl + path }
}

/** What webhooks brought, as `{{connection.webhook.<name>}}`. */
function withWebhookSecrets(connection: JsonObject, { webhook }: StoredFields): JsonObject {
  return Object.keys(webhook).length === 0 ? connection : { ...connection, webhook }
}

/** `{{subscription.<name>}}`: the id is that of the one subscription for all events, or those of all by event. */
function subscriptionOf(
  { webhookSubscription }: Plan,
  { ids = {} }: Partial<SubscriptionState> = {},
): JsonObject | undefined {
  if (webhookSubscription === undefined) return undefined
  return { id: ids[''] ?? ids, events: [...webhookSubscription.events] }
}

/** The secrets of an account, parsed. */
interface StoredFields {
  /** Collected fields by name. */
  readonly fields: JsonObject
  /** What webhooks brought, by name. */
  readonly webhook: JsonObject
}

function parseFields(texts: Readonly<Record<string, string>>): StoredFields {
  const webhook: Record<string, Json> = {}
  const fields: Record<string, Json> = {}
  for (const [name, text] of Object.entries(texts)) {
    const key = webhookSecretKey(name)
    if (key === undefined) fields[name] = parseJson(text)
    else webhook[key] = parseJson(text)
  }
  return { fields, webhook }
}

/** With what webhooks brought as `webhook`, unless a field has that name: what is masked in texts is looked up here. */
function credentialsOf({ fields, webhook }: StoredFields): JsonObject {
  return Object.keys(webhook).length === 0 ? fields : { webhook, ...fields }
}
