import type { MessageInitShape } from '@bufbuild/protobuf'
import type { CatalogEntrySchema } from '../../../gen/patchbay/v1/catalog_pb.ts'
import { CatalogService } from '../../../gen/patchbay/v1/catalog_service_pb.ts'
import { listQuery, pageById } from '../../database/index.ts'
import { type CatalogEntry, listCatalog } from '../../link-sessions/index.ts'
import { environmentCallerOf } from '../caller.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'

/** Shows what customers can connect in an environment. */
export function catalogService({ links }: Pick<ServiceDeps, 'links'>): ServiceDefinition {
  return defineService(CatalogService, {
    listCatalog: async (request, context) => {
      const { kind, tokenId, environmentId } = environmentCallerOf(context)
      const { category, isBeta, tags, q } = request
      const filter = { category, isBeta, tags, q }
      const linkSessionId = kind === 'link' ? tokenId : undefined
      const query = listQuery('catalog', linkSessionId ?? environmentId, filter)
      const page = await pageById(query, request, (range) =>
        listCatalog(links, { environmentId, linkSessionId }, filter, range),
      )
      const logoUrl = (name: string) => `${links.publicUrl()}/connect/logo/${name}.svg`
      const catalogEntries = page.items.map((entry) => catalogEntryToProto(entry, logoUrl))
      return { catalogEntries, nextPageToken: page.nextPageToken }
    },
  })
}

function catalogEntryToProto(
  entry: CatalogEntry,
  shippedLogoUrl: (name: string) => string,
): MessageInitShape<typeof CatalogEntrySchema> {
  const { description, integrationName: name } = entry
  return {
    environmentIntegrationId: entry.id,
    integrationId: entry.integrationId,
    name,
    label: description.label,
    description: description.text,
    tags: [...description.tags],
    logo: description.logoUrl ?? (description.hasShippedLogo ? shippedLogoUrl(name) : ''),
    icon: description.iconUrl ?? '',
    category: entry.category,
    isBeta: entry.isBeta,
    authMethods: description.authMethods.map(({ label = '', ...method }) => ({ ...method, label })),
    team: { name: entry.teamName, isVerified: entry.isTeamVerified, tosLink: entry.teamTosLink },
    resourceCount: description.resourceCount,
    methodCount: description.methodCount,
    toolCount: description.toolCount,
    unifiedModels: [...entry.unifiedModels],
    receivesWebhooks: description.receivesWebhooks,
    subscribesWebhooks: description.subscribesWebhooks,
  }
}
