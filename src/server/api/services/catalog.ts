import type { MessageInitShape } from '@bufbuild/protobuf'
import type { HandlerContext } from '@connectrpc/connect'
import type { CatalogEntrySchema } from '../../../../gen/patchbay/v1/catalog_pb.ts'
import { CatalogService } from '../../../../gen/patchbay/v1/catalog_service_pb.ts'
import { type CatalogEntry, listCatalog } from '../../../platform/links/index.ts'
import { environmentCallerOf, environmentIdOf } from '../caller.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import { byId, listRpc } from './list-rpc.ts'

/** Shows what customers can connect in an environment. */
export function catalogService({ links }: Pick<ServiceDeps, 'links'>): ServiceDefinition {
  const logoUrl = (name: string) => `${links.publicUrl()}/connect/logo/${name}.svg`
  return defineService(CatalogService, {
    listCatalog: listRpc(
      CatalogService.method.listCatalog,
      (entry: CatalogEntry) => catalogEntryToProto(entry, logoUrl),
      byId({
        list: 'catalog',
        owner: (context) => linkSessionIdOf(context) ?? environmentIdOf(context),
        filter: ({ category, isBeta, tags, q }) => ({ category, isBeta, tags, q }),
        read: (range, context, filter) =>
          listCatalog(
            links,
            { environmentId: environmentIdOf(context), linkSessionId: linkSessionIdOf(context) },
            filter,
            range,
          ),
      }),
    ),
  })
}

/** The session of a link's token. */
function linkSessionIdOf(context: HandlerContext): string | undefined {
  const { kind, tokenId } = environmentCallerOf(context)
  return kind === 'link' ? tokenId : undefined
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
