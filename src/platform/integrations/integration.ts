import { type ConfigKind, checkConfigAsync } from '../../engine/definitions/index.ts'
import { etagMismatch, Failure, newId, notFound, type Violation } from '../../foundation/base/index.ts'
import { type Db, isUniqueViolation, type Tx } from '../../foundation/database/index.ts'
import type { TaskOwner } from '../../foundation/fair/index.ts'
import { deepMerge, type JsonObject } from '../../foundation/json/index.ts'
import { type Integration, isVisible, withTeamAndEnvironments } from './integration-view.ts'
import {
  findIntegration,
  findIntegrationByName,
  INTEGRATION_NAME_CONSTRAINT,
  type IntegrationRecord,
  insertIntegration,
  listVisibleIntegrations,
  type Sharing,
  updateIntegrationRow,
} from './sql/integrations.ts'
import {
  assertUrlsAllowed,
  assertValid,
  findMasks,
  type IntegrationDeps,
  integrationSecretRef,
  nameTaken,
  prepareConfig,
} from './stored-config.ts'

/** A new integration. */
export interface IntegrationInput {
  /** `[a-z0-9_-]{1,128}`, unique in the team. */
  readonly name: string
  /** Absent: empty. */
  readonly category?: string | undefined
  /** Absent: false. */
  readonly isBeta?: boolean | undefined
  /** Absent: `deny`. */
  readonly sharing?: Sharing | undefined
  readonly config: JsonObject
}

/**
 * Checks a definition completely and stores it, its secrets separately.
 *
 * @throws Failure DEFINITION_INVALID, URL_NOT_ALLOWED, SECRET_MASKED with every finding; NAME_TAKEN naming the holder
 */
export async function createIntegration(
  deps: IntegrationDeps,
  tx: Db,
  teamId: string,
  input: IntegrationInput,
): Promise<Integration> {
  assertValid(await checkConfigAsync(input.config, 'integration', 'config', { owner: teamId }))
  assertUrlsAllowed(deps.checkUrls(input.config, 'config'))
  const { masked, storeSecrets } = prepareConfig(deps.secrets, input.config, undefined, 'config')
  const { name, category = '', isBeta = false, sharing = 'deny' } = input
  const record = await insertIntegration(tx, newId(), teamId, { name, category, isBeta, sharing, config: masked })
  if (record === undefined) throw nameTaken(name, (await findIntegrationByName(tx, teamId, name))?.id)
  await storeSecrets(tx, integrationSecretRef(record))
  return await toIntegration(tx, teamId, record)
}

/** An integration that the team owns or another shares. @throws Failure RESOURCE_NOT_FOUND */
export async function getIntegration(tx: Db, teamId: string, id: string): Promise<Integration> {
  const record = await findIntegration(tx, id)
  if (record === undefined || !isVisible(record, teamId)) throw notFound('integration', id)
  return await toIntegration(tx, teamId, record)
}

/**
 * At most `limit` integrations that the team owns or others share, below the id `before`, newest first.
 *
 * @param page.view `basic` leaves `config` undefined
 */
export async function listIntegrations(
  tx: Db,
  teamId: string,
  page: { readonly before: string | undefined; readonly limit: number; readonly view: 'basic' | 'full' },
): Promise<readonly Integration[]> {
  const { before, limit, view } = page
  const records = await listVisibleIntegrations(tx, teamId, { before, limit, withConfig: view === 'full' })
  return await withTeamAndEnvironments(tx, teamId, records)
}

/** Changes to an integration; what is undefined keeps its value. */
export interface IntegrationChange {
  readonly id: string
  readonly name?: string | undefined
  readonly category?: string | undefined
  readonly isBeta?: boolean | undefined
  readonly sharing?: Sharing | undefined
  /** A merge patch (RFC 7396), or with `replaceConfig` the whole new config; needs `version`. */
  readonly config?: JsonObject | undefined
  readonly replaceConfig?: boolean | undefined
  /** The version the caller saw. */
  readonly version?: number | undefined
}

