import type { Clock } from '../../foundation/base/index.ts'
import type { LinkDependencies } from '../../platform/links/index.ts'
import type { LogoDeps } from './logos.ts'

/** What the connect page is given. */
export interface ConnectPageOptions extends Pick<LogoDeps, 'http'> {
  readonly links: LinkDependencies
  readonly clock: Pick<Clock, 'monotonicMs'>
}

/** The same with its caches, for the functions of this module. */
export interface ConnectPageDeps extends LogoDeps {
  readonly links: LinkDependencies
}
