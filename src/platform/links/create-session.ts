import { collectFields, isSecretField } from '../../engine/formats/index.ts'
import {
  catchFailure,
  DAY_MS,
  Failure,
  invalidFields,
  MINUTE_MS,
  newId,
  notFound,
  suggest,
  type Violation,
} from '../../foundation/base/index.ts'
import type { Db, Tx } from '../../foundation/database/index.ts'
import type { JsonObject } from '../../foundation/json/index.ts'
import type { Region } from '../../foundation/queue/index.ts'
import { findReservedKeys } from '../accounts/context.ts'
import { connectPlansOf } from '../accounts/credentials.ts'
import { type AccountRef, findIntegratedAccount } from '../accounts/sql/integrated-account.ts'
import { type InstallationChoice, listInstallationChoices } from '../integrations/sql/installations.ts'
import type { EnvironmentScope } from '../tenancy/sql/environments.ts'
import { assertCredentialsOffered } from './allowed-credentials.ts'
import type { LinkDependencies } from './dependencies.ts'
import { mintLinkToken } from './link-token.ts'
import { toLinkSession } from './load-session.ts'
import type { LinkSessionHistory } from './manage-sessions.ts'
import { listLinkTransitions } from './sql/link-change.ts'
import { findLinkSessionRecord, insertLinkSession } from './sql/link-session.ts'

/** A link session to be created. */
export interface LinkSessionInput {
  /** Whose new account it is, or the account to reconnect. */
  readonly subject: { readonly tenantId: string } | { readonly integratedAccountId: string }
  /** Ids of installations or names of integrations; empty: every enabled installation that the catalogue shows. */
  readonly integrations: readonly string[]
  /** Keys of `credentials`; empty: all that can be used on the connect page. */
  readonly allowedCredentials: readonly string[]
  readonly scopes: readonly string[]
  readonly context: JsonObject
  /** Absent: `wnam`. */
  readonly region: Region | undefined
  /** Absent: false. */
  readonly isSandbox: boolean | undefined
  readonly objectStoreContextFields: readonly string[]
  /** Empty: none. */
  readonly redirectUri: string
  readonly origins: readonly string[]
  /** Empty: the browser's. */
  readonly locale: string
  readonly expiresAt: Date | undefined
  /** Seconds; absent, without `expiresAt` too: a day. */
  readonly expiresInSeconds: number | undefined
  readonly persistPreviousContext: boolean
  readonly skipPostConnectForm: boolean
}

/** A created session with its token, which is shown once. */
export interface CreatedLinkSession extends LinkSessionHistory {
  readonly token: string
  /** Of the connect page, with the token in it. */
  readonly url: string
}

const LIFETIME_MS_MAX = 7 * DAY_MS

type LinkCreateDependencies = Pick<LinkDependencies, 'accounts' | 'publicUrl'>

/**
 * Creates a link session.
 *
 * @throws Failure INVALID_FIELD with every finding, RESOURCE_NOT_FOUND for an unknown account or integration,
 * INTEGRATION_DISABLED, CONTEXT_KEY_RESERVED for a key that the runtime owns or that is credential material of an integration
 * of the session
 */
export async function createLinkSession(
  deps: LinkCreateDependencies,
  tx: Tx,
  { environmentId }: Pick<EnvironmentScope, 'environmentId'>,
  input: LinkSessionInput,
): Promise<CreatedLinkSession> {
  assertReadable(input, deps.accounts.clock.now())
  const offer = await resolveOffer(tx, environmentId, input)
  const { allowedCredentials } = input
  await assertCredentialsOffered(deps, tx, allowedCredentials, input.integrations, offer.installations)
  await assertContextFits(deps, tx, input.context, offer.installations)
  const id = newId()
  const { token, hash } = mintLinkToken(id)
  await insertLinkSession(tx, {
    id,
    environmentId,
    ...offer.columns,
    allowedCredentials: allowedCredentials.length === 0 ? null : allowedCredentials,
    tokenHash: hash,
    scopes: input.scopes,
    context: input.context,
    redirectUri: input.redirectUri,
    origins: input.origins,
    locale: input.locale,
    persistPreviousContext: input.persistPreviousContext,
    skipPostConnectForm: input.skipPostConnectForm,
    expiresAt: input.expiresAt,
    lifetimeMs: input.expiresInSeconds === undefined ? DAY_MS : input.expiresInSeconds * 1_000,
  })
  const stored = await findLinkSessionRecord(tx, { environmentId, id })
  if (stored === undefined) throw new Error('a link session is missing right after it was made')
  const transitions = (await listLinkTransitions(tx, environmentId, [id])).get(id) ?? []
  return { session: toLinkSession(stored), transitions, token, url: `${deps.publicUrl()}/connect?link_token=${token}` }
}

