import { UnifiedModelService } from '../../../../gen/patchbay/v1/unified_model_service_pb.ts'
import { type CustomFieldDescription, listCustomFields } from '../../../engine/unified/index.ts'
import { catchFailure, Failure } from '../../../foundation/base/index.ts'
import { decodePageToken, listQuery, readPageSize, toPage } from '../../../foundation/database/index.ts'
import { getIntegratedAccount } from '../../../platform/accounts/index.ts'
import {
  checkModelConfig,
  createModel,
  deleteModel,
  findDefinition,
  getModel,
  listModels,
  type MappedAccount,
  type ModelDescription,
  updateModel,
} from '../../../platform/unified-config/index.ts'
import { environmentCallerOf, teamIdOf } from '../caller.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import { runIdempotent } from './idempotency.ts'
import { findingToProto } from './integration.convert.ts'
import { listRpc } from './list-rpc.ts'
import type { OpenRequest } from './proxy-calls.ts'
import {
  type CustomFieldsByResource,
  modelChangeFromProto,
  modelDescriptionToProto,
  unifiedModelToProto,
} from './unified-model.convert.ts'
import { versionFrom } from './values.convert.ts'

/** Administers unified models, and describes what they offer for an account. */
export function unifiedModelService(
  deps: Pick<ServiceDeps, 'database' | 'secrets' | 'accounts' | 'unifiedMappings' | 'unifiedCalls'>,
): ServiceDefinition {
  const { database, accounts, unifiedMappings } = deps
  return defineService(UnifiedModelService, {
    createUnifiedModel: async (request, context) => {
      const { createUnifiedModel: method } = UnifiedModelService.method
      const teamId = teamIdOf(context)
      const { name, config = {} } = request
      const answer = await runIdempotent(deps, teamId, method, request, async (tx) =>
        unifiedModelToProto(await createModel(tx, teamId, { name, config })),
      )
      unifiedMappings.invalidate()
      return answer
    },
    getUnifiedModel: async ({ name }, context) =>
      unifiedModelToProto(await getModel(database.pool, teamIdOf(context), name)),
    listUnifiedModels: listRpc(
      UnifiedModelService.method.listUnifiedModels,
      unifiedModelToProto,
      async (request, context) => {
        const query = listQuery('unified_model', teamIdOf(context))
        const size = readPageSize(request)
        const after = decodePageToken(query, request.pageToken, ['text'])?.[0]
        const range = { after: after === undefined ? undefined : String(after), limit: size + 1 }
        const found = await listModels(database.pool, teamIdOf(context), range)
        return toPage(query, found, size, ({ name }) => [name])
      },
    ),
    updateUnifiedModel: async (request, context) => {
      const change = modelChangeFromProto(request)
      const updated = await database.transaction((tx) => updateModel(tx, teamIdOf(context), change))
      unifiedMappings.invalidate()
      return unifiedModelToProto(updated)
    },
    deleteUnifiedModel: async ({ name, etag, force }, context) => {
      const input = { name, version: versionFrom(etag), force }
      await database.transaction((tx) => deleteModel(tx, teamIdOf(context), input))
      unifiedMappings.invalidate()
      return {}
    },
    checkUnifiedModel: async ({ name, config = {} }) => {
      const findings = checkModelConfig(name, config, '')
      return { valid: findings.length === 0, findings: findings.map(findingToProto) }
    },
    describeUnifiedModel: async (request, context) => {
      const { model, integratedAccountId, resource } = request
      const scope = environmentCallerOf(context)
      const { integration } = await getIntegratedAccount(accounts, database.pool, scope, integratedAccountId)
      const account = { environmentId: scope.environmentId, integratedAccountId, integrationName: integration.name }
      const description = await unifiedMappings.describe(database.pool, account, model, resource)
      const customFields = request.includeCustomFields
        ? await readCustomFields(deps, context, { ...account, teamId: scope.teamId }, description)
        : new Map()
      return modelDescriptionToProto(description, customFields)
    },
  })
}

/** The custom fields of each mapped resource, or why they could not be read; resources whose definition lists none are left out. */
async function readCustomFields(
  { database, unifiedCalls }: Pick<ServiceDeps, 'database' | 'unifiedCalls'>,
  open: OpenRequest,
  account: Required<MappedAccount> & { readonly teamId: string },
  { resources }: ModelDescription,
): Promise<CustomFieldsByResource> {
  const { environmentId, integratedAccountId = '' } = account
  const ready = await unifiedCalls.readyAccount(open, environmentId, integratedAccountId)
  const definition = (await findDefinition(database.pool, account)) ?? {}
  const found = new Map<string, readonly CustomFieldDescription[] | string>()
  for (const { resource, methods } of resources) {
    const read = methods.find(({ name }) => name === 'list') ?? methods[0]
    if (read === undefined) continue
    const fields = await catchFailure(() =>
      listCustomFields(unifiedCalls.unified.proxy, ready, definition, read.targetResource),
    )
    if (fields !== undefined) found.set(resource.name, fields instanceof Failure ? fields.publicMessage : fields)
  }
  return found
}
