import { TeamSchema } from '../../../../gen/patchbay/v1/team_pb.ts'
import {
  type CreateTeamRequest,
  TeamService,
  type UpdateTeamRequest,
} from '../../../../gen/patchbay/v1/team_service_pb.ts'
import {
  createTeam,
  deleteTeam,
  getTeam,
  listTeams,
  type TeamChange,
  type TeamRecord,
  updateTeam,
} from '../../../platform/tenancy/index.ts'
import { callerOf, teamIdOf } from '../caller.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import { runIdempotent } from './idempotency.ts'
import { byId, listRpc } from './list-rpc.ts'
import { shapeOf } from './shape.ts'
import { versionFrom } from './values.convert.ts'

/** Administers teams: a team sees itself, the operator's team sees all. */
export function teamService(deps: Pick<ServiceDeps, 'database' | 'secrets' | 'contents'>): ServiceDefinition {
  const { database } = deps
  return defineService(TeamService, {
    createTeam: (request, context) =>
      runIdempotent(deps, teamIdOf(context), TeamService.method.createTeam, request, async (tx) =>
        teamToProto(await createTeam(tx, callerOf(context), { ...teamChangeFromProto(request), name: request.name })),
      ),
    getTeam: async ({ id }, context) => teamToProto(await getTeam(database.pool, callerOf(context), id)),
    listTeams: listRpc(
      TeamService.method.listTeams,
      teamToProto,
      byId({
        list: 'team',
        owner: teamIdOf,
        read: (range, context) => listTeams(database.pool, callerOf(context), range),
      }),
    ),
    updateTeam: async (request, context) => {
      const input = { ...teamChangeFromProto(request), id: request.id, version: versionFrom(request.etag) }
      return teamToProto(await updateTeam(database.pool, callerOf(context), input))
    },
    deleteTeam: async ({ id, etag, force }, context) => {
      await database.transaction((tx) =>
        deleteTeam(deps, tx, callerOf(context), { id, version: versionFrom(etag), force }),
      )
      return {}
    },
  })
}

/** A team. */
export const teamToProto = shapeOf(TeamSchema).from<TeamRecord>({
  tosLink: ({ tosLink }) => (tosLink === '' ? undefined : tosLink),
})

/** The fields that a request gives a team. */
function teamChangeFromProto(request: CreateTeamRequest | UpdateTeamRequest): TeamChange {
  const { name, domain, logo, isWhiteLabel, tosLink, allowImpersonation } = request
  return { name, domain, logo, isWhiteLabel, tosLink, allowImpersonation }
}
