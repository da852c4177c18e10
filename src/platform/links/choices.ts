import type { ConnectPlan } from '../../engine/definitions/index.ts'
import { type AuthenticationMethod, type FormField, isSecretField, listFormFields } from '../../engine/formats/index.ts'
import { catchFailure, Failure, isUuid } from '../../foundation/base/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import { authenticationMethodOf, connectPlansOf } from '../accounts/credentials.ts'
import { findIntegratedAccount } from '../accounts/sql/integrated-account.ts'
import type { EffectiveDefinition } from '../integrations/definition-cache.ts'
import { type InstallationChoice, listInstallationChoices } from '../integrations/sql/installations.ts'
import { type CatalogDescription, describeDefinition, isConnectable } from './catalog-entry.ts'
import { callbackUriOf, type LinkDependencies } from './dependencies.ts'
import type { LinkSession } from './session.ts'

/** An integration that the customer may choose. */
export interface LinkChoice {
  readonly environmentIntegrationId: string
  /** Name of the integration, such as `hubspot`. */
  readonly name: string
  /** Category of the integration; empty where it has none. */
  readonly category: string
  readonly isBeta: boolean
  /** What the catalogue shows of it. */
  readonly description: CatalogDescription
  /** At least one. */
  readonly methods: readonly LinkMethod[]
}

/** One way of connecting an account. */
interface LinkMethod {
  /** Key of the definition's `credentials`. */
  readonly credential: string
  readonly authenticationMethod: AuthenticationMethod
  /** Absent where the definition has none. */
  readonly label: string | undefined
  /** Whether the customer consents at the third party. */
  readonly hasConsent: boolean
}

/** The form of the chosen integration and method. */
export interface ConnectForm {
  readonly choice: LinkChoice
  readonly method: LinkMethod
  /** In their order; those that the application filled are hidden. */
  readonly fields: readonly FormField[]
  /** Values to show in them, by name; never of secret fields. */
  readonly values: JsonObject
  /** Scopes that the consent will ask for; empty without one. */
  readonly scopes: readonly string[]
  /** Address that must be registered at the third party; empty without a consent. */
  readonly callbackUri: string
}

/** What offering integrations takes. */
export type ChoiceDependencies = Pick<LinkDependencies, 'database' | 'accounts' | 'publicUrl'>

/** An installation that a session offers, with its definition. */
interface OfferedInstallation {
  readonly choice: LinkChoice
  readonly definition: EffectiveDefinition
  /** The offered ways of connecting an account. */
  readonly plans: readonly ConnectPlan[]
}

/** Integration and method that the customer chose. */
export interface ConnectTarget extends OfferedInstallation {
  readonly connect: ConnectPlan
  readonly method: LinkMethod
}

/** The integrations that the customer may choose, by label; empty when none is installed and enabled. */
export async function listChoices(deps: ChoiceDependencies, session: LinkSession): Promise<readonly LinkChoice[]> {
  const offered = await listOffered(deps, session, fixedInstallations(session))
  return offered
    .map(({ choice }) => choice)
    .toSorted((one, other) => one.description.label.localeCompare(other.description.label, session.locale || 'en'))
}

/** The installation, when the session offers it. */
export async function findOffered(
  deps: ChoiceDependencies,
  session: LinkSession,
  environmentIntegrationId: string,
): Promise<OfferedInstallation | undefined> {
  const fixed = fixedInstallations(session)
  if (!isUuid(environmentIntegrationId) || fixed?.includes(environmentIntegrationId) === false) return undefined
  const [offered] = await listOffered(deps, session, [environmentIntegrationId])
  return offered
}

/** What the customer chose; `undefined` when nothing is chosen, or it is no longer offered. */
export async function findConnectTarget(
  deps: ChoiceDependencies,
  session: LinkSession,
): Promise<ConnectTarget | undefined> {
  const { environmentIntegrationId, credential } = session
  if (environmentIntegrationId === null) return undefined
  const offered = await findOffered(deps, session, environmentIntegrationId)
  const connect = offered?.plans.find(({ key }) => key === credential)
  return offered && connect && { ...offered, connect, method: toMethod(connect) }
}

