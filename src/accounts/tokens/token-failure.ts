import { type BackoffPolicy, backoffMs, Failure, type JsonObject } from '../../base/index.ts'
import type { TokenError } from '../../formats/index.ts'

/** A refusal as it is kept beside the token, for whoever asks during the pause after it. */
export type StoredTokenError = Pick<TokenError, 'kind' | 'message'>

/** How long nobody asks again. Somebody has to act after a refusal, so its pause is longer than that of a hiccup. */
const RETRY_BACKOFFS: Readonly<Record<TokenError['kind'], BackoffPolicy>> = {
  transient: { baseMs: 5_000, factor: 2, maxMs: 600_000, jitterFloor: 0.5 },
  client_refused: { baseMs: 30_000, factor: 2, maxMs: 3_600_000, jitterFloor: 0.5 },
  grant_refused: { baseMs: 60_000, factor: 2, maxMs: 3_600_000, jitterFloor: 0.5 },
}

/** The pause after a refusal; what the server asked for is the floor. @param failures in a row, this one included */
export function tokenRetryDelayMs(refusal: TokenError, failures: number, random: () => number): number {
  return Math.max((refusal.retryAfterSeconds ?? 0) * 1_000, backoffMs(RETRY_BACKOFFS[refusal.kind], failures, random))
}

/** What is stored of a refusal. */
export function tokenErrorJson({ kind, message }: TokenError): JsonObject {
  return { kind, message }
}

/** What `tokenErrorJson` wrote. */
export function parseTokenError({ kind, message }: JsonObject): StoredTokenError {
  const known = kind === 'grant_refused' || kind === 'client_refused' ? kind : 'transient'
  return { kind: known, message: String(message) }
}

/** The refusal as callers get it. */
export function tokenFailure({ kind, message }: StoredTokenError, accountId: string, retryAfterMs: number): Failure {
  const details = {
    resource: { type: 'integrated_account', id: accountId },
    metadata: { cause: kind },
    retryAfterSeconds: Math.ceil(retryAfterMs / 1_000),
  }
  switch (kind) {
    case 'grant_refused': {
      const text = `the third party refuses the account's credentials (${message}): connect it again`
      return new Failure('CREDENTIALS_INVALID', text, details)
    }
    case 'client_refused': {
      const text = `the third party refuses the integration's client or settings (${message}): correct the definition or its override`
      return new Failure('TOKEN_REQUEST_FAILED', text, details)
    }
    case 'transient':
      return new Failure(
        'TOKEN_REQUEST_FAILED',
        `the request for a token failed (${message}): try again later`,
        details,
      )
  }
}
