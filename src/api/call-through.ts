import type { PreviewedAccount, ReadyAccount } from '../accounts/index.ts'
import type { Clock } from '../base/index.ts'
import type { Proxy as Engine, PreviewRequest, RequestPreview } from '../proxy/index.ts'

/** What calling third parties through accounts needs, whatever the protocol. */
export interface CallThroughDeps {
  readonly proxy: Engine
  readonly clock: Clock
  /** Loads an account that may be called through, its token fresh. @throws Failure as `readyAccess` does */
  readonly readyAccount: (environmentId: string, id: string) => Promise<ReadyAccount>
  /** Loads an account as it is stored; no third party is asked. @throws Failure as `previewAccess` does */
  readonly previewAccount: (environmentId: string, id: string) => Promise<PreviewedAccount>
}

/** Which account a call goes through. */
export interface AccountOfCall {
  readonly environmentId: string
  readonly accountId: string
}

/**
 * A dry run, whatever the protocol: nothing is sent, no token renewed, no budget used. It also works where the call itself
 * would be refused (an account that is not active, a write through a sandbox account), and tells so.
 */
export async function dryRun(
  { proxy, previewAccount }: Pick<CallThroughDeps, 'proxy' | 'previewAccount'>,
  { environmentId, accountId }: AccountOfCall,
  request: PreviewRequest,
): Promise<RequestPreview> {
  const { ready, error } = await previewAccount(environmentId, accountId)
  const preview = await proxy.preview(ready.plan, ready.access, request)
  return error === undefined ? preview : { ...preview, error }
}
