import { LinkTokenService } from '../../../gen/patchbay/v1/link_token_service_pb.ts'
import { findReservedKeys } from '../../accounts/index.ts'
import { listQuery, pageById } from '../../database/index.ts'
import { cancelLinkSession, createLinkSession, getLinkSession, listLinkSessions } from '../../link-sessions/index.ts'
import { environmentCallerOf, environmentIdOf } from '../caller.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import { runIdempotent } from './idempotency.ts'
import { linkSessionFilterFromProto, linkSessionInputFromProto, linkTokenToProto } from './link-token.convert.ts'

/** Makes links with which customers connect accounts. */
export function linkTokenService(deps: Pick<ServiceDeps, 'database' | 'secrets' | 'links'>): ServiceDefinition {
  const { links } = deps
  return defineService(
    LinkTokenService,
    {
      createLinkToken: (request, context) => {
        const { createLinkToken: method } = LinkTokenService.method
        const input = linkSessionInputFromProto(request)
        return runIdempotent(deps, environmentIdOf(context), method, request, async (tx) => {
          const { token, url, ...created } = await createLinkSession(links, tx, environmentCallerOf(context), input)
          return { ...linkTokenToProto(created), linkToken: token, url }
        })
      },
      getLinkToken: async ({ id }, context) => {
        return linkTokenToProto(await getLinkSession(links, environmentCallerOf(context), id))
      },
      listLinkTokens: async (request, context) => {
        const filter = linkSessionFilterFromProto(request)
        const query = listQuery('link_token', environmentIdOf(context), filter)
        const page = await pageById(query, request, async (range) =>
          (await listLinkSessions(links, environmentCallerOf(context), filter, range)).map(linkTokenToProto),
        )
        return { linkTokens: [...page.items], nextPageToken: page.nextPageToken }
      },
      cancelLinkToken: async ({ id }, context) => {
        return linkTokenToProto(await cancelLinkSession(links, environmentCallerOf(context), id))
      },
    },
    {
      createLinkToken: ({ context = {} }) =>
        findReservedKeys(context).map((violation) => ({ ...violation, reason: 'CONTEXT_KEY_RESERVED' })),
    },
  )
}