/** What the request alone decides. */
function assertReadable(input: LinkSessionInput, now: Date): void {
  const violations = [
    ...findReconnectConflicts(input),
    ...findAddressProblems(input),
    ...findExpiryProblems(input, now),
  ]
  if (violations.length > 0) throw invalidFields(violations)
  const reserved = findReservedKeys(input.context)
  if (reserved.length > 0) throw invalidFields(reserved, 'CONTEXT_KEY_RESERVED')
}

function findReconnectConflicts(input: LinkSessionInput): Violation[] {
  if ('tenantId' in input.subject) return []
  const given = {
    integrations: input.integrations.length > 0,
    region: input.region !== undefined,
    is_sandbox: input.isSandbox !== undefined,
    object_store_context_fields: input.objectStoreContextFields.length > 0,
  }
  return Object.entries(given)
    .filter(([, isGiven]) => isGiven)
    .map(([field]) => ({ field, description: 'is decided by the account to reconnect', rule: 'link.reconnect' }))
}

function findAddressProblems({ redirectUri, origins }: LinkSessionInput): Violation[] {
  const redirect =
    redirectUri === '' || isWebAddress(redirectUri)
      ? []
      : [{ field: 'redirect_uri', description: 'must be an http or https URL without user name', rule: 'url.web' }]
  const wrong = origins.flatMap((origin, at) => (isOrigin(origin) ? [] : [at]))
  const description = 'must be an origin such as https://app.example.com, without path and with lower-case host'
  return [...redirect, ...wrong.map((at) => ({ field: `origins[${at}]`, description, rule: 'url.origin' }))]
}

function isWebAddress(text: string): boolean {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return false
  const { username, password } = new URL(text)
  return username === '' && password === ''
}

/** A host that cannot end a source of a Content-Security-Policy, and is no pattern there. */
const ORIGIN = /^https?:\/\/(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::\d+)?$/

function isOrigin(text: string): boolean {
  return ORIGIN.test(text) && isWebAddress(text) && new URL(text).origin === text
}

function findExpiryProblems({ expiresAt, expiresInSeconds }: LinkSessionInput, now: Date): Violation[] {
  if (expiresAt === undefined) return []
  if (expiresInSeconds !== undefined)
    return [{ field: 'expires_in', description: 'and expires_at exclude each other', rule: 'link.expiry' }]
  const lifetimeMs = expiresAt.getTime() - now.getTime()
  if (lifetimeMs >= MINUTE_MS && lifetimeMs <= LIFETIME_MS_MAX) return []
  return [{ field: 'expires_at', description: 'must be from one minute to 7 days ahead', rule: 'link.expiry' }]
}

/** The columns that subject and integrations decide, and the installations that the customer may choose from. */
async function resolveOffer(tx: Db, environmentId: string, input: LinkSessionInput) {
  const { subject } = input
  if ('integratedAccountId' in subject)
    return await resolveAccount(tx, { environmentId, id: subject.integratedAccountId })
  const found = await listInstallationChoices(tx, environmentId)
  const named = input.integrations.length > 0
  const installations = named
    ? resolveIntegrations(found, input.integrations)
    : found.filter(({ isEnabled, showInCatalog }) => isEnabled && showInCatalog)
  return {
    installations,
    columns: {
      tenantId: subject.tenantId,
      isReconnect: false,
      integratedAccountId: null,
      environmentIntegrationId: null,
      allowedInstallationIds: named ? installations.map((each) => each.environmentIntegrationId) : null,
      region: input.region ?? 'wnam',
      isSandbox: input.isSandbox ?? false,
      objectStoreContextFields: input.objectStoreContextFields,
    },
  }
}

