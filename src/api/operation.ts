import type {
  DescMessage,
  DescMethod,
  DescMethodBiDiStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  Message,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf'
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt'
import type { FailureReason, Violation } from '../base/index.ts'
import type { Access, Call, EnvironmentCall } from './caller.ts'
import { precompileRules } from './messages/rules.ts'

/** A violation that may also name the reason of the whole refusal; without one the reason is INVALID_FIELD. */
export interface Finding extends Violation {
  readonly reason?: FailureReason
}

/**
 * One operation: who may call it, what else must hold of its request, and what it does.
 *
 * `check` is pure and sees requests that already broke rules; its findings join the others in one refusal.
 * `handle` runs only when nothing was found.
 */
type Handler<Request, Result> =
  | {
      readonly access: 'environment'
      check?(request: Request): readonly Finding[]
      handle(request: Request, call: EnvironmentCall): Result
    }
  | {
      readonly access: Exclude<Access, 'environment'>
      check?(request: Request): readonly Finding[]
      handle(request: Request, call: Call): Result
    }

/** The handler a method's descriptor asks for. */
type HandlerOf<Method> =
  Method extends DescMethodUnary<infer Input, infer Output>
    ? Handler<MessageShape<Input>, Promise<MessageInitShape<Output>>>
    : Method extends DescMethodServerStreaming<infer Input, infer Output>
      ? Handler<MessageShape<Input>, AsyncIterable<MessageInitShape<Output>>>
      : Method extends DescMethodBiDiStreaming<infer Input, infer Output>
        ? Handler<AsyncIterable<MessageShape<Input>>, AsyncIterable<MessageInitShape<Output>>>
        : never

/** A handler for every method of the service, by its name in lower camel case. */
export type ServiceHandlers<Service extends DescService> = {
  readonly [Name in keyof Service['method']]: HandlerOf<Service['method'][Name]>
}

/** What a handler returns, when its type is known only to the descriptor. */
export type ResultInit = MessageInitShape<DescMessage>

/** A handler whose types were checked by `defineService` and are now known only to the descriptor. */
interface ErasedHandler {
  readonly access: Access
  check?(request: Message): readonly Finding[]
  handle(request: object, call: EnvironmentCall): unknown
}

/** A service with its handlers, ready to be served. */
export interface ServiceDefinition {
  readonly desc: DescService
  readonly handlers: Readonly<Record<string, ErasedHandler>>
}

/**
 * Binds handlers to a service. Every method needs one: a contract without an implementation does not compile.
 */
export function defineService<Service extends DescService>(
  desc: Service,
  handlers: ServiceHandlers<Service>,
): ServiceDefinition {
  return { desc, handlers: handlers as Readonly<Record<string, ErasedHandler>> }
}

/** A method as the pipeline runs it. */
interface OperationBase {
  /** The path every RPC protocol uses: `/patchbay.v1.TeamService/GetTeam`. */
  readonly path: string
  readonly method: DescMethod
  readonly input: DescMessage
  readonly output: DescMessage
  readonly access: Access
  /** Has no side effects, as the contract says, and may be called by GET. */
  readonly isSafe: boolean
  /** The operation's own findings; empty when it has no check. */
  check(request: Message): readonly Finding[]
}

/** One request, one answer. */
export interface UnaryOperation extends OperationBase {
  readonly kind: 'unary'
  handle(request: Message, call: EnvironmentCall): Promise<ResultInit>
}

/** One request, many answers. */
export interface StreamOperation extends OperationBase {
  readonly kind: 'stream'
  handle(request: Message, call: EnvironmentCall): AsyncIterable<ResultInit>
}

/** Many requests, many answers, interleaved. */
export interface DuplexOperation extends OperationBase {
  readonly kind: 'duplex'
  readonly method: DescMethodBiDiStreaming
  handle(requests: AsyncIterable<Message>, call: EnvironmentCall): AsyncIterable<ResultInit>
}

/** Anything an RPC path leads to. */
export type Operation = UnaryOperation | StreamOperation | DuplexOperation

const KINDS = { unary: 'unary', server_streaming: 'stream', bidi_streaming: 'duplex' } as const

/** The operations of the services by path, with their validation rules compiled. */
export function compileOperations(services: readonly ServiceDefinition[]): ReadonlyMap<string, Operation> {
  const operations = services.flatMap(({ desc, handlers }) =>
    desc.methods.map((method) => compile(method, handlers[method.localName])),
  )
  return new Map(operations.map((operation) => [operation.path, operation]))
}

function compile(method: DescMethod, handler: ErasedHandler | undefined): Operation {
  const path = `/${method.parent.typeName}/${method.name}`
  if (handler === undefined) throw new Error(`${path} has no handler`)
  if (method.methodKind === 'client_streaming') throw new Error(`${path}: client streams are not served`)
  precompileRules(method.input)
  return {
    kind: KINDS[method.methodKind],
    path,
    method,
    input: method.input,
    output: method.output,
    access: handler.access,
    isSafe: method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS,
    check: (request: Message) => handler.check?.(request) ?? [],
    handle: (request: Message, call: EnvironmentCall) => handler.handle(request, call),
    // `defineService` held the handler to the shapes of its method kind.
  } as Operation
}
