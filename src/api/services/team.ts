import type { MessageInitShape } from '@bufbuild/protobuf'
import type { TeamSchema } from '../../../gen/patchbay/v1/team_pb.ts'
import {
  type CreateTeamRequest,
  TeamService,
  type UpdateTeamRequest,
} from '../../../gen/patchbay/v1/team_service_pb.ts'
import { listQuery, pageById } from '../../database/index.ts'
import {
  createTeam,
  deleteTeam,
  getTeam,
  listTeams,
  type TeamChange,
  type TeamRecord,
  updateTeam,
} from '../../tenancy/index.ts'
import { callerOf, teamIdOf } from '../caller.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import { runIdempotent } from './idempotency.ts'
import { timestampFrom, toEtag, versionFrom } from './values.convert.ts'

/** Administers teams: a team sees itself, the operator's team sees all. */
export function teamService(deps: Pick<ServiceDeps, 'database' | 'secrets' | 'contents'>): ServiceDefinition {
  const { database } = deps
  return defineService(TeamService, {
    createTeam: (request, context) =>
      runIdempotent(deps, teamIdOf(context), TeamService.method.createTeam, request, async (tx) =>
        teamToProto(await createTeam(tx, callerOf(context), { ...teamChangeFromProto(request), name: request.name })),
      ),
    getTeam: async ({ id }, context) => teamToProto(await getTeam(database.pool, callerOf(context), id)),
    listTeams: async (request, context) => {
      const query = listQuery('team', teamIdOf(context))
      const page = await pageById(query, request, (range) => listTeams(database.pool, callerOf(context), range))
      return { teams: page.items.map(teamToProto), nextPageToken: page.nextPageToken }
    },
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
export function teamToProto(team: TeamRecord): MessageInitShape<typeof TeamSchema> {
  return {
    id: team.id,
    name: team.name,
    domain: team.domain,
    logo: team.logo,
    isVerified: team.isVerified,
    isWhiteLabel: team.isWhiteLabel,
    tosLink: team.tosLink === '' ? undefined : team.tosLink,
    allowImpersonation: team.allowImpersonation,
    createdAt: timestampFrom(team.createdAt),
    updatedAt: timestampFrom(team.updatedAt),
    etag: toEtag(team.version),
  }
}

/** The fields that a request gives a team. */
function teamChangeFromProto(request: CreateTeamRequest | UpdateTeamRequest): TeamChange {
  const { name, domain, logo, isWhiteLabel, tosLink, allowImpersonation } = request
  return { name, domain, logo, isWhiteLabel, tosLink, allowImpersonation }
}
