import { IntegrationService } from '../../../gen/patchbay/v1/integration_service_pb.ts'
import { createIntegrationGrant, deleteIntegrationGrant, listIntegrationGrants } from '../../integrations/index.ts'
import { decodePageToken, type GrantCursor, type PageCursor, readPageSize, toPage } from '../../storage/index.ts'
import { integrationGrantToProto } from '../convert/integration.ts'
import { queryOf } from '../convert/page.ts'
import { type IdempotencyDeps, runIdempotent } from '../idempotency.ts'
import type { ServiceHandlers } from '../service.ts'

type GrantMethod = 'createIntegrationGrant' | 'listIntegrationGrants' | 'deleteIntegrationGrant'

/** The owner's side of `sharing: ask`: who else may install an integration. Part of the integration service. */
export function integrationGrantHandlers(
  deps: IdempotencyDeps,
): Pick<ServiceHandlers<typeof IntegrationService>, GrantMethod> {
  const { database } = deps
  return {
    createIntegrationGrant: {
      access: 'team',
      handle: (request, { principal: { teamId } }) =>
        runIdempotent(deps, teamId, IntegrationService.method.createIntegrationGrant, request, async (tx) =>
          integrationGrantToProto(await createIntegrationGrant(tx, teamId, request)),
        ),
    },
    listIntegrationGrants: {
      access: 'team',
      handle: async (request, { principal: { teamId } }) => {
        const { integrationId } = request
        const query = queryOf('integration_grant', teamId, { integrationId })
        const size = readPageSize(request)
        const after = positionOf(decodePageToken(query, request.pageToken, ['time', 'uuid']))
        const range = { after, limit: size + 1 }
        const found = await listIntegrationGrants(database.pool, teamId, integrationId, range)
        const page = toPage(query, found, size, (grant) => [grant.createdAt.getTime(), grant.teamId])
        return { integrationGrants: page.items.map(integrationGrantToProto), nextPageToken: page.nextPageToken }
      },
    },
    deleteIntegrationGrant: {
      access: 'team',
      handle: async (request, { principal: { teamId } }) => {
        await deleteIntegrationGrant(database.pool, teamId, request)
        return {}
      },
    },
  }
}

function positionOf(cursor: PageCursor | undefined): GrantCursor | undefined {
  if (cursor === undefined) return undefined
  const [createdAtMs, teamId] = cursor
  return { createdAt: new Date(Number(createdAtMs)), teamId: String(teamId) }
}