async function resolveAccount(tx: Db, { environmentId, id }: AccountRef) {
  const account = await findIntegratedAccount(tx, environmentId, id)
  if (account === undefined) throw notFound('integrated_account', id)
  const { environmentIntegrationId, tenantId, region, isSandbox, objectStoreContextFields } = account
  const installations = await listInstallationChoices(tx, environmentId, [environmentIntegrationId])
  assertEnabled(installations)
  return {
    installations,
    columns: {
      tenantId,
      isReconnect: true,
      integratedAccountId: id,
      environmentIntegrationId,
      allowedInstallationIds: [environmentIntegrationId],
      region,
      isSandbox,
      objectStoreContextFields,
    },
  }
}

function unknownIntegration(found: readonly InstallationChoice[], name: string, at: number): Violation {
  const near = suggest(
    name,
    found.map(({ integrationName }) => integrationName),
  )
  const description = `is neither an installation of this environment nor the name of an installed integration${near}`
  return { field: `integrations[${at}]`, description, rule: 'link.integration' }
}

/** @throws Failure INVALID_FIELD naming every integration that is not installed, INTEGRATION_DISABLED */
function resolveIntegrations(
  found: readonly InstallationChoice[],
  integrations: readonly string[],
): readonly InstallationChoice[] {
  const isNamed = (name: string) => (each: InstallationChoice) =>
    each.environmentIntegrationId === name.toLowerCase() || each.integrationName === name
  const unknown = integrations.flatMap((name, at) => (found.some(isNamed(name)) ? [] : [at]))
  if (unknown.length > 0)
    throw invalidFields(unknown.map((at) => unknownIntegration(found, integrations[at] ?? '', at)))
  const named = found.filter((each) => integrations.some((name) => isNamed(name)(each)))
  assertEnabled(named)
  return named
}

function assertEnabled(installations: readonly InstallationChoice[]): void {
  const disabled = installations.find(({ isEnabled }) => !isEnabled)
  if (disabled === undefined) return
  const id = disabled.environmentIntegrationId
  const message = `the integration ${disabled.integrationName} is disabled in this environment: set is_enabled first`
  throw new Failure('INTEGRATION_DISABLED', message, { resource: { type: 'environment_integration', id } })
}

/**
 * Checks the context against the fields of the offered integrations: none of its keys may be credential material, and a value
 * that fills a field must be valid for it.
 */
async function assertContextFits(
  { accounts }: LinkCreateDependencies,
  tx: Db,
  context: JsonObject,
  installations: readonly InstallationChoice[],
): Promise<void> {
  if (Object.keys(context).length === 0) return
  const credentials = new Map<string, Violation>()
  const values = new Map<string, Violation>()
  for (const installation of installations) {
    // One that does not compile is not offered.
    const definition = await catchFailure(() => accounts.definitions.getVersion(tx, installation))
    const plans = definition instanceof Failure ? [] : connectPlansOf(definition.plan)
    const fields = plans.flatMap((connect) =>
      connect.fields
        .filter(({ name }) => Object.hasOwn(context, name))
        .map((field) => ({ field, of: `${installation.integrationName} (${connect.key})` })),
    )
    for (const { field, of } of fields) {
      const path = `context.${field.name}`
      const description = `is credential material of ${of}: the customer enters it`
      if (isSecretField(field)) credentials.set(path, { field: path, description, rule: 'context.credential' })
      // Whether it is shown does not matter here.
      const { visible_when: _, ...alone } = field
      const given = { [field.name]: context[field.name] ?? null }
      const collected = isSecretField(field) ? undefined : collectFields([alone], given, 'context')
      if (collected?.kind === 'invalid')
        for (const violation of collected.violations) values.set(violation.field, violation)
    }
  }
  if (credentials.size > 0) throw invalidFields([...credentials.values()], 'CONTEXT_KEY_RESERVED')
  if (values.size > 0) throw invalidFields([...values.values()])
}
