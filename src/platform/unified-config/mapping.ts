import type { MappingFinding } from '../../engine/unified/index.ts'
import { etagMismatch, Failure, newId, notFound } from '../../foundation/base/index.ts'
import { type Db, isForeignKeyViolation, type Tx } from '../../foundation/database/index.ts'
import { deepMerge, exceedsJsonSize, type JsonObject } from '../../foundation/json/index.ts'
import { assertNoErrors, checkLayer, type LayerToCheck } from './check-layer.ts'
import {
  deleteMappingRow,
  findMapping,
  findMappingIdAt,
  insertMapping,
  lockMapping,
  MAPPING_ACCOUNT_CONSTRAINT,
  type MappingOwner,
  measureMappings,
  type StoredMapping,
  updateMappingRow,
} from './sql/mapping.ts'
import { lockOwner } from './sql/model.ts'

/** Mappings of an environment with its accounts, or of a team's base, at most, and the length of their configs together, characters. */
const MAPPINGS_MAX = 5_000
const CHARACTERS_MAX = 16 * 1024 * 1024
/** Length of the configs of a model for an integration in one scope, characters: a call of any of its methods reads them all. */
const MODEL_CHARACTERS_MAX = 1024 * 1024

/** Who stores a mapping: base mappings are a team's. */
export interface MappingWriter extends MappingOwner {
  readonly mayWriteBase: boolean
}

/** A mapping that was stored, and what its check found: warnings and hints. */
interface WrittenMapping {
  readonly mapping: StoredMapping
  /** With paths of the request: `config.response.fields.name`. */
  readonly warnings: readonly MappingFinding[]
}

/**
 * Stores a mapping after checking what it comes to.
 *
 * @throws Failure TEAM_TOKEN_REQUIRED for a base mapping, DEFINITION_INVALID with every error, NAME_TAKEN, LIMIT_REACHED,
 * RESOURCE_NOT_FOUND for an account that is deleted meanwhile
 */
export async function createMapping(tx: Tx, writer: MappingWriter, layer: LayerToCheck): Promise<WrittenMapping> {
  const place = {
    teamId: layer.teamId,
    environmentId: layer.environmentId ?? null,
    integratedAccountId: layer.integratedAccountId ?? null,
    model: layer.model,
    resource: layer.resource,
    integrationName: layer.integrationName,
    method: layer.method,
  }
  assertWritable(writer, place)
  const findings = await checkLayer(tx, layer, 'config')
  assertNoErrors(findings)
  await assertRoom(tx, place, layer.config, 1)
  const mapping = await insert(tx, { ...place, id: newId(), config: layer.config })
  if (mapping !== undefined) return { mapping, warnings: findings }
  const message = `there is a mapping of ${place.model}/${place.resource} ${place.method} for ${place.integrationName} in this scope already: change that one`
  throw new Failure('NAME_TAKEN', message, {
    resource: { type: 'unified_mapping', id: (await findMappingIdAt(tx, place)) ?? '' },
  })
}

/** @throws Failure RESOURCE_NOT_FOUND */
export async function getMapping(tx: Db, owner: MappingOwner, id: string): Promise<StoredMapping> {
  const stored = await findMapping(tx, owner, id)
  if (stored === undefined) throw notFound('unified_mapping', id)
  return stored
}

/** A change of a mapping. */
export interface MappingChange {
  readonly id: string
  /** A merge patch (RFC 7396) to the stored config, or with `isReplacing` the whole new one; absent: unchanged. */
  readonly config?: JsonObject | undefined
  readonly isReplacing: boolean
  /** The version the caller saw; absent: any version. */
  readonly version: number | undefined
}

/**
 * Changes the config of a mapping. It is read, merged and written under the lock of its row.
 *
 * @throws Failure RESOURCE_NOT_FOUND, TEAM_TOKEN_REQUIRED, ETAG_MISMATCH, DEFINITION_INVALID with every error, LIMIT_REACHED
 */
