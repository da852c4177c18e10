import type { MessageInitShape } from '@bufbuild/protobuf'
import type { EnvironmentSchema } from '../../../gen/patchbay/v1/environment_pb.ts'
import { type EnvironmentRecord, toEtag } from '../../storage/index.ts'
import { timestampFrom } from './timestamp.ts'

/** An environment of the caller's team. */
export function environmentToProto(environment: EnvironmentRecord): MessageInitShape<typeof EnvironmentSchema> {
  return {
    id: environment.id,
    teamId: environment.teamId,
    name: environment.name,
    createdAt: timestampFrom(environment.createdAt),
    updatedAt: timestampFrom(environment.updatedAt),
    etag: toEtag(environment.version),
  }
}
