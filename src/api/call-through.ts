import type { DryRunAccount, ResolvedAccount } from '../accounts/index.ts'
import type { Clock } from '../base/index.ts'
import type { Proxy as Engine, PreviewRequest, RequestPreview } from '../proxy/index.ts'

/** What calling third parties through accounts needs, whatever the protocol. */
export interface ProxyCallDeps {
  readonly proxy: Engine
  readonly clock: Clock
  /** Loads an account that may be called through, its token fresh. @throws Failure as `loadAccountForCall` does */
  readonly readyAccount: (environmentId: string, id: string) => Promise<ResolvedAccount>
  /** Loads an account as it is stored; no third party is asked. @throws Failure as `loadAccountForDryRun` does */
  readonly previewAccount: (environmentId: string, id: string) => Promise<DryRunAccount>
}

/** Which account a call goes through. */
export interface CallAccount {
  readonly environmentId: string
  readonly accountId: string
}

/**
 * A dry run, whatever the protocol: nothing is sent, no token renewed, no budget used. It also works where the call itself
 * would be refused (an account that is not active, a write through a sandbox account), and tells so.
 */
export async function dryRun(
  { proxy, previewAccount }: Pick<ProxyCallDeps, 'proxy' | 'previewAccount'>,
  { environmentId, accountId }: CallAccount,
  request: PreviewRequest,
): Promise<RequestPreview> {
  const { resolved: ready, error } = await previewAccount(environmentId, accountId)
  const preview = await proxy.preview(ready.plan, ready.access, request)
  return error === undefined ? preview : { ...preview, error }
}
