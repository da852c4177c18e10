import {
  callUnified,
  previewUnified,
  type UnifiedDependencies,
  type UnifiedOutcome,
  type UnifiedPreview,
  type UnifiedPreviewRequest,
  type UnifiedRequest,
  type UnifiedTarget,
} from '../../../engine/unified/index.ts'
import type { Database } from '../../../foundation/database/index.ts'
import type { ResolvedAccount } from '../../../platform/accounts/index.ts'
import type { UnifiedMappings, UnifiedMethodRef } from '../../../platform/unified-config/index.ts'
import type { CallAccount, OpenRequest, ProxyCallDeps } from './proxy-calls.ts'

/** The dependencies of calls of unified resources, over RPC and HTTP. */
export interface UnifiedCallDeps extends ProxyCallDeps {
  readonly database: Pick<Database, 'pool'>
  readonly unified: UnifiedDependencies
  readonly mappings: Pick<UnifiedMappings, 'find'>
}

/** A requested call of a unified method. */
export interface UnifiedCall<Request extends UnifiedRequest = UnifiedRequest> extends CallAccount {
  readonly ref: UnifiedMethodRef
  readonly request: Request
}

/** One call of a unified method. @throws Failure as `prepareUnifiedCall` and `callUnified` do */
export async function callUnifiedMethod(
  deps: UnifiedCallDeps,
  open: OpenRequest,
  call: UnifiedCall,
): Promise<UnifiedOutcome> {
  return await callUnified(deps.unified, await prepareUnifiedCall(deps, open, call), call.request)
}

/** The account of a call with the mapping of the method. @throws Failure as `loadAccountForCall` does, UNIFIED_NOT_MAPPED */
export async function prepareUnifiedCall(
  deps: Pick<UnifiedCallDeps, 'database' | 'mappings' | 'readyAccount'>,
  open: OpenRequest,
  { environmentId, accountId, ref, runId }: Omit<UnifiedCall, 'request'> & { readonly runId?: string | undefined },
): Promise<UnifiedTarget> {
  return await withMapping(deps, await deps.readyAccount(open, environmentId, accountId, runId), ref)
}

/** A dry run of a unified method, see `dryRun`. @throws Failure as `previewUnified` does, UNIFIED_NOT_MAPPED */
export async function dryRunUnified(
  deps: UnifiedCallDeps,
  open: OpenRequest,
  { environmentId, accountId, ref, request }: UnifiedCall<UnifiedPreviewRequest>,
): Promise<UnifiedPreview> {
  const { resolved, error } = await deps.previewAccount(open, environmentId, accountId)
  const preview = await previewUnified(deps.unified, await withMapping(deps, resolved, ref), request)
  return error === undefined ? preview : { ...preview, error }
}

async function withMapping(
  { database, mappings }: Pick<UnifiedCallDeps, 'database' | 'mappings'>,
  { account, integrationName, plan, access }: ResolvedAccount,
  ref: UnifiedMethodRef,
): Promise<UnifiedTarget> {
  const { environmentId, id: integratedAccountId } = account
  const { plan: mapping } = await mappings.find(
    database.pool,
    { environmentId, integratedAccountId, integrationName },
    ref,
  )
  return { plan, access, mapping }
}
