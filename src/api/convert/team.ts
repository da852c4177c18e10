import type { MessageInitShape } from '@bufbuild/protobuf'
import type { TeamSchema } from '../../../gen/patchbay/v1/team_pb.ts'
import type { CreateTeamRequest, UpdateTeamRequest } from '../../../gen/patchbay/v1/team_service_pb.ts'
import { type TeamRecord, toEtag } from '../../storage/index.ts'
import type { TeamChange } from '../../tenancy/index.ts'
import { timestampFrom } from './timestamp.ts'

/** A team as everyone sees it who may. */
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
export function teamChangeFromProto(request: CreateTeamRequest | UpdateTeamRequest): TeamChange {
  const { name, domain, logo, isWhiteLabel, tosLink, allowImpersonation } = request
  return { name, domain, logo, isWhiteLabel, tosLink, allowImpersonation }
}
