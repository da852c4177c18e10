import type { BlockList } from 'node:net'
import type { Message } from '@bufbuild/protobuf'
import type { Clock } from '../../../foundation/base/index.ts'
import type { Authenticator, Principal } from '../../../platform/tenancy/index.ts'
import type { Operation } from '../operation.ts'
import type { RateLimiter } from './rate-limiter.ts'
import type { Reauthenticator } from './reauthenticator.ts'
import type { TokenLookUps } from './token-look-ups.ts'

/** What authentication and its rate limits need. */
export interface AccessControl {
  readonly authenticator: Pick<Authenticator, 'parseToken' | 'authenticate'>
  /** The caller that has a link token; `undefined` for another text, and for the token of a link that has ended. */
  readonly authenticateLink: LinkAuthenticator
  /** Rate limits of API tokens, by token id. */
  readonly tokenLimiter: RateLimiter
  /** Rate limits of client addresses, for requests without a valid token. */
  readonly addressLimiter: RateLimiter
  readonly tokenLookUps: TokenLookUps
  /** Keeps a caller with limits to its accounts, once the request is read. @throws Failure RESOURCE_NOT_FOUND, INVALID_FIELD */
  readonly assertWithinLimits: (operation: Operation, message: Message, caller: Principal) => Promise<void>
  readonly trustedProxies: BlockList
  readonly clock: Clock
  readonly reauthenticator: Reauthenticator
}

/** Looks up the caller that presents a link token. */
type LinkAuthenticator = (token: string) => Promise<Principal | undefined>
