import { toJson } from '@bufbuild/protobuf'
import { createClient } from '@connectrpc/connect'
import { AuditEntrySchema } from '../../../gen/patchbay/v1/audit_pb.ts'
import { AuditService } from '../../../gen/patchbay/v1/audit_service_pb.ts'
import { callErrorFrom } from './errors.ts'
import { connectTransport, type ServerAddress } from './transport.ts'

/** Which entries; what is absent does not restrict. */
export interface AuditEntryFilter {
  readonly method?: string
  readonly actorId?: string
  readonly targetId?: string
  readonly since?: Date
  readonly until?: Date
}

const TIMEOUT_MS = 30_000
const PAGE_SIZE = 1_000

/**
 * The entries of the audit log, newest first, each as its JSON; a page is asked for when it is reached.
 *
 * @throws Failure with the server's reason, or `ServerUnavailable`
 */
export async function* readAuditEntries(address: ServerAddress, filter: AuditEntryFilter): AsyncGenerator<unknown> {
  const service = createClient(AuditService, connectTransport(address))
  const { since, until, ...names } = filter
  const request = { ...names, ...(since && { since: timestamp(since) }), ...(until && { until: timestamp(until) }) }
  let pageToken = ''
  do {
    const call = service.listAuditEntries({ ...request, pageSize: PAGE_SIZE, pageToken }, { timeoutMs: TIMEOUT_MS })
    const page = await call.catch((error: unknown) => {
      throw callErrorFrom(error)
    })
    for (const entry of page.auditEntries) yield toJson(AuditEntrySchema, entry, { useProtoFieldName: true })
    pageToken = page.nextPageToken
  } while (pageToken !== '')
}

function timestamp(date: Date) {
  const ms = date.getTime()
  return { seconds: BigInt(Math.floor(ms / 1_000)), nanos: (ms % 1_000) * 1_000_000 }
}
