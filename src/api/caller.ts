import type { PresentedToken, Principal } from '../tenancy/index.ts'

/** A principal whose environment is settled. */
export interface EnvironmentPrincipal extends Principal {
  readonly environmentId: string
}

/** Turns a presented token into a principal. */
export interface Admission {
  /** Reads the text after `Bearer ` without a look-up; `undefined` when it cannot be a token. */
  parseToken(token: string): PresentedToken | undefined
  /**
   * @param environmentHeader the header `patchbay-environment`, unchecked
   * @throws Failure TOKEN_INVALID for an unknown, expired or revoked token, RESOURCE_NOT_FOUND for an environment
   *   of another team
   */
  authenticate(token: PresentedToken | undefined, environmentHeader: string | undefined): Promise<Principal>
}

/**
 * What an operation asks of its caller: nothing, any token, a token with an environment, or a team token.
 */
export type Access = 'public' | 'token' | 'environment' | 'team'

/** What a handler knows about the call beside its message. The same on every protocol. */
export interface Call {
  /** Reading it in a `public` operation is a bug and throws. */
  readonly principal: Principal
  /** The client's `X-Request-Id`, or one made here; on every log line and answer. */
  readonly requestId: string
  /** Aborts with a `Failure` when the deadline passes, the client goes away, or the server shuts down. */
  readonly signal: AbortSignal
  /** Milliseconds until the deadline, never below 0; `Infinity` for a stream without one. */
  remainingMs(): number
  /** A request header (gRPC: metadata) by name, of any case; repeated ones joined with `, `. */
  requestHeader(name: string): string | undefined
  /** Adds a response header; without effect once a stream has sent its first message. */
  setHeader(name: string, value: string): void
}

/** The call of an operation with access `environment`. */
export interface EnvironmentCall extends Call {
  readonly principal: EnvironmentPrincipal
}
