import { AuditEntrySchema } from '../../../../gen/patchbay/v1/audit_pb.ts'
import { AuditService } from '../../../../gen/patchbay/v1/audit_service_pb.ts'
import { type AuditEntryRecord, listAuditEntries } from '../../../platform/audit/index.ts'
import { callerOf } from '../caller.ts'
import { defineService, type ServiceDefinition } from '../operation.ts'
import type { ServiceDeps } from './deps.ts'
import { listRpc } from './list-rpc.ts'
import { shapeOf } from './shape.ts'
import { checkRange } from './time-range.ts'
import { dateFrom } from './values.convert.ts'

const auditEntryToProto = shapeOf(AuditEntrySchema).from<AuditEntryRecord>({
  environmentId: ({ ownerId, teamId }) => (ownerId === teamId ? undefined : ownerId),
})

/** Reads the audit log. */
export function auditService({ database }: Pick<ServiceDeps, 'database'>): ServiceDefinition {
  return defineService(
    AuditService,
    {
      listAuditEntries: listRpc(
        AuditService.method.listAuditEntries,
        auditEntryToProto,
        async ({ method, actorId, targetId, since, until, ...page }, context) => {
          const { environmentId, teamId } = callerOf(context)
          const filter = { method, actorId, targetId, since: dateFrom(since), until: dateFrom(until) }
          return await listAuditEntries(database.pool, environmentId ?? teamId, filter, page)
        },
      ),
    },
    { listAuditEntries: checkRange },
  )
}
