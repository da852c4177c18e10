import { type DescMethod, getOption } from '@bufbuild/protobuf'
import {
  Access as AccessRule,
  access as accessOption,
  cost as costOption,
  scope as scopeOption,
} from '../../../gen/patchbay/v1/access_pb.ts'
import type { ApiLimits } from './limits.ts'

/** Who may call an operation: anybody, any API token, a caller in an environment, that or a link token, or a team token. */
export type Access = 'public' | 'token' | 'environment' | 'environment_or_link' | 'team'

const ACCESS: Readonly<Record<number, Access>> = {
  [AccessRule.PUBLIC]: 'public',
  [AccessRule.TOKEN]: 'token',
  [AccessRule.ENVIRONMENT]: 'environment',
  [AccessRule.ENVIRONMENT_OR_LINK]: 'environment_or_link',
  [AccessRule.TEAM]: 'team',
}

/** Health checks and reflection: published contracts, which cannot carry the option and are open to everybody. */
const PUBLIC_PACKAGES = /^grpc\.(?:health|reflection)\./

/**
 * The access rule of an RPC: its option `(patchbay.v1.access)` in the contract.
 *
 * @throws Error for an RPC without one, when the server starts
 */
export function accessOf(method: DescMethod): Access {
  if (PUBLIC_PACKAGES.test(method.parent.typeName)) return 'public'
  const access = ACCESS[getOption(method, accessOption)]
  if (access === undefined) throw new Error(`${method.parent.typeName}/${method.name} has no option patchbay.v1.access`)
  return access
}

/**
 * The scope that an RPC needs of an API token: its option `(patchbay.v1.scope)` in the contract; absent where no token is needed.
 *
 * @throws Error for an RPC that needs a token and names no scope, and the other way round, when the server starts
 */
export function scopeOf(method: DescMethod): string | undefined {
  const scope = getOption(method, scopeOption) || undefined
  if ((scope === undefined) !== (accessOf(method) === 'public'))
    throw new Error(`${method.parent.typeName}/${method.name}: patchbay.v1.scope and patchbay.v1.access do not agree`)
  return scope
}

/** Units of the rate limit that a call of an RPC takes: its option `(patchbay.v1.cost)`, 1 without it. */
export function costOf(method: DescMethod): number {
  return getOption(method, costOption) || 1
}

/** Whether an operation acts in one environment, which its caller has to name. */
export function concernsEnvironment(access: Access): boolean {
  return access === 'environment' || access === 'environment_or_link'
}

/** When the request messages of operations with the rule are read. */
export function readingOf(access: Access): BodyReading {
  return access === 'public' ? 'before_authentication' : 'after_authentication'
}

/** Largest request message of operations with the rule, before and after decompression. */
export function messageBytesMax(
  access: Access,
  { requestBytesMax, publicRequestBytesMax }: Pick<ApiLimits, 'requestBytesMax' | 'publicRequestBytesMax'>,
): number {
  return access === 'public' ? Math.min(publicRequestBytesMax, requestBytesMax) : requestBytesMax
}

/**
 * When an endpoint reads the bodies of requests. What is read before it is known who sends it counts against a budget of its
 * client address.
 */
export type BodyReading = 'never' | 'before_authentication' | 'after_authentication'