export async function updateMapping(tx: Tx, writer: MappingWriter, change: MappingChange): Promise<WrittenMapping> {
  const { id, version } = change
  const stored = await lockMapping(tx, writer, id)
  if (stored === undefined) throw notFound('unified_mapping', id)
  assertWritable(writer, stored)
  if (version !== undefined && version !== stored.version) throw etagMismatch('unified_mapping', id)
  if (change.config === undefined) return { mapping: stored, warnings: [] }
  const config = change.isReplacing ? change.config : deepMerge(stored.config, change.config)
  const findings = await checkLayer(tx, { ...placeOf(stored), config }, 'config')
  assertNoErrors(findings)
  await assertRoom(tx, stored, config, 0)
  const mapping = await updateMappingRow(tx, writer, id, config, version)
  if (mapping === undefined) throw etagMismatch('unified_mapping', id)
  return { mapping, warnings: findings }
}

/** Deletes a mapping. @throws Failure RESOURCE_NOT_FOUND, TEAM_TOKEN_REQUIRED, ETAG_MISMATCH */
export async function deleteMapping(
  tx: Db,
  writer: MappingWriter,
  { id, version }: { readonly id: string; readonly version: number | undefined },
): Promise<void> {
  assertWritable(writer, await getMapping(tx, writer, id))
  if (!(await deleteMappingRow(tx, writer, id, version))) throw etagMismatch('unified_mapping', id)
}

function placeOf(stored: StoredMapping): LayerToCheck {
  const { environmentId, integratedAccountId, ...rest } = stored
  return {
    ...rest,
    environmentId: environmentId ?? undefined,
    integratedAccountId: integratedAccountId ?? undefined,
  }
}

function assertWritable(
  { mayWriteBase }: MappingWriter,
  { environmentId }: Pick<StoredMapping, 'environmentId'>,
): void {
  if (environmentId === null && !mayWriteBase)
    throw new Failure('TEAM_TOKEN_REQUIRED', 'mappings of the scope base need a team token')
}

/** @throws Failure LIMIT_REACHED when the scope would have too many mappings, or too long ones */
async function assertRoom(
  tx: Tx,
  place: Parameters<typeof measureMappings>[1],
  config: JsonObject,
  added: number,
): Promise<void> {
  const { teamId, environmentId } = place
  await lockOwner(tx, environmentId === null ? 'team' : 'environment', environmentId ?? teamId)
  const { count, characters, charactersOfModel } = await measureMappings(tx, place)
  const owner = environmentId === null ? 'the team' : 'the environment'
  if (count + added > MAPPINGS_MAX)
    throw new Failure('LIMIT_REACHED', `${owner} has ${MAPPINGS_MAX} unified mappings: delete some first`)
  const left = CHARACTERS_MAX - characters
  if (left < 0 || exceedsJsonSize(config, left))
    throw new Failure('LIMIT_REACHED', `the unified mappings of ${owner} are too long together: delete some first`)
  const leftOfModel = MODEL_CHARACTERS_MAX - charactersOfModel
  if (leftOfModel < 0 || exceedsJsonSize(config, leftOfModel)) {
    const what = `the unified mappings of ${place.model} for ${place.integrationName} in this scope`
    throw new Failure(
      'LIMIT_REACHED',
      `${what} would have more than ${MODEL_CHARACTERS_MAX} characters: delete some first`,
    )
  }
}

async function insert(
  tx: Db,
  mapping: Omit<StoredMapping, 'createdAt' | 'updatedAt' | 'version'>,
): Promise<StoredMapping | undefined> {
  try {
    return await insertMapping(tx, mapping)
  } catch (error) {
    if (!isForeignKeyViolation(error, MAPPING_ACCOUNT_CONSTRAINT)) throw error
    throw notFound('integrated_account', mapping.integratedAccountId ?? '')
  }
}