/**
 * Changes an integration of the team; nothing given changes nothing.
 *
 * @throws Failure RESOURCE_NOT_FOUND, ETAG_REQUIRED, ETAG_MISMATCH, NAME_TAKEN; DEFINITION_INVALID, URL_NOT_ALLOWED,
 * SECRET_MASKED for the config that would result
 */
export async function updateIntegration(
  deps: IntegrationDeps,
  tx: Tx,
  teamId: string,
  change: IntegrationChange,
): Promise<Integration> {
  const { id, version, config: patch, replaceConfig = false, ...fields } = change
  if (patch !== undefined && version === undefined)
    throw new Failure(
      'ETAG_REQUIRED',
      'a change of config must say for which version it was made: send etag or If-Match',
    )
  const stored = await findIntegration(tx, id)
  if (stored?.config === undefined || stored.teamId !== teamId) throw notFound('integration', id)
  if (version !== undefined && version !== stored.version) throw etagMismatch('integration', id)
  if (patch === undefined && Object.values(fields).every((value) => value === undefined))
    return await toIntegration(tx, teamId, stored)
  await assertNameFree(tx, stored, fields.name)
  const before = stored.config
  const config =
    patch === undefined
      ? undefined
      : await storeConfig(deps, tx, { ...stored, config: before }, replaceConfig ? patch : deepMerge(before, patch))
  const updated = await writeChange(tx, teamId, id, { ...fields, config }, version)
  if (updated === undefined) throw etagMismatch('integration', id)
  return await toIntegration(tx, teamId, updated)
}

/** Validates a config or an override: every violation, fields as JSON paths from its root. Stores nothing. */
export async function checkDefinition(
  deps: Pick<IntegrationDeps, 'checkUrls'>,
  config: JsonObject,
  kind: ConfigKind,
  owner: TaskOwner,
): Promise<readonly Violation[]> {
  const findings = await checkConfigAsync(config, kind, '', owner)
  return [...findings, ...findMasks(config, ''), ...deps.checkUrls(config, '')]
}

async function toIntegration(tx: Db, teamId: string, record: IntegrationRecord): Promise<Integration> {
  const [integration] = await withTeamAndEnvironments(tx, teamId, [record])
  if (integration === undefined) throw new Error('one record without its view')
  return integration
}

/** Checks the new config of an integration and stores its secrets. @returns the masked config */
async function storeConfig(
  deps: IntegrationDeps,
  tx: Db,
  stored: IntegrationRecord & { readonly config: JsonObject },
  config: JsonObject,
): Promise<JsonObject> {
  assertValid(await checkConfigAsync(config, 'integration', 'config', { owner: stored.teamId }))
  assertUrlsAllowed(deps.checkUrls(config, 'config'))
  const { masked, storeSecrets } = prepareConfig(deps.secrets, config, stored.config, 'config')
  await storeSecrets(tx, integrationSecretRef(stored))
  return masked
}

async function assertNameFree(tx: Db, { id, teamId, name }: IntegrationRecord, wanted?: string): Promise<void> {
  if (wanted === undefined || wanted === name) return
  const holder = await findIntegrationByName(tx, teamId, wanted)
  if (holder !== undefined && holder.id !== id) throw nameTaken(wanted, holder.id)
}

async function writeChange(
  tx: Db,
  teamId: string,
  id: string,
  fields: Omit<IntegrationChange, 'id' | 'version' | 'replaceConfig'>,
  version: number | undefined,
): Promise<IntegrationRecord | undefined> {
  try {
    return await updateIntegrationRow(tx, teamId, id, fields, version)
  } catch (error) {
    // Another call took the name after the check.
    const isTaken = fields.name !== undefined && isUniqueViolation(error, INTEGRATION_NAME_CONSTRAINT)
    throw isTaken && fields.name !== undefined ? nameTaken(fields.name, undefined) : error
  }
}
