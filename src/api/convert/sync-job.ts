import type { MessageInitShape } from '@bufbuild/protobuf'
import type { SyncJobSchema } from '../../../gen/patchbay/v1/sync_job_pb.ts'
import { etagOf, type SyncJobRecord } from '../../storage/index.ts'
import { structFrom } from './struct.ts'
import { syncResourcesToProto } from './sync-resource.ts'
import { timestampFrom } from './timestamp.ts'

export function syncJobToProto(job: SyncJobRecord): MessageInitShape<typeof SyncJobSchema> {
  return {
    id: job.id,
    environmentId: job.environmentId,
    label: job.label,
    integrationName: job.integrationName,
    argsSchema: structFrom(job.argsSchema),
    argsValidation: job.argsValidation,
    resources: syncResourcesToProto(job.resources),
    createdAt: timestampFrom(job.createdAt),
    updatedAt: timestampFrom(job.updatedAt),
    etag: etagOf(job.version),
  }
}