/** The form of a session in which integration and method are chosen; `undefined` when they are not, or no longer offered. */
export async function createConnectForm(
  deps: ChoiceDependencies,
  session: LinkSession,
): Promise<ConnectForm | undefined> {
  const target = await findConnectTarget(deps, session)
  if (target === undefined) return undefined
  const { choice, method, connect } = target
  const supplied = suppliedValues(connect, session)
  return {
    choice,
    method,
    fields: listFormFields(connect.fields, supplied),
    values: { ...(await storedValues(deps, connect, session)), ...session.formValues, ...supplied },
    scopes: connect.authorization?.requestedScopes(session.scopes) ?? [],
    callbackUri: method.hasConsent ? callbackUriOf(deps) : '',
  }
}

/** Values of the form that the application supplied. */
export function suppliedValues({ fields }: ConnectPlan, { context }: Pick<LinkSession, 'context'>): JsonObject {
  return pickVisible(fields, context)
}

/** Values that an account which is reconnected has. */
async function storedValues(
  deps: ChoiceDependencies,
  { fields }: ConnectPlan,
  session: LinkSession,
): Promise<JsonObject> {
  const { environmentId, integratedAccountId } = session
  if (integratedAccountId === null) return {}
  const account = await findIntegratedAccount(deps.database.pool, environmentId, integratedAccountId)
  return pickVisible(fields, account?.context ?? {})
}

function pickVisible(fields: ConnectPlan['fields'], values: JsonObject): JsonObject {
  const entries = fields.flatMap((field) => {
    const value = isSecretField(field) ? undefined : values[field.name]
    return value === undefined || value === null ? [] : [[field.name, value] as const]
  })
  return Object.fromEntries(entries)
}

/** Installations that alone are possible; `undefined`: every one that the catalogue shows. */
export function fixedInstallations(session: LinkSession): readonly string[] | undefined {
  const { integratedAccountId, environmentIntegrationId, allowedInstallationIds } = session
  // An account never changes its installation.
  if (integratedAccountId !== null && environmentIntegrationId !== null) return [environmentIntegrationId]
  return allowedInstallationIds ?? undefined
}

async function listOffered(
  deps: ChoiceDependencies,
  session: LinkSession,
  ids: readonly string[] | undefined,
): Promise<readonly OfferedInstallation[]> {
  const isInCatalog = fixedInstallations(session) === undefined
  const found = await listInstallationChoices(deps.database.pool, session.environmentId, ids)
  const offered: OfferedInstallation[] = []
  for (const installation of found) {
    if (!installation.isEnabled || (isInCatalog && !installation.showInCatalog)) continue
    const one = await toOffered(deps, installation, session.allowedCredentials)
    if (one !== undefined) offered.push(one)
  }
  return offered
}

/** `undefined` for a definition that does not compile, or without any method that the customer may and can use. */
async function toOffered(
  { accounts, database }: ChoiceDependencies,
  installation: InstallationChoice,
  allowed: readonly string[] | null,
): Promise<OfferedInstallation | undefined> {
  const definition = await catchFailure(() => accounts.definitions.getVersion(database.pool, installation))
  if (definition instanceof Failure) return undefined
  const { plan, config } = definition
  const possible = allowed === null ? connectPlansOf(plan) : plan.credentials.filter(({ key }) => allowed.includes(key))
  const plans = possible.filter((connect) => isConnectable(connect, config))
  if (plans.length === 0) return undefined
  const { environmentIntegrationId, integrationName: name, category, isBeta } = installation
  const choice = {
    environmentIntegrationId,
    name,
    category,
    isBeta,
    description: describeDefinition({ name, category }, definition),
    methods: plans.map(toMethod),
  }
  return { choice, definition, plans }
}

function toMethod(connect: ConnectPlan): LinkMethod {
  return {
    credential: connect.key,
    authenticationMethod: authenticationMethodOf(connect),
    label: connect.label,
    hasConsent: connect.authorization !== undefined,
  }
}
