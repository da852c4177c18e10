import type { DescMethod } from '@bufbuild/protobuf'
import type { HandlerContext } from '@connectrpc/connect'
import { Failure, type Sealer } from '../../../foundation/base/index.ts'
import { isJsonObject, type JsonObject, parseJson } from '../../../foundation/json/index.ts'
import { callerOf, holderOf } from '../caller.ts'
import type { ServiceDefinition } from '../operation.ts'
import { withBoundedPages } from './bounded-pages.ts'

/** Seals its own tokens, which the connect page gets too. */
const SEALS_ITSELF = ['ListFormOptions']

type Handler = (
  request: { pageSize: number; pageToken: string },
  context: HandlerContext,
) => Promise<{ readonly nextPageToken?: string | undefined }>

/**
 * The service with sealed page tokens, for every operation of the contract that has them: a client neither reads nor makes the
 * position of a page, and a token is valid for its operation, and for tokens like that of its caller. Pages are bounded in bytes.
 */
export function withSealedPages(sealer: Sealer, service: ServiceDefinition): ServiceDefinition {
  const { desc, implementation } = service
  const sealed = desc.methods.filter(hasPageToken).map((method) => {
    // The descriptor says that request and answer have these fields; the types of `ServiceImpl` know the service alone.
    const handler = Reflect.get(implementation, method.localName) as Handler
    return [method.localName, sealedHandler(sealer, method, withBoundedPages(method, handler))] as const
  })
  const served = { ...implementation, ...Object.fromEntries(sealed) } as typeof implementation
  return { ...service, implementation: served }
}

function hasPageToken({ name, methodKind, output }: DescMethod): boolean {
  const isPaged = output.fields.some((field) => field.name === 'next_page_token')
  return methodKind === 'unary' && isPaged && !SEALS_ITSELF.includes(name)
}

function sealedHandler(sealer: Sealer, { name }: DescMethod, handler: Handler): Handler {
  return async (request, context) => {
    const binding = { operation: name, holder: holderOf(callerOf(context)) }
    if (request.pageToken !== '') {
      const token = sealer.open('page_token', binding, request.pageToken)
      if (token === undefined) throw tokenInvalid('page_token')
      request.pageToken = token
    }
    const answer = await handler(request, context)
    const { nextPageToken = '' } = answer
    return nextPageToken === ''
      ? answer
      : { ...answer, nextPageToken: sealer.seal('page_token', binding, nextPageToken) }
  }
}

/** Seals and opens the states of one streamed list: JSON objects of one member. */
export interface ListStates {
  seal(state: JsonObject): JsonObject
  /** @throws Failure PAGE_TOKEN_INVALID for a state that is not one of the list */
  open(state: JsonObject | undefined): JsonObject | undefined
}

/**
 * The states of a streamed list, which clients store and send again. They are bound to account and method; what else decides
 * where a page is read is rendered anew with each request, and may change with the parent of a list.
 */
export function listStates(
  sealer: Sealer,
  account: { readonly environmentId: string; readonly accountId: string },
  names: Readonly<Record<string, string>>,
): ListStates {
  const binding = { ...account, names }
  return {
    seal: (state) => ({ sealed: sealer.seal('list_state', binding, JSON.stringify(state)) }),
    open: (state) => {
      if (state === undefined) return undefined
      const { sealed, ...others } = state
      const isSealed = typeof sealed === 'string' && Object.keys(others).length === 0
      const text = isSealed ? sealer.open('list_state', binding, sealed) : undefined
      const opened = text === undefined ? undefined : parseJson(text)
      if (!isJsonObject(opened)) throw tokenInvalid('state')
      return opened
    },
  }
}

function tokenInvalid(field: string): Failure {
  const message = `${field} is not one that this list returned; start again without it`
  return new Failure('PAGE_TOKEN_INVALID', message, {
    violations: [{ field, description: 'does not belong to this list', rule: 'page_token.invalid' }],
  })
}
