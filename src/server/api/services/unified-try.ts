import type { TryUnifiedMappingRequest } from '../../../../gen/patchbay/v1/unified_mapping_service_pb.ts'
import { SHIPPED_NAMES } from '../../../engine/catalog/index.ts'
import { isReadingMethod } from '../../../engine/definitions/index.ts'
import {
  checkFixtures,
  fixtureRequest,
  type MappingFinding,
  type MappingFixture,
  type MappingPlan,
  type MergedMapping,
  parseFixture,
  parseTriedCall,
  previewUnified,
  type TriedMapping,
  tryCall,
  tryFixture,
  type UnifiedRequest,
  type UnifiedTarget,
} from '../../../engine/unified/index.ts'
import { catchFailure, Failure, invalidFields, suggest } from '../../../foundation/base/index.ts'
import type { JsonObject } from '../../../foundation/json/index.ts'
import { getIntegratedAccount } from '../../../platform/accounts/index.ts'
import { draftMethod, findDefinition, type LayerToCheck } from '../../../platform/unified-config/index.ts'
import type { EnvironmentPrincipal } from '../caller.ts'
import type { ServiceDeps } from './deps.ts'
import type { OpenRequest } from './proxy-calls.ts'

/** What trying a mapping takes. */
export type TryDeps = Pick<ServiceDeps, 'database' | 'accounts' | 'clock' | 'unifiedCalls' | 'unifiedMappings'>

/** A mapping that was tried, with what the draft and the records show. */
export interface TryReport {
  readonly tried: TriedMapping
  readonly findings: readonly MappingFinding[]
}

/**
 * Runs a call through a stored or drafted mapping.
 *
 * @throws Failure RESOURCE_NOT_FOUND, UNIFIED_NOT_MAPPED, DEFINITION_INVALID, INVALID_FIELD; without a fixture those of
 * `loadAccountForCall`
 */
export async function tryUnifiedMapping(
  deps: TryDeps,
  open: OpenRequest,
  caller: EnvironmentPrincipal,
  request: TryUnifiedMappingRequest,
): Promise<TryReport> {
  const { call = {}, method } = request
  const layer = await layerOf(deps, caller, request)
  if (call.exchanges !== undefined) {
    const fixture = parseFixture({ ...call, method }, 'call')
    return await tryWithFixture(deps, layer, await mappingOf(deps, layer, request), fixture)
  }
  const asked = fixtureRequest(parseTriedCall(call, 'call'))
  if (request.integratedAccountId === undefined)
    throw invalidFields([
      {
        field: 'integrated_account_id',
        description: 'is required without call.exchanges: the call is made through an account',
        rule: 'required',
      },
    ])
  const { plan, findings } = await mappingOf(deps, layer, request)
  const tried = await tryLive(deps, open, layer, plan, asked, request.sendWrite)
  return { tried, findings }
}

interface MappingToTry {
  readonly plan: MappingPlan
  readonly merged: MergedMapping
  readonly findings: readonly MappingFinding[]
}

async function mappingOf(
  { database, unifiedMappings }: TryDeps,
  layer: LayerToCheck & { readonly environmentId: string },
  { config, model, resource, method }: TryUnifiedMappingRequest,
): Promise<MappingToTry> {
  if (config !== undefined) return await draftMethod(database.pool, layer)
  const { plan, merged } = await unifiedMappings.find(database.pool, layer, { model, resource, method })
  return { plan, merged, findings: [] }
}

async function tryWithFixture(
  { database, unifiedCalls, clock }: TryDeps,
  layer: LayerToCheck,
  { plan, merged, findings }: MappingToTry,
  fixture: MappingFixture,
): Promise<TryReport> {
  const definition = await findDefinition(database.pool, layer)
  if (definition === undefined)
    throw new Failure(
      'UNIFIED_NOT_MAPPED',
      `there is no integration ${layer.integrationName} to take requests from${suggest(layer.integrationName, SHIPPED_NAMES)}`,
    )
  const { evaluator } = unifiedCalls.unified
  const tried = await tryFixture({ evaluator, clock }, plan, definition, fixture, layer.environmentId)
  return { tried, findings: [...findings, ...checkFixtures({ merged, tried: [tried] })] }
}

/**
 * Shows the main request, masked. Without `mayWrite` only methods that read are sent, and no request that changes something:
 * a mapping may name any method of the provider, in steps and expansions too.
 */
async function tryLive(
  { unifiedCalls }: TryDeps,
  open: OpenRequest,
  { environmentId = '', integratedAccountId = '' }: LayerToCheck,
  mapping: MappingPlan,
  request: UnifiedRequest,
  mayWrite: boolean,
): Promise<TriedMapping> {
  const { plan, access } = await unifiedCalls.readyAccount(open, environmentId, integratedAccountId)
  const target: UnifiedTarget = { plan, access: mayWrite ? access : { ...access, isReadOnly: true }, mapping }
  const nothing = { outcome: undefined, failure: undefined, traces: undefined, unused: 0 }
  const preview = await catchFailure(() => previewUnified(unifiedCalls.unified, target, request))
  if (preview instanceof Failure) return { ...nothing, exchanges: [], failure: preview }
  const { method, url, headers, body } = preview
  const shown = { method, url, headers, body }
  const unsent = { exchanges: [{ request: shown, response: undefined, differences: [] }], ...nothing }
  // Methods that read are sent through an account that nothing is written through.
  if (!mayWrite && !isReadingMethod(mapping.method)) return unsent
  const tried = await tryCall(unifiedCalls.unified, target, request)
  const { outcome, failure } = tried
  if (outcome === undefined) {
    const isWrite = failure?.reason === 'METHOD_NOT_ALLOWED' && !mayWrite
    return { ...tried, failure: isWrite ? writeNotSent(mapping.method) : failure, exchanges: unsent.exchanges }
  }
  const response = { status: outcome.status, body: outcome.kind === 'ok' ? outcome.raw : outcome.body }
  return { ...tried, exchanges: [{ request: shown, response, differences: [] }] }
}

function writeNotSent(method: string): Failure {
  const description = `must be true: the mapping of ${method} sends a request that changes something at the third party`
  return invalidFields([{ field: 'send_write', description, rule: 'required' }])
}

/** The layer that a draft replaces: that of the account, or without one of the environment. */
async function layerOf(
  { accounts, database }: TryDeps,
  { teamId, environmentId }: EnvironmentPrincipal,
  request: TryUnifiedMappingRequest,
): Promise<LayerToCheck & { readonly environmentId: string }> {
  const { model, resource, method, integratedAccountId, integrationName } = request
  const config: JsonObject = request.config ?? {}
  const layer = { teamId, environmentId, model, resource, method, config }
  if (integratedAccountId === undefined) {
    if (integrationName !== undefined) return { ...layer, integrationName }
    throw invalidFields([
      { field: 'integration_name', description: 'is required without an account', rule: 'unified_mapping.scope' },
    ])
  }
  const { integration } = await getIntegratedAccount(accounts, database.pool, { environmentId }, integratedAccountId)
  return { ...layer, integratedAccountId, integrationName: integration.name }
}
