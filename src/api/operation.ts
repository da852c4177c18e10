import type { DescMessage, DescMethod, DescMethodBiDiStreaming, Message } from '@bufbuild/protobuf'
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt'
import type { Access, EnvironmentCall } from './call.ts'
import { precompileRules } from './message/rules.ts'
import type { ErasedHandler, Finding, ResultInit, ServiceDefinition } from './service.ts'

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
