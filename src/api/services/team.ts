import { TeamService } from '../../../gen/patchbay/v1/team_service_pb.ts'
import { type CascadeDelete, createTeam, deleteTeam, getTeam, listTeams, updateTeam } from '../../tenancy/index.ts'
import { versionFrom } from '../convert/etag.ts'
import { pageById, queryOf } from '../convert/page.ts'
import { teamChangeFromProto, teamToProto } from '../convert/team.ts'
import { type IdempotencyDeps, runIdempotent } from '../idempotency.ts'
import { defineService, type ServiceDefinition } from '../service.ts'

/** What the service needs beside the database. */
export interface TeamServiceDeps extends IdempotencyDeps {
  readonly contents: CascadeDelete
}

/** Administers teams: a team sees itself, the operator's team all. */
export function teamService(deps: TeamServiceDeps): ServiceDefinition {
  const { database } = deps
  return defineService(TeamService, {
    createTeam: {
      access: 'team',
      handle: (request, { principal }) =>
        runIdempotent(deps, principal.teamId, TeamService.method.createTeam, request, async (tx) =>
          teamToProto(await createTeam(tx, principal, { ...teamChangeFromProto(request), name: request.name })),
        ),
    },
    getTeam: {
      access: 'team',
      handle: async ({ id }, { principal }) => teamToProto(await getTeam(database.pool, principal, id)),
    },
    listTeams: {
      access: 'team',
      handle: async (request, { principal }) => {
        const query = queryOf('team', principal.teamId)
        const page = await pageById(query, request, (range) => listTeams(database.pool, principal, range))
        return { teams: page.items.map(teamToProto), nextPageToken: page.nextPageToken }
      },
    },
    updateTeam: {
      access: 'team',
      handle: async (request, { principal }) => {
        const input = { ...teamChangeFromProto(request), id: request.id, version: versionFrom(request.etag) }
        return teamToProto(await updateTeam(database.pool, principal, input))
      },
    },
    deleteTeam: {
      access: 'team',
      handle: async ({ id, etag, force }, { principal }) => {
        await database.transaction((tx) => deleteTeam(deps, tx, principal, { id, version: versionFrom(etag), force }))
        return {}
      },
    },
  })
}
