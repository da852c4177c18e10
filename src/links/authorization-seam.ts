import type { JsonObject } from '../base/index.ts'
import type { Plan } from '../definitions/index.ts'
import type { TokenSet } from '../formats/index.ts'
import type { LinkErrorCode } from './error-codes.ts'

export interface AuthorizationTarget {
  readonly plan: Pick<Plan, 'credentials' | 'secrets'>
  readonly format: string
  readonly environmentId: string
  readonly environmentVariables: JsonObject
  readonly fields: JsonObject
  readonly context: JsonObject
}

interface Failed {
  readonly kind: 'failed'
  readonly code: LinkErrorCode
  readonly message: string
}

export type AuthorizationResult =
  | {
      readonly kind: 'granted'
      readonly token: TokenSet
      readonly context: JsonObject
      readonly grantedScopes: readonly string[]
      readonly missingScopes: readonly string[]
    }
  | { readonly kind: 'pending'; readonly context: JsonObject }
  | Failed

export async function beginAuthorization(
  _deps: object,
  _target: AuthorizationTarget,
  _start: { readonly redirectUri: string; readonly state: string; readonly scopes: readonly string[] },
): Promise<
  | {
      readonly kind: 'redirect'
      readonly url: string
      readonly secrets: JsonObject
      readonly requestedScopes: readonly string[]
    }
  | Failed
> {
  return await Promise.resolve({ kind: 'failed', code: 'provider_error', message: 'not yet' } as const)
}

export async function completeAuthorization(
  _deps: object,
  _target: AuthorizationTarget,
  _back: {
    readonly params: Readonly<Record<string, string>>
    readonly redirectUri: string
    readonly secrets: JsonObject
  },
): Promise<AuthorizationResult> {
  return await Promise.resolve({ kind: 'failed', code: 'provider_error', message: 'not yet' } as const)
}
