import { LinkTokenService } from '../../../../gen/patchbay/v1/link_token_service_pb.ts'
import { findReservedKeys } from '../../../platform/accounts/index.ts'
import {
  cancelLinkSession,
  createLinkSession,
  getLinkSession,
  listLinkSessions,
} from '../../../platform/links/index.ts'
import { environmentCallerOf, environmentIdOf } from '../caller.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import { runIdempotent } from './idempotency.ts'
import { linkSessionFilterFromProto, linkSessionInputFromProto, linkTokenToProto } from './link-token.convert.ts'
import { byId, listRpc } from './list-rpc.ts'

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
          const {
            session,
            token: linkToken,
            ...created
          } = await createLinkSession(links, tx, environmentCallerOf(context), input)
          return linkTokenToProto({ ...session, ...created, linkToken })
        })
      },
      getLinkToken: async ({ id }, context) => {
        const { session, transitions } = await getLinkSession(links, environmentCallerOf(context), id)
        return linkTokenToProto({ ...session, transitions })
      },
      listLinkTokens: listRpc(
        LinkTokenService.method.listLinkTokens,
        linkTokenToProto,
        byId({
          list: 'link_token',
          owner: environmentIdOf,
          filter: linkSessionFilterFromProto,
          read: async (range, context, filter) => {
            const found = await listLinkSessions(links, environmentCallerOf(context), filter, range)
            return found.map(({ session, transitions }) => ({ ...session, transitions }))
          },
        }),
      ),
      cancelLinkToken: async ({ id }, context) => {
        const { session, transitions } = await cancelLinkSession(links, environmentCallerOf(context), id)
        return linkTokenToProto({ ...session, transitions })
      },
    },
    {
      createLinkToken: ({ context = {} }) =>
        findReservedKeys(context).map((violation) => ({ ...violation, reason: 'CONTEXT_KEY_RESERVED' })),
    },
  )
}
