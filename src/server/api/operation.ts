import type {
  DescMessage,
  DescMethod,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  Message,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf'
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt'
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect'
import type { FailureReason, Violation } from '../../foundation/base/index.ts'
import { type Access, accessOf, costOf, scopeOf } from './access.ts'
import { isAudited } from './effects.ts'

/** A violation that may also name the reason of the whole error; without one the reason is INVALID_FIELD. */
export interface Finding extends Violation {
  readonly reason?: FailureReason
}

/**
 * Checks of request messages that the contract's rules cannot express, by the method's name. A check is pure and also
 * sees requests that broke rules, so that one error reports everything that is wrong.
 */
export type RequestChecks<Service extends DescService> = {
  readonly [Name in keyof Service['method']]?: (
    request: MessageShape<Service['method'][Name]['input']>,
  ) => readonly Finding[]
}

/** A service with its Connect implementation. */
export interface ServiceDefinition {
  readonly desc: DescService
  readonly implementation: ServiceImpl<DescService>
  readonly checks: Readonly<Record<string, ((request: never) => readonly Finding[]) | undefined>>
}

/** Binds an implementation to its service; a method without one does not compile. */
export function defineService<Service extends DescService>(
  desc: Service,
  implementation: ServiceImpl<Service>,
  checks: RequestChecks<Service> = {},
): ServiceDefinition {
  return { desc, implementation: implementation as ServiceImpl<DescService>, checks }
}

/** The result of a handler whose type only the descriptor knows. */
export type ResultInit = MessageInitShape<DescMessage>

/** An RPC as the pipeline serves it. */
interface OperationBase {
  /** The path that every RPC protocol uses: `/patchbay.v1.TeamService/GetTeam`. */
  readonly path: string
  readonly method: DescMethod
  readonly input: DescMessage
  readonly output: DescMessage
  readonly access: Access
  /** The scope that it needs of an API token; absent where no token is needed. */
  readonly scope: string | undefined
  /** Units of the rate limit that a call takes. */
  readonly cost: number
  /** Has no side effects, as the contract says, and may be called by GET. */
  readonly isSafe: boolean
  /** A successful call has an entry in the audit log. */
  readonly isAudited: boolean
  /** The operation's own findings; empty when it has no check. */
  check(request: Message): readonly Finding[]
}

/** One request, one answer. */
export interface UnaryOperation extends OperationBase {
  readonly kind: 'unary'
  readonly method: DescMethodUnary
  handle(request: Message, context: HandlerContext): Promise<ResultInit>
}

/** One request, many answers. */
export interface ServerStreamingOperation extends OperationBase {
  readonly kind: 'server_streaming'
  readonly method: DescMethodServerStreaming
  handle(request: Message, context: HandlerContext): AsyncIterable<ResultInit>
}

/** Many requests, many answers, interleaved. */
export interface BidiStreamingOperation extends OperationBase {
  readonly kind: 'bidi_streaming'
  handle(messages: AsyncIterable<Message>, context: HandlerContext): AsyncIterable<ResultInit>
}

/** An RPC of any kind that is served. */
export type Operation = UnaryOperation | ServerStreamingOperation | BidiStreamingOperation

/**
 * The operations of the services by path.
 *
 * @throws Error for a method without access rule or implementation, and for client streaming, which is not served
 */
export function compileOperations(services: readonly ServiceDefinition[]): ReadonlyMap<string, Operation> {
  const operations = services.flatMap((service) => service.desc.methods.map((method) => compile(service, method)))
  return new Map(operations.map((operation) => [operation.path, operation]))
}

function compile({ implementation, checks }: ServiceDefinition, method: DescMethod): Operation {
  const path = `/${method.parent.typeName}/${method.name}`
  const handler: unknown = Reflect.get(implementation, method.localName)
  if (typeof handler !== 'function') throw new Error(`${path} has no handler`)
  if (method.methodKind === 'client_streaming') throw new Error(`${path}: client streaming is not served`)
  const check = checks[method.localName]
  return {
    kind: method.methodKind,
    path,
    method,
    input: method.input,
    output: method.output,
    access: accessOf(method),
    scope: scopeOf(method),
    cost: costOf(method),
    isSafe: method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS,
    isAudited: isAudited(method),
    check: (request: Message) => check?.(request as never) ?? [],
    handle: handler.bind(implementation),
    // `defineService` checked that the handler fits the kind of its method.
  } as Operation
}
